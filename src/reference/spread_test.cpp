// What functions make of intervals, against their values at many places inside.
#include "reference/spread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "reference/number.h"

namespace kiln::reference {
namespace {

using ir::BinaryKind;
using ir::UnaryKind;

double spread(UnaryKind kind, const Number& operand) { return spread_of(ir::info(kind), operand); }

// Where the function has values: intervals around its turns, steps and poles, and far away.
std::vector<Number> intervals(const ir::FunctionInfo& row) {
  std::vector<Number> out;
  for (const double x : {-700.0, -3.5, -1.5707963, -1.0, -0.5, -0.2, 0.0, 0.1, 0.5, 0.75, 1.0, 1.5,
                         2.0, 2.5, 3.1415926, 40.0, 1e6}) {
    for (const double error : {1e-9, 0.01, 0.1, 0.5, 1.0, 2.0, 10.0}) {
      if (x - error >= row.least && x + error <= row.most) out.push_back({x, error});
    }
  }
  return out;
}

TEST(Spread, CoversEveryValueInTheInterval) {
  for (const ir::FunctionInfo& row : ir::all_functions()) {
    int bounded = 0;
    for (const Number& operand : intervals(row)) {
      const double bound = spread_of(row, operand);
      const double middle = row.value(operand.value);
      if (!std::isfinite(bound) || !std::isfinite(middle)) continue;
      ++bounded;
      for (int i = -50; i <= 50; ++i) {
        const double x = operand.value + operand.error * i / 50;
        const double rounding = 1e-15 * (1 + std::fabs(x));  // of x itself
        ASSERT_LE(std::fabs(row.value(x) - middle), bound * (1 + 1e-12) + rounding)
            << row.name << " of " << x << " near " << operand.value;
      }
    }
    EXPECT_GT(bounded, 5) << row.name;
  }
}

// A bound that is far too wide would cover as well.
TEST(Spread, IsReachedSomewhereInTheInterval) {
  for (const ir::FunctionInfo& row : ir::all_functions()) {
    if (row.course == ir::Course::kWave) continue;  // by the steepest slope
    for (const Number& operand : intervals(row)) {
      const double bound = spread_of(row, operand);
      const double middle = row.value(operand.value);
      if (!std::isfinite(bound) || !std::isfinite(middle)) continue;
      double most = 0;
      for (int i = -50; i <= 50; ++i) {
        most =
            std::max(most, std::fabs(row.value(operand.value + operand.error * i / 50) - middle));
      }
      EXPECT_LE(bound, most * 1.01 + 1e-9) << row.name << " near " << operand.value;
    }
  }
}

TEST(Spread, OfAStepIsNothingOrAWholeStep) {
  EXPECT_EQ(spread(UnaryKind::kFloor, {2.5, 0.1}), 0);
  EXPECT_EQ(spread(UnaryKind::kFloor, {3, 0.1}), 1);
  EXPECT_EQ(spread(UnaryKind::kCeil, {3, 0.1}), 1);
  EXPECT_EQ(spread(UnaryKind::kRound, {2.5, 0.1}), 1);
  EXPECT_EQ(spread(UnaryKind::kSign, {0.5, 0.4}), 0);
  EXPECT_EQ(spread(UnaryKind::kSign, {0.1, 0.4}), 2);
}

TEST(Spread, IsUnboundedOverAPole) {
  EXPECT_EQ(spread(UnaryKind::kTan, {1.5, 0.1}), kUnbounded);
  EXPECT_EQ(spread(UnaryKind::kTan, {0, 1.6}), kUnbounded);
  EXPECT_EQ(spread(UnaryKind::kReciprocal, {0.1, 0.1}), kUnbounded);
  EXPECT_LT(spread(UnaryKind::kTan, {1.5, 0.05}), 50);
  EXPECT_EQ(spread(UnaryKind::kReciprocal, {0.5, 0.25}), 2);
}

TEST(Spread, OfAWaveIsNoMoreThanItsHeight) {
  EXPECT_EQ(spread(UnaryKind::kSin, {0, 0.25}), 0.25);
  EXPECT_EQ(spread(UnaryKind::kCos, {0, 100}), 2);
}

TEST(Spread, IsUnknownBesideWhatHasNoValue) {
  EXPECT_TRUE(std::isnan(spread(UnaryKind::kSqrt, {0.1, 0.2})));
  EXPECT_TRUE(std::isnan(spread(UnaryKind::kAsin, {0.9, 0.2})));
  EXPECT_FALSE(std::isfinite(spread(UnaryKind::kLog, {0.1, 0.1})));
}

TEST(Spread, OfTwoNumbersCoversEveryPair) {
  const Number numbers[] = {{-3, 0.5},  {-2, 0}, {-1, 0},   {-0.5, 0.25}, {0, 0.5}, {0.25, 0.25},
                            {0.5, 0.1}, {1, 0},  {1, 0.01}, {2, 0},       {3, 0},   {2.5, 1}};
  for (const ir::FunctionOfTwoInfo& row : ir::all_functions_of_two()) {
    int bounded = 0;
    for (const Number& left : numbers) {
      for (const Number& right : numbers) {
        const double bound = spread_of(row.kind, left, right);
        if (!std::isfinite(bound)) continue;
        ++bounded;
        const double middle = ir::value_of(row.kind, left.value, right.value);
        for (int i = -10; i <= 10; ++i) {
          for (int j = -10; j <= 10; ++j) {
            const double x = left.value + left.error * i / 10;
            const double y = right.value + right.error * j / 10;
            ASSERT_LE(std::fabs(ir::value_of(row.kind, x, y) - middle), bound * (1 + 1e-12))
                << row.name << " of " << x << " and " << y;
          }
        }
      }
    }
    EXPECT_GT(bounded, 50) << row.name;
  }
}

TEST(Spread, OfAPowerNeedsAnIntegerWhereItsBaseMayBeNegative) {
  EXPECT_EQ(spread_of(BinaryKind::kPow, {0.5, 1}, {2, 0}), 2);  // 0.25; from 0 to 2.25
  EXPECT_TRUE(std::isnan(spread_of(BinaryKind::kPow, {0.5, 1}, {2.5, 0})));
  EXPECT_EQ(spread_of(BinaryKind::kPow, {0.5, 1}, {-1, 0}), kUnbounded);
}

TEST(Spread, OfAnAngleIsATurnWhereItJumps) {
  EXPECT_GT(spread_of(BinaryKind::kAtan2, {0, 0.1}, {-1, 0}), 6);
  EXPECT_LT(spread_of(BinaryKind::kAtan2, {0, 0.1}, {1, 0}), 0.1);
}

}  // namespace
}  // namespace kiln::reference
