#include "reference/number.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/functions.h"

namespace kiln::reference {
namespace {

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

TEST(Number, ConditionsThatRoundingCanTurnAreOpen) {
  EXPECT_EQ(apply(ir::BinaryKind::kLt, DType::kF32, {1, 0}, {1.5, 0.1}), (Number{1, 0}));
  const Number open = apply(ir::BinaryKind::kLt, DType::kF32, {1, 0}, {1.05, 0.1});
  EXPECT_EQ(open.error, 1);
  const Number picked = choose(open, {4, 0}, {6, 0.5});
  EXPECT_EQ(picked, (Number{4, 2.5}));
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
    EXPECT_GT(exact.error, 0) << row.name;
    EXPECT_LT(exact.error, 0x1p-19 * std::fabs(exact.value)) << row.name;
  }
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

}  // namespace
}  // namespace kiln::reference
