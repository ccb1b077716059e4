// The rows of function.def keep what their columns promise.
#include "ir/functions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ir/names.h"

namespace kiln::ir {
namespace {

// Numbers of the row's interval, in order.
std::vector<double> samples(const FunctionInfo& row) {
  std::vector<double> out = {0};
  for (double x = 0x1p-40; x < 0x1p10; x *= 1.37) {
    out.push_back(x);
    if (-x >= row.least) out.push_back(-x);
  }
  std::sort(out.begin(), out.end());
  return out;
}

TEST(Functions, AreFoundByTheirKindAndNamedOnce) {
  std::set<std::string_view> names;
  std::set<std::string_view> spellings;
  for (const FunctionInfo& row : all_functions()) {
    EXPECT_EQ(&info(row.kind), &row);
    EXPECT_EQ(name_of(row.kind), row.name);
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    if (!row.spelling.empty()) {
      EXPECT_TRUE(spellings.insert(row.spelling).second) << row.spelling;
    }
  }
  EXPECT_EQ(names.size() + 3, enum_names<UnaryKind>().size());  // and three operators
}

// By this the reference bounds what a function makes of an interval.
TEST(Functions, RiseOrFallAllTheWay) {
  for (const FunctionInfo& row : all_functions()) {
    bool rises = false;
    bool falls = false;
    double before = row.value(samples(row).front());
    for (const double x : samples(row)) {
      const double value = row.value(x);
      EXPECT_FALSE(std::isnan(value)) << row.name << " of " << x;
      rises = rises || value > before;
      falls = falls || value < before;
      before = value;
    }
    EXPECT_NE(rises, falls) << row.name;
  }
}

TEST(Functions, HaveNoValueOutsideOfTheirInterval) {
  for (const FunctionInfo& row : all_functions()) {
    EXPECT_TRUE(std::isnan(row.value(std::nan("")))) << row.name;
    EXPECT_TRUE(std::isinf(row.least) || std::isnan(row.value(row.least - 0.5))) << row.name;
    EXPECT_TRUE(std::isinf(row.most) || std::isnan(row.value(row.most + 0.5))) << row.name;
  }
}

// A value of each, known without it.
TEST(Functions, HaveAKnownValue) {
  struct Known {
    UnaryKind kind;
    double x;
    double value;
  };
  constexpr Known kKnown[] = {
      {UnaryKind::kExp, 1, 2.718281828459045},
      {UnaryKind::kLog, 2, 0.6931471805599453},
      {UnaryKind::kTanh, 1, 0.7615941559557649},
      {UnaryKind::kErf, 0.5, 0.5204998778130465},
      {UnaryKind::kSqrt, 2.25, 1.5},
      {UnaryKind::kRsqrt, 0.0625, 4},
      {UnaryKind::kExp2, -3, 0.125},
  };
  for (const FunctionInfo& row : all_functions()) {
    const auto* known = std::ranges::find(kKnown, row.kind, &Known::kind);
    ASSERT_NE(known, std::end(kKnown)) << row.name << " needs a line";
    EXPECT_NEAR(row.value(known->x), known->value, 0x1p-51 * known->value) << row.name;
  }
}

TEST(Functions, AreOffByNoMoreThanTheLargestBound) {
  for (const FunctionInfo& row : all_functions()) {
    EXPECT_LE(std::max(row.f32_ulps, row.f64_ulps), kFunctionUlps) << row.name;
  }
}

TEST(BinaryOperations, AreOfOneClassEach) {
  EXPECT_EQ(class_of(BinaryKind::kRem), BinaryClass::kArithmetic);
  EXPECT_EQ(class_of(BinaryKind::kShr), BinaryClass::kBits);
  EXPECT_EQ(class_of(BinaryKind::kMin), BinaryClass::kExtremum);
  EXPECT_TRUE(is_comparison(BinaryKind::kEq) && is_comparison(BinaryKind::kGe));
  EXPECT_FALSE(is_comparison(BinaryKind::kMax) || is_comparison(BinaryKind::kLogicalAnd));
  EXPECT_TRUE(is_logical(BinaryKind::kLogicalAnd) && is_logical(BinaryKind::kLogicalOr));
}

TEST(BinaryOperations, HaveValuesOfFloats) {
  EXPECT_EQ(value_of(BinaryKind::kSub, 1, 0.25), 0.75);
  EXPECT_EQ(value_of(BinaryKind::kRem, -7.5, 2), -1.5);
  EXPECT_EQ(value_of(BinaryKind::kMin, 3, -2), -2);
  EXPECT_EQ(value_of(BinaryKind::kMax, 3, -2), 3);
  EXPECT_EQ(value_of(BinaryKind::kLe, 2, 2), 1);
  EXPECT_EQ(value_of(BinaryKind::kNe, 2, 2), 0);
  EXPECT_TRUE(std::isnan(value_of(BinaryKind::kXor, 1, 1)));
}

}  // namespace
}  // namespace kiln::ir
