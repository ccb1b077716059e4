#include "reference/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kiln::reference {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// One element of f16.
Comparison one(double expected, double bound, double actual) {
  const Output output{.name = "y",
                      .param = 0,
                      .dtype = DType::kF16,
                      .shape = {1},
                      .expected = {expected},
                      .bound = {bound}};
  Tensor tensor = Tensor::zeros(DType::kF16, {1});
  tensor.set(0, actual);
  return compare(output, tensor);
}

TEST(Compare, WorstIsTheErrorOverTheBound) {
  EXPECT_EQ(one(3.5, 0.5, 3.75).worst, 0.5);
  EXPECT_EQ(one(3.5, 0.5, 3.75).outside, 0);
  EXPECT_EQ(one(3.5, 0.5, 4.0).outside, 0);
  EXPECT_EQ(one(3.5, 0.5, 4.25).outside, 1);
  EXPECT_EQ(one(3.5, 0.5, 4.25).worst, 1.5);
}

TEST(Compare, BoundZeroMeansEqual) {
  EXPECT_EQ(one(12, 0, 12).worst, 0);
  EXPECT_EQ(one(12, 0, 13).worst, kInf);
  EXPECT_EQ(one(0, 0, -0.0).outside, 0);
  // 0.1 is no f16; the exact expectation is the f16 nearest to it.
  EXPECT_EQ(one(0.1, 0, round_to(DType::kF16, 0.1)).outside, 0);
}

TEST(Compare, NanAndInfinityMustBeTheSame) {
  EXPECT_EQ(one(kNan, 0, kNan).outside, 0);
  EXPECT_EQ(one(kNan, 0, 1).outside, 1);
  EXPECT_EQ(one(1, 100, kNan).outside, 1);
  EXPECT_EQ(one(kInf, 0, kInf).outside, 0);
  EXPECT_EQ(one(kInf, 0, -kInf).outside, 1);
  EXPECT_EQ(one(kInf, 0, 65504).outside, 1);
}

TEST(Compare, ValueNearTheEdgeMayBecomeInfinityOfItsSign) {
  EXPECT_EQ(one(65500, 40, kInf).outside, 0);
  EXPECT_EQ(one(65500, 40, -kInf).outside, 1);
  EXPECT_EQ(one(65500, 40, 65504).outside, 0);
  EXPECT_EQ(one(60000, 40, kInf).outside, 1);
}

TEST(Compare, UnboundedElementsAreCounted) {
  const Comparison comparison = one(1, kInf, 5);
  EXPECT_EQ(comparison.outside, 0);
  EXPECT_EQ(comparison.not_compared, 1);
}

TEST(Compare, WhatTheProgramWasNotRunForIsComparedByTheOtherStatementOrLeftOut) {
  const Output program{.name = "y",
                       .param = 0,
                       .dtype = DType::kF32,
                       .shape = {4},
                       .expected = {1, 1, 0, 0},
                       .bound = {0.5, kInf, 0, 0},
                       .known = {true, true, false, false}};
  const Output user{.name = "y",
                    .param = 0,
                    .dtype = DType::kF32,
                    .shape = {4},
                    .expected = {1, 1, 1, 1},
                    .bound = {0.5, kInf, 0.5, kInf}};
  Tensor tensor = rounded(user);
  Comparison comparison = compare({&program, &user}, tensor);
  EXPECT_EQ(comparison.outside, 0);
  EXPECT_EQ(comparison.not_compared, 1);
  EXPECT_EQ(comparison.left_out, 1);
  EXPECT_EQ(comparison.outside_left_out, 0);
  tensor.set(2, 2);
  comparison = compare({&program, &user}, tensor);
  EXPECT_EQ(comparison.outside, 1);
  EXPECT_EQ(comparison.outside_left_out, 1);
  tensor.set(0, 2);
  comparison = compare({&program, &user}, tensor);
  EXPECT_EQ(comparison.outside, 2);
  EXPECT_EQ(comparison.outside_left_out, 1);
}

// A formula without a finite bound says nothing, whatever the program says of itself.
TEST(Compare, WhatTheFormulaSaysNothingOfIsNotCompared) {
  const Output program{.name = "y",
                       .param = 0,
                       .dtype = DType::kF32,
                       .shape = {4},
                       .expected = {1, 1, 1, 1},
                       .bound = {0.1, 0.1, 0.1, kInf}};
  Output user = program;
  user.bound = {kInf, 2, 0.1, kInf};
  user.slack = {kInf, kInf, 0, kInf};
  Tensor tensor = rounded(program);
  const Comparison comparison = compare({&program, &user}, tensor);
  EXPECT_EQ(comparison.outside, 0);
  EXPECT_EQ(comparison.not_compared, 3);
  EXPECT_EQ(comparison.unstated, 2);
  tensor.set(0, 2);
  EXPECT_EQ(compare({&program, &user}, tensor).outside, 1) << "by the program's own bound";
  user.slack = {0.5, 0.5, 0, kInf};
  EXPECT_EQ(compare({&program, &user}, rounded(program)).not_compared, 1)
      << "it is held against what the program computes without rounding";
  user.is_final = true;
  user.slack.clear();
  EXPECT_EQ(compare({&program, &user}, rounded(program)).not_compared, 1) << "an array";
}

// Of a branch that cannot be decided the program's number is one of several: it is not held against a formula.
TEST(Compare, WhatTheProgramDoesNotKnowIsNotHeldAgainstTheFormula) {
  const Output program{.name = "y",
                       .param = 0,
                       .dtype = DType::kF32,
                       .shape = {2},
                       .expected = {0, 1},
                       .bound = {kInf, 0.1}};
  Output user = program;
  user.expected = {1, 1};
  user.bound = {0.1, 0.1};
  user.slack = {0.01, 0.01};
  Tensor tensor = rounded(user);
  EXPECT_EQ(compare({&program, &user}, tensor).outside, 0);
  tensor.set(0, 2);
  EXPECT_EQ(compare({&program, &user}, tensor).outside, 1) << "by the formula's bound";
}

TEST(Compare, FirstMismatchHasItsCoordinates) {
  const Output output{.name = "y",
                      .param = 0,
                      .dtype = DType::kF32,
                      .shape = {2, 3},
                      .expected = {0, 1, 2, 3, 4, 5},
                      .bound = {0, 0, 0, 0, 0, 0}};
  Tensor tensor = rounded(output);
  EXPECT_EQ(compare(output, tensor).outside, 0);
  tensor.set(4, 40);
  tensor.set(5, 50);
  const Comparison comparison = compare(output, tensor);
  EXPECT_EQ(comparison.outside, 2);
  ASSERT_TRUE(comparison.first.has_value());
  EXPECT_EQ(comparison.first->coordinates, (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(comparison.first->expected, 4);
  EXPECT_EQ(comparison.first->actual, 40);
}

TEST(Compare, UnwrittenElementsAreCountedApart) {
  const Output output{.name = "y",
                      .param = 0,
                      .dtype = DType::kF32,
                      .shape = {4},
                      .expected = {1, 2, 3, 4},
                      .bound = {0, 0, 0, 0}};
  Tensor tensor = rounded(output);
  tensor.set(0, 10);
  tensor.set(2, 30);
  const Comparison comparison = compare({&output}, tensor, {true, true, false, false});
  EXPECT_EQ(comparison.outside, 2);
  EXPECT_EQ(comparison.outside_unwritten, 1) << "element 1 is unwritten, but right";
  ASSERT_TRUE(comparison.first.has_value());
  EXPECT_EQ(comparison.first->coordinates, (std::vector<std::int64_t>{2}));
  EXPECT_EQ(compare({&output}, tensor, {true, true, true, true}).outside_unwritten, 2);
}

}  // namespace
}  // namespace kiln::reference
