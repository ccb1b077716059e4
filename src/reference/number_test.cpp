#include "reference/number.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kiln::reference {
namespace {

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

}  // namespace
}  // namespace kiln::reference
