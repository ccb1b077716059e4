#include "reference/number.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/functions.h"

namespace kiln::reference {
namespace {

using ir::BinaryKind;
using ir::UnaryKind;

// An error far larger than the value reaches below the other end of the type as well.
TEST(Number, WhatMayOverflowEitherWayIsNotKnownToOverflow) {
  const Number open = convert({1e4, 1e9}, DType::kF32, DType::kF16);
  EXPECT_EQ(open.error, kUnbounded);
  const Number sure = convert({-1e9, 1e4}, DType::kF32, DType::kF16);
  EXPECT_EQ(sure.value, -kUnbounded);
  EXPECT_EQ(sure.error, 0);
}

TEST(Number, IntegersWrapAndFloatsKeepTheirError) {
  const Number big{2147483647, 0};
  EXPECT_EQ(apply(ir::BinaryKind::kAdd, DType::kS32, big, {1, 0}), (Number{-2147483648.0, 0}));
  EXPECT_EQ(apply(ir::BinaryKind::kDiv, DType::kS32, {-7, 0}, {2, 0}), (Number{-3, 0}));
  EXPECT_EQ(apply(ir::BinaryKind::kDiv, DType::kS32, {1, 0}, {0, 0}).error, kUnbounded);
  const Number third = apply(ir::BinaryKind::kDiv, DType::kF32, {1, 0}, {3, 0});
  EXPECT_GT(third.error, 0);
  EXPECT_LT(third.error, 0x1p-24);
  EXPECT_GE(third.error, std::fabs(static_cast<double>(1.0F / 3.0F) - third.value));
  EXPECT_EQ(apply(ir::BinaryKind::kMul, DType::kF32, {1.5, 0}, {2, 0}), (Number{3, 0}));
}

// Two sums of doubles that differ by an operand's error may be rounded to neighbours.
TEST(Number, RoundingsOfDoublesApartAreBothInTheBound) {
  const Number tangent{-0.07849069210121123, 0x1p-56};
  const Number sum = apply(BinaryKind::kAdd, DType::kF64, tangent, {-1, 0});
  EXPECT_GE(sum.error, 0x1p-52);
  EXPECT_LT(apply(BinaryKind::kAdd, DType::kF64, {0.1, 0}, {1, 0}).error, 0x1p-52);
}

TEST(Number, ConditionsThatRoundingCanTurnAreOpen) {
  EXPECT_EQ(apply(ir::BinaryKind::kLt, DType::kF32, {1, 0}, {1.5, 0.1}), (Number{1, 0}));
  const Number open = apply(ir::BinaryKind::kLt, DType::kF32, {1, 0}, {1.05, 0.1});
  EXPECT_EQ(open.error, 1);
  const Number picked = choose(open, {4, 0}, {6, 0.5});
  EXPECT_EQ(picked, (Number{4, 2.5}));
  const Number nothing{std::nan(""), kUnbounded};
  EXPECT_EQ(choose(open, {4, 0}, nothing).error, kUnbounded);
  EXPECT_EQ(choose(open, nothing, {4, 0}).error, kUnbounded);
}

// The special-function unit has no numbers below the smallest normal one.
TEST(Number, WhatTheDeviceFlushesMayBeZero) {
  const Number tiny = apply(UnaryKind::kExp2, DType::kF32, {-130, 0});
  EXPECT_EQ(tiny.value, 0x1p-130);
  EXPECT_GE(tiny.error, 0x1p-130);
  EXPECT_LT(tiny.error, 0x1p-125);
  EXPECT_LT(apply(UnaryKind::kExp2, DType::kF32, {-125, 0}).error, 0x1p-146);
  EXPECT_LT(apply(UnaryKind::kExp2, DType::kF64, {-130, 0}).error, 0x1p-180);
}

// What a machine may compute of any operand in the interval lies inside.
TEST(Number, FunctionsCoverTheirOperandsInterval) {
  const Number operand{0.5, 0.25};
  for (const ir::FunctionInfo& row : ir::all_functions()) {
    const UnaryKind kind = row.kind;
    const Number result = apply(kind, DType::kF32, operand);
    for (const double x : {0.25, 0.4, 0.5, 0.6, 0.75}) {
      EXPECT_LE(std::fabs(ir::value_of(kind, x) - result.value), result.error) << row.name << x;
    }
    const Number exact = apply(kind, DType::kF32, {0.5, 0});
    const double unit = std::max(0x1p-23 * std::fabs(exact.value), 0x1p-149);
    EXPECT_EQ(exact.error > 0, row.f32_ulps > 0) << row.name;
    EXPECT_LE(exact.error, (row.f32_ulps + 0.5) * 1.001 * unit) << row.name;
    EXPECT_LT(apply(kind, DType::kF64, {0.5, 0}).error, 0x1p-48) << row.name;
  }
}

TEST(Number, CorrectlyRoundedFunctionsOfExactNumbersAreExact) {
  EXPECT_EQ(apply(UnaryKind::kSqrt, DType::kF32, {2, 0}), (Number{std::sqrt(2.0F), 0}));
  EXPECT_EQ(apply(UnaryKind::kReciprocal, DType::kF32, {3, 0}), (Number{1.0F / 3.0F, 0}));
  EXPECT_EQ(apply(UnaryKind::kFloor, DType::kF32, {-0.5, 0}), (Number{-1, 0}));
  EXPECT_EQ(apply(UnaryKind::kFabs, DType::kF32, {-3, 0.5}), (Number{3, 0.5}));
}

TEST(Number, StepsAreOpenOnlyWhereTheOperandsIntervalCrossesOne) {
  EXPECT_EQ(apply(UnaryKind::kFloor, DType::kF32, {2.5, 0.25}), (Number{2, 0}));
  EXPECT_EQ(apply(UnaryKind::kFloor, DType::kF32, {3, 0.25}), (Number{3, 1}));
  EXPECT_EQ(apply(UnaryKind::kRound, DType::kF32, {2.5, 0.25}).error, 1);
}

// Masks: exp(-infinity) is 0, not almost 0.
TEST(Number, FunctionsOfInfinityAreTheirLimits) {
  EXPECT_EQ(apply(UnaryKind::kExp, DType::kF32, {-kUnbounded, 0}), (Number{0, 0}));
  EXPECT_EQ(apply(UnaryKind::kExp2, DType::kF32, {kUnbounded, 0}), (Number{kUnbounded, 0}));
  EXPECT_EQ(apply(UnaryKind::kTanh, DType::kF32, {-kUnbounded, 0}), (Number{-1, 0}));
  EXPECT_GT(apply(UnaryKind::kAtan, DType::kF32, {kUnbounded, 0}).error, 0);  // no f32 is pi / 2
  const Number sine = apply(UnaryKind::kSin, DType::kF32, {kUnbounded, 0});
  EXPECT_TRUE(std::isnan(sine.value) && sine.error == 0);
  EXPECT_EQ(apply(UnaryKind::kExp, DType::kF32, {1000, 1}), (Number{kUnbounded, 0}));
}

TEST(Number, FunctionsOfTwoCoverTheirOperandsIntervals) {
  const Number power = apply(BinaryKind::kPow, DType::kF32, {2, 0.5}, {3, 0});
  EXPECT_GE(power.error, 15.625 - 8);
  EXPECT_LT(power.error, 7.7);
  const Number exact = apply(BinaryKind::kPow, DType::kF32, {2, 0}, {3, 0});
  EXPECT_EQ(exact.value, 8);
  EXPECT_GT(exact.error, 4 * 0x1p-20);
  EXPECT_LT(exact.error, 5 * 0x1p-20);
  EXPECT_EQ(apply(BinaryKind::kPow, DType::kF32, {0.5, 1}, {0.5, 0}).error, kUnbounded);
}

// A type without a sign ends at its least value, as the other end at the largest.
TEST(Number, UnsignedFloatsEndAtTheirLeastValue) {
  const auto to = [](Number number, DType dtype) { return convert(number, DType::kF32, dtype); };
  EXPECT_EQ(to({-3, 0.5}, DType::kUE4M3), (Number{0, 0}));
  EXPECT_EQ(to({-3, 0}, DType::kUE8M0), (Number{0x1p-127, 0}));
  EXPECT_EQ(to({2036, 100}, DType::kE4M3), (Number{448, 0}));
  const Number open = to({-0.5, 1}, DType::kUE4M3);  // from 0 to a half
  EXPECT_GE(open.value + open.error, 0.5);
  EXPECT_LE(open.error, 0.6);
  EXPECT_EQ(apply(UnaryKind::kNegate, DType::kUE4M3, {2, 0}), (Number{0, 0}));
}

TEST(Number, FunctionsOverflowInTheirType) {
  const Number over = apply(UnaryKind::kExp, DType::kF16, {20, 0.01});
  EXPECT_EQ(over, (Number{HUGE_VAL, 0}));
  EXPECT_EQ(apply(UnaryKind::kExp, DType::kF16, {std::log(65504.0), 0.01}).error, kUnbounded);
  EXPECT_LT(apply(UnaryKind::kExp, DType::kF32, {20, 0.01}).error, 1e8);
}

TEST(Number, NothingIsKnownOutsideAFunctionsDomain) {
  EXPECT_EQ(apply(UnaryKind::kSqrt, DType::kF32, {0.1, 0.2}).error, kUnbounded);
  EXPECT_EQ(apply(UnaryKind::kLog, DType::kF32, {0.1, 0.1}).error, kUnbounded);
  const Number none = apply(UnaryKind::kSqrt, DType::kF32, {-1, 0});
  EXPECT_TRUE(std::isnan(none.value));
  EXPECT_EQ(none.error, 0);
}

TEST(Fused, IsRoundedOnce) {
  // 1 + 2^-13 squared less 1: the product alone would lose 2^-26.
  const double a = 1 + 0x1p-13;
  const Number once = fused(DType::kF32, {a, 0}, {a, 0}, {-1, 0});
  EXPECT_EQ(once.value, 0x1p-12 + 0x1p-26);
  EXPECT_EQ(once.error, 0);
  const Number twice = apply(ir::BinaryKind::kMul, DType::kF32, {a, 0}, {a, 0});
  EXPECT_GE(twice.error, 0x1p-26);
  const Number open = fused(DType::kF32, {2, 0.5}, {3, 0}, {1, 0.25});
  EXPECT_EQ(open.value, 7);
  EXPECT_GE(open.error, 1.75);
  EXPECT_LT(open.error, 1.7501);
}

TEST(Fused, InfinityIsExactWhateverTheOthersErrors) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Number masked = fused(DType::kF32, {-kInfinity, 0}, {2, 0.5}, {7, 0.25});
  EXPECT_EQ(masked.value, -kInfinity);
  EXPECT_EQ(masked.error, 0);
  const Number less = fused(DType::kF32, {3, 0.5}, {2, 0.5}, {kInfinity, 0});
  EXPECT_EQ(less.value, kInfinity);
  EXPECT_EQ(less.error, 0);
  EXPECT_TRUE(std::isnan(fused(DType::kF32, {-kInfinity, 0}, {2, 0.5}, {kInfinity, 0}).value));
  // Of a factor that may be 0, or below it, nobody knows what it makes of infinity.
  EXPECT_EQ(fused(DType::kF32, {-kInfinity, 0}, {2, 2.5}, {7, 0}).error, kUnbounded);
}

}  // namespace
}  // namespace kiln::reference
