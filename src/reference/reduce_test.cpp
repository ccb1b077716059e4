#include "reference/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace kiln::reference {
namespace {

constexpr double kEndless = std::numeric_limits<double>::infinity();
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

Number made(ir::ReduceKind kind, DType dtype, const std::vector<Number>& numbers) {
  const DType result = kind == ir::ReduceKind::kArgMax ? DType::kS32 : dtype;
  return reduce(kind, dtype, result, numbers);
}

TEST(Reduce, SumsOfWholeNumbersAreExactAndOthersAreNot) {
  const Number whole = made(ir::ReduceKind::kSum, DType::kF32, {{1, 0}, {2, 0}, {-7, 0}});
  EXPECT_EQ(whole.value, -4);
  EXPECT_EQ(whole.error, 0);
  const Number parts = made(ir::ReduceKind::kSum, DType::kF32, {{0.1, 0.01}, {0.2, 0.02}});
  EXPECT_GE(parts.error, 0.03);
  EXPECT_LT(parts.error, 0.031);
}

TEST(Reduce, IntegersWrap) {
  const double most = 2147483647;
  EXPECT_EQ(made(ir::ReduceKind::kSum, DType::kS32, {{most, 0}, {1, 0}}).value, -2147483648.0);
  EXPECT_EQ(made(ir::ReduceKind::kProduct, DType::kS32, {{most, 0}, {most, 0}}).value, 1);
  EXPECT_EQ(made(ir::ReduceKind::kProduct, DType::kU32, {{65536, 0}, {65536, 0}}).value, 0);
}

TEST(Reduce, TheLargestMayBeAnyThatItsErrorLeavesOpen) {
  const Number open = made(ir::ReduceKind::kMax, DType::kF32, {{1, 0}, {0.9, 0.3}});
  EXPECT_EQ(open.value, 1);
  EXPECT_NEAR(open.error, 0.2, 1e-12);
  EXPECT_EQ(made(ir::ReduceKind::kMax, DType::kF32, {{1, 0}, {0.9, 0.05}}).error, 0);
  EXPECT_EQ(made(ir::ReduceKind::kMin, DType::kF32, {{1, 0}, {-3, 0}}).value, -3);
}

TEST(Reduce, TheLargestPassesOverWhatIsNoNumber) {
  EXPECT_EQ(made(ir::ReduceKind::kMax, DType::kF32, {{kNoNumber, 0}, {2, 0}}).value, 2);
  EXPECT_EQ(made(ir::ReduceKind::kMax, DType::kF32, {{kNoNumber, 0}}).value, -kEndless);
  EXPECT_EQ(made(ir::ReduceKind::kMin, DType::kF32, {{kNoNumber, 0}}).value, kEndless);
}

TEST(Reduce, InfinityIsExact) {
  const Number top = made(ir::ReduceKind::kMax, DType::kF32, {{-kEndless, 0}, {-kEndless, 0}});
  EXPECT_EQ(top.value, -kEndless);
  EXPECT_EQ(top.error, 0);
  const Number sum = made(ir::ReduceKind::kSum, DType::kF32, {{kEndless, 0}, {1, 0}});
  EXPECT_EQ(sum.value, kEndless);
  EXPECT_EQ(sum.error, 0);
}

TEST(Reduce, ASumThatMayOverflowPromisesNothing) {
  EXPECT_EQ(made(ir::ReduceKind::kSum, DType::kF32, {{3e38, 0}, {3e38, 0}}).error, kUnbounded);
  const std::vector<Number> cancel = {{1e308, 0}, {1e308, 0}, {-1e308, 0}, {-1e308, 0}};
  EXPECT_EQ(made(ir::ReduceKind::kSum, DType::kF64, cancel).error, kUnbounded);
}

TEST(Reduce, AProductsErrorIsThatOfItsFactors) {
  const Number product = made(ir::ReduceKind::kProduct, DType::kF32, {{2, 0.5}, {3, 0}});
  EXPECT_EQ(product.value, 6);
  EXPECT_GE(product.error, 1.5);
  EXPECT_LT(product.error, 1.51);
}

TEST(Reduce, ThePlaceOfTheLargestIsThatOfTheFirst) {
  const auto place = [](const std::vector<Number>& numbers) {
    return made(ir::ReduceKind::kArgMax, DType::kF32, numbers);
  };
  EXPECT_EQ(place({{1, 0}, {4, 0}, {4, 0}}).value, 1);
  EXPECT_EQ(place({{1, 0}, {4, 0}, {4, 0}}).error, 0);
  EXPECT_EQ(place({{kNoNumber, 0}, {-5, 0}}).value, 1);
  const Number open = place({{4.1, 0.2}, {0, 0}, {0, 0}, {4, 0.2}});
  EXPECT_EQ(open.value, 0);
  EXPECT_EQ(open.error, 3) << "the last may be the largest";
}

}  // namespace
}  // namespace kiln::reference
