// The rows of function.def keep what their columns promise.
#include "ir/functions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <set>

#include "ir/integer.h"
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
  std::erase_if(out, [&](double x) { return x > row.most; });
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

// One rounding, which two would not be: of f32 on the way, and of a double.
TEST(Fused, RoundsNumbersOf16BitsOnce) {
  // 1 + 2^-8 is halfway between two of bf16: what lies above it goes up.
  EXPECT_EQ(fused(DType::kBF16, 0x1.1p0, 0x1.1p0, 0x1p-30), 0x1.22p0);
  EXPECT_EQ(fused(DType::kBF16, 0x1.01p0, 1, 0x1p-100), 0x1.02p0);
  EXPECT_EQ(fused(DType::kBF16, 0x1.01p0, 1, -0x1p-100), 0x1p0);
  EXPECT_EQ(fused(DType::kBF16, -0x1.01p0, 1, -0x1p-100), -0x1.02p0);
  EXPECT_EQ(fused(DType::kBF16, 0x1p-133, 0x1p127, -0.125), 0x1p-6 - 0.125);
  EXPECT_EQ(fused(DType::kF16, 0x1.004p0, 0x1.004p0, 0x1p-24), 0x1.008p0);
  EXPECT_EQ(fused(DType::kF16, 0x1.002p0, 1, 0x1p-24), 0x1.004p0);
  EXPECT_EQ(fused(DType::kF16, 65504, 2, -65504), 65504);
  EXPECT_TRUE(std::isinf(fused(DType::kF16, 65504, 2, 0)));
  EXPECT_TRUE(std::isnan(fused(DType::kBF16, INFINITY, 0, 1)));
}

// By this the reference bounds what a function makes of an interval.
TEST(Functions, RiseOrFallAllTheWay) {
  for (const FunctionInfo& row : all_functions()) {
    if (row.course != Course::kMonotonic) continue;
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

TEST(Functions, AreEvenWhereTheirRowSaysSo) {
  for (const FunctionInfo& row : all_functions()) {
    if (row.course != Course::kEven) continue;
    double before = row.value(0);
    for (double x = 0x1p-40; x < 0x1p9; x *= 1.37) {
      EXPECT_EQ(row.value(x), row.value(-x)) << row.name << " of " << x;
      EXPECT_GE(row.value(x), before) << row.name << " of " << x;
      before = row.value(x);
    }
  }
}

TEST(Functions, AreWavesOfSlopeOneWhereTheirRowSaysSo) {
  for (const FunctionInfo& row : all_functions()) {
    if (row.course != Course::kWave) continue;
    for (double x = -20; x < 20; x += 0.01) {
      EXPECT_LE(std::fabs(row.value(x)), 1) << row.name;
      EXPECT_LE(std::fabs(row.value(x + 0.01) - row.value(x)), 0.01 + 1e-15) << row.name;
    }
  }
}

TEST(Functions, WithExactValuesRoundThemToNothing) {
  for (const FunctionInfo& row : all_functions()) {
    EXPECT_EQ(row.f32_ulps < 0, row.f64_ulps < 0) << row.name;
    if (!is_exact(row.kind)) continue;
    for (const double x : {-2.5, -0.25, 0.0, 0.5, 1.5, 0x1.8p30}) {
      EXPECT_EQ(static_cast<float>(row.value(x)), row.value(x)) << row.name << " of " << x;
    }
  }
  EXPECT_TRUE(is_exact(UnaryKind::kFloor));
  EXPECT_FALSE(is_exact(UnaryKind::kSqrt) || is_exact(UnaryKind::kNegate));
}

TEST(Functions, HaveNoValueOutsideOfTheirInterval) {
  for (const FunctionInfo& row : all_functions()) {
    EXPECT_TRUE(std::isnan(row.value(std::nan("")))) << row.name;
    // Beyond the largest number lies infinity.
    const double below = row.least == -DBL_MAX ? -INFINITY : row.least - 0.5;
    const double above = row.most == DBL_MAX ? INFINITY : row.most + 0.5;
    EXPECT_TRUE(std::isinf(row.least) || std::isnan(row.value(below))) << row.name;
    EXPECT_TRUE(std::isinf(row.most) || std::isnan(row.value(above))) << row.name;
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
      {UnaryKind::kTanhApprox, 1, 0.7615941559557649},
      {UnaryKind::kErf, 0.5, 0.5204998778130465},
      {UnaryKind::kSqrt, 2.25, 1.5},
      {UnaryKind::kRsqrt, 0.0625, 4},
      {UnaryKind::kExp2, -3, 0.125},
      {UnaryKind::kExpm1, 1, 1.718281828459045},
      {UnaryKind::kLog2, 8, 3},
      {UnaryKind::kLog1p, 1, 0.6931471805599453},
      {UnaryKind::kReciprocal, 8, 0.125},
      {UnaryKind::kRcp, 8, 0.125},
      {UnaryKind::kSin, 1, 0.8414709848078965},
      {UnaryKind::kCos, 1, 0.5403023058681398},
      {UnaryKind::kTan, 1, 1.5574077246549023},
      {UnaryKind::kAsin, 0.5, 0.5235987755982989},
      {UnaryKind::kAcos, 0.5, 1.0471975511965979},
      {UnaryKind::kAtan, 1, 0.7853981633974483},
      {UnaryKind::kSinh, 1, 1.1752011936438014},
      {UnaryKind::kCosh, 1, 1.5430806348152437},
      {UnaryKind::kCeil, 2.25, 3},
      {UnaryKind::kFloor, 2.75, 2},
      {UnaryKind::kRound, 2.5, 3},
      {UnaryKind::kFabs, -2.5, 2.5},
      {UnaryKind::kSign, 0.25, 1},
  };
  for (const FunctionInfo& row : all_functions()) {
    const auto* known = std::ranges::find(kKnown, row.kind, &Known::kind);
    ASSERT_NE(known, std::end(kKnown)) << row.name << " needs a line";
    EXPECT_NEAR(row.value(known->x), known->value, 0x1p-51 * known->value) << row.name;
  }
}

TEST(Functions, AreOffByNoMoreThanTheLargestBound) {
  for (const FunctionInfo& row : all_functions()) {
    if (row.kind == UnaryKind::kTanhApprox) continue;  // less precise than CUDA's functions
    EXPECT_LE(std::max(row.f32_ulps, row.f64_ulps), kFunctionUlps) << row.name;
  }
}

TEST(FunctionsOfTwo, AreFoundByTheirKindAndHaveAKnownValue) {
  for (const FunctionOfTwoInfo& row : all_functions_of_two()) {
    EXPECT_EQ(&info(row.kind), &row);
    EXPECT_EQ(name_of(row.kind), row.name);
    EXPECT_EQ(class_of(row.kind), BinaryClass::kFunction) << row.name;
    EXPECT_EQ(value_of(row.kind, DType::kS32, 2, 3), std::nullopt) << row.name;
    EXPECT_LE(std::max(row.f32_ulps, row.f64_ulps), kFunctionUlps) << row.name;
  }
  EXPECT_EQ(value_of(BinaryKind::kPow, 2, 10), 1024);
  EXPECT_NEAR(value_of(BinaryKind::kAtan2, 1, -1), 2.356194490192345, 0x1p-50);
}

TEST(BinaryOperations, AreOfOneClassEach) {
  EXPECT_EQ(class_of(BinaryKind::kRem), BinaryClass::kArithmetic);
  EXPECT_EQ(class_of(BinaryKind::kShr), BinaryClass::kBits);
  EXPECT_EQ(class_of(BinaryKind::kMin), BinaryClass::kExtremum);
  EXPECT_TRUE(is_comparison(BinaryKind::kEq) && is_comparison(BinaryKind::kGe));
  EXPECT_FALSE(is_comparison(BinaryKind::kMax) || is_comparison(BinaryKind::kLogicalAnd));
  EXPECT_TRUE(is_logical(BinaryKind::kLogicalAnd) && is_logical(BinaryKind::kLogicalOr));
}

TEST(BinaryOperations, WrapInTheTypeOfTheirIntegers) {
  EXPECT_EQ(value_of(BinaryKind::kMul, DType::kU8, 200, 2), 144);
  EXPECT_EQ(value_of(BinaryKind::kAdd, DType::kS8, 127, 1), -128);
  EXPECT_EQ(value_of(BinaryKind::kSub, DType::kU32, 0, 1), 0xffffffff);
  EXPECT_EQ(value_of(BinaryKind::kXor, DType::kS16, 1, -1), -2);
  EXPECT_EQ(value_of(BinaryKind::kShl, DType::kS32, 3, 31), INT32_MIN);
}

// A u64 is held as its bits: the largest is -1.
TEST(BinaryOperations, TakeSixtyFourBitsAsTheirTypeReadsThem) {
  EXPECT_EQ(value_of(BinaryKind::kMax, DType::kU64, -1, 1), -1);
  EXPECT_EQ(value_of(BinaryKind::kMax, DType::kS64, -1, 1), 1);
  EXPECT_EQ(value_of(BinaryKind::kDiv, DType::kU64, -1, 2), INT64_MAX);
  EXPECT_EQ(value_of(BinaryKind::kRem, DType::kU64, -1, 10), 5);  // 18446744073709551615
  EXPECT_EQ(value_of(BinaryKind::kShr, DType::kU64, -1, 63), 1);
  EXPECT_EQ(value_of(BinaryKind::kShr, DType::kS64, -1, 63), -1);
  EXPECT_EQ(value_of(BinaryKind::kLt, DType::kU64, 1, -1), 1);
  EXPECT_EQ(value_of(BinaryKind::kGe, DType::kS64, 1, -1), 1);
}

TEST(BinaryOperations, DivideAsCDoes) {
  EXPECT_EQ(value_of(BinaryKind::kDiv, DType::kS32, -7, 2), -3);
  EXPECT_EQ(value_of(BinaryKind::kRem, DType::kS32, -7, 2), -1);
  EXPECT_EQ(value_of(BinaryKind::kDiv, DType::kS64, INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(value_of(BinaryKind::kRem, DType::kS64, INT64_MIN, -1), 0);
  EXPECT_EQ(value_of(BinaryKind::kDiv, DType::kS32, 7, 0), std::nullopt);
  EXPECT_EQ(value_of(BinaryKind::kRem, DType::kU32, 7, 0), std::nullopt);
}

TEST(BinaryOperations, ShiftedByTheWidthLeaveTheSign) {
  EXPECT_EQ(value_of(BinaryKind::kShl, DType::kU8, 1, 8), 0);
  EXPECT_EQ(value_of(BinaryKind::kShr, DType::kS8, -128, 8), -1);
  EXPECT_EQ(value_of(BinaryKind::kShr, DType::kU8, 128, -1), 0);
}

TEST(BinaryOperations, OfBoolsAreBools) {
  EXPECT_EQ(value_of(BinaryKind::kLogicalAnd, DType::kBool, 1, 0), 0);
  EXPECT_EQ(value_of(BinaryKind::kLogicalOr, DType::kBool, 1, 0), 1);
  EXPECT_EQ(value_of(BinaryKind::kAdd, DType::kBool, 1, 1), 1);
}

TEST(BinaryOperations, HaveValuesOfFloats) {
  EXPECT_EQ(value_of(BinaryKind::kSub, 1, 0.25), 0.75);
  EXPECT_EQ(value_of(BinaryKind::kRem, -7.5, 2), -1.5);
  EXPECT_EQ(value_of(BinaryKind::kMin, 3, -2), -2);
  EXPECT_EQ(value_of(BinaryKind::kMax, 3, -2), 3);
  for (const BinaryKind kind : {BinaryKind::kMax, BinaryKind::kMin}) {
    EXPECT_EQ(value_of(kind, NAN, -2), -2);
    EXPECT_EQ(value_of(kind, -2, NAN), -2);
    EXPECT_TRUE(std::isnan(value_of(kind, NAN, NAN)));
    EXPECT_EQ(std::signbit(value_of(kind, 0.0, -0.0)), kind == BinaryKind::kMin);
    EXPECT_EQ(std::signbit(value_of(kind, -0.0, 0.0)), kind == BinaryKind::kMin);
  }
  EXPECT_EQ(value_of(BinaryKind::kLe, 2, 2), 1);
  EXPECT_EQ(value_of(BinaryKind::kNe, 2, 2), 0);
  EXPECT_TRUE(std::isnan(value_of(BinaryKind::kXor, 1, 1)));
}

}  // namespace
}  // namespace kiln::ir
