#include "reference/einsum.h"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/compare.h"

namespace kiln::reference {
namespace {

struct Evaluator {
  Sources sources;
  Diagnostics diags;
  std::vector<Named> tensors;

  std::optional<Output> operator()(const std::string& text, const EinsumNumerics& numerics = {}) {
    const auto einsum = parse_einsum(text, sources, diags);
    if (!einsum) return std::nullopt;
    auto output = evaluate(*einsum, tensors, numerics, diags);
    if (!output) return std::nullopt;
    return *output;
  }
  // The id of the only diagnostic.
  std::string_view mistake(const std::string& text) {
    EXPECT_FALSE((*this)(text).has_value()) << text;
    EXPECT_EQ(diags.all().size(), 1U) << text;
    const std::string_view id = diags.all().empty() ? "" : info(diags.all()[0].id).name;
    diags = {};
    return id;
  }
};

class EinsumTest : public testing::Test {
 protected:
  EinsumTest() {
    for (std::size_t i = 0; i < 6; ++i) lhs_.set(i, static_cast<double>(i + 1));
    for (std::size_t i = 0; i < 12; ++i) rhs_.set(i, static_cast<double>(i) - 5);
    run_.tensors = {{"lhs", &lhs_}, {"rhs", &rhs_}, {"output", &output_}, {"v", &vector_}};
  }
  Tensor lhs_ = Tensor::zeros(DType::kF16, {2, 3});
  Tensor rhs_ = Tensor::zeros(DType::kF16, {4, 3});
  Tensor output_ = Tensor::zeros(DType::kF16, {2, 4});
  Tensor vector_ = Tensor::zeros(DType::kF32, {2});
  Evaluator run_;
};

TEST_F(EinsumTest, MatrixProductOfIntegersIsExact) {
  const auto output = run_("output[m,n] = lhs[m,k] * rhs[n,k]");
  ASSERT_TRUE(output.has_value());
  EXPECT_EQ(output->shape, (std::vector<std::int64_t>{2, 4}));
  // Row 0 is (1, 2, 3), row 1 of rhs is (-2, -1, 0).
  EXPECT_EQ(output->expected[1], -4);
  EXPECT_EQ(output->expected[7], 4 * 4 + 5 * 5 + 6 * 6);
  for (const double bound : output->bound) EXPECT_EQ(bound, 0);
}

TEST_F(EinsumTest, BoundFollowsTheFormula) {
  for (std::size_t i = 0; i < 6; ++i) lhs_.set(i, lhs_.get(i) + 0.25);
  const EinsumNumerics numerics{{.roundoff = 0x1p-11, .depth = 16}, DType::kF16};
  const auto output = run_("output[m,n] = lhs[m,k] * rhs[n,k]", numerics);
  ASSERT_TRUE(output.has_value());
  double value = 0;
  double magnitude = 0;
  for (std::size_t k = 0; k < 3; ++k) {
    value += lhs_.get(k) * rhs_.get(k);
    magnitude += std::fabs(lhs_.get(k) * rhs_.get(k));
  }
  EXPECT_EQ(output->expected[0], value);
  const double formula = 3 * 0x1p-11 * magnitude + 0x1p-11 * std::fabs(value);
  EXPECT_NEAR(output->bound[0], formula, 1e-3 * formula);
  EXPECT_GE(output->bound[0], formula);
}

TEST_F(EinsumTest, FactorsThatAreRoundedBringTheirRoundoff) {
  const EinsumNumerics numerics{{.roundoff = 0x1p-23, .depth = 16}, DType::kF32, DType::kTF32};
  lhs_ = Tensor::zeros(DType::kF32, {2, 3});
  output_ = Tensor::zeros(DType::kF32, {2, 4});
  for (std::size_t i = 0; i < 6; ++i) lhs_.set(i, static_cast<double>(i + 1));
  const auto exact = run_("output[m,n] = lhs[m,k] * rhs[n,k]", numerics);
  ASSERT_TRUE(exact.has_value());
  for (const double bound : exact->bound) EXPECT_EQ(bound, 0);  // small integers are values of tf32
  lhs_.set(0, 1 + 0x1p-12);
  const auto output = run_("output[m,n] = lhs[m,k] * rhs[n,k]", numerics);
  ASSERT_TRUE(output.has_value());
  double magnitude = 0;
  for (std::size_t k = 0; k < 3; ++k) magnitude += std::fabs(lhs_.get(k) * rhs_.get(k));
  EXPECT_GE(output->bound[0], 0x1p-11 * magnitude);
  EXPECT_LE(output->bound[0], 0x1.1p-11 * magnitude);
}

// Operands that are read in place are cut, which is twice as far off as rounding.
TEST_F(EinsumTest, FactorsThatAreCutBringTwiceTheirRoundoff) {
  lhs_ = Tensor::zeros(DType::kF32, {2, 3});
  output_ = Tensor::zeros(DType::kF32, {2, 4});
  for (std::size_t i = 0; i < 6; ++i) lhs_.set(i, static_cast<double>(i + 1) + 0x1p-12);
  double magnitude = 0;
  for (std::size_t k = 0; k < 3; ++k) magnitude += std::fabs(lhs_.get(k) * rhs_.get(k));
  EinsumNumerics numerics{{.roundoff = 0x1p-23, .depth = 16}, DType::kF32, DType::kTF32};
  numerics.cut_off = true;
  const auto output = run_("output[m,n] = lhs[m,k] * rhs[n,k]", numerics);
  ASSERT_TRUE(output.has_value());
  EXPECT_GE(output->bound[0], 0x1p-10 * magnitude);
  EXPECT_LE(output->bound[0], 0x1.1p-10 * magnitude);
}

// Integers are not made of floats unsaid: such a factor is multiplied elsewhere, in f32.
TEST_F(EinsumTest, FactorsThatIntegerOperandsDoNotHoldAreNotRounded) {
  lhs_ = Tensor::zeros(DType::kS8, {2, 3});
  rhs_ = Tensor::zeros(DType::kS8, {4, 3});
  output_ = Tensor::zeros(DType::kF32, {2, 4});
  for (std::size_t i = 0; i < 6; ++i) lhs_.set(i, static_cast<double>(i + 1));
  for (std::size_t i = 0; i < 12; ++i) rhs_.set(i, static_cast<double>(i) - 5);
  vector_.set(0, 0.1);
  vector_.set(1, 100.3);
  const EinsumNumerics integers{{.roundoff = 0, .depth = 32}, DType::kS32, DType::kS8};
  const auto output = run_("output[m,n] = lhs[m,k] * rhs[n,k] * v[m]", integers);
  const auto in_f32 = run_("output[m,n] = lhs[m,k] * rhs[n,k] * v[m]");
  ASSERT_TRUE(output.has_value() && in_f32.has_value());
  EXPECT_EQ(output->bound, in_f32->bound);
  EXPECT_LT(output->slack[7], 0.01);
  vector_.set(0, 1);
  vector_.set(1, 2);
  const auto held = run_("output[m,n] = lhs[m,k] * rhs[n,k] * v[m]", integers);
  EXPECT_EQ(held->bound, std::vector<double>(8)) << "the operands hold them";
}

TEST_F(EinsumTest, IntegersAreExactOnlyAsFarAsTheInstructionIs) {
  Accumulation few{.roundoff = 0x1p-8, .depth = 32, .exact_integers = 4};
  const auto narrow = run_("output[m,n] = lhs[m,k] * rhs[n,k]", {few, DType::kF32});
  ASSERT_TRUE(narrow.has_value());
  EXPECT_GT(narrow->bound[7], 0);  // 4 * 4 + 5 * 5 + 6 * 6
  few.exact_integers = 77;
  EXPECT_EQ(run_("output[m,n] = lhs[m,k] * rhs[n,k]", {few, DType::kF32})->bound[7], 0);
  // An integer accumulator rounds nothing, whatever the instruction says.
  few.exact_integers = 4;
  EXPECT_EQ(run_("output[m,n] = lhs[m,k] * rhs[n,k]", {few, DType::kS32})->bound[7], 0);
}

TEST_F(EinsumTest, FactorsBroadcastsAndTraces) {
  const auto scaled = run_("v[m] = 0.5 * lhs[m,k] * rhs[m,k]");
  EXPECT_FALSE(scaled.has_value());  // m is 2 in one and 4 in the other
  run_.diags = {};
  const auto sums = run_("v[i] = 2 * lhs[i,k]");
  ASSERT_TRUE(sums.has_value());
  EXPECT_EQ(sums->expected, (std::vector<double>{12, 30}));
  const auto copies = run_("output[i,j] = v[i]");
  ASSERT_TRUE(copies.has_value());
  EXPECT_EQ(copies->expected.size(), 8U);
}

TEST_F(EinsumTest, AccumulatorThatMayOverflowIsUnbounded) {
  lhs_.set(0, 60000);
  const EinsumNumerics numerics{{.roundoff = 0x1p-11, .depth = 16}, DType::kF16};
  const auto output = run_("output[m,n] = lhs[m,k] * rhs[n,k]", numerics);
  ASSERT_TRUE(output.has_value());
  EXPECT_TRUE(std::isinf(output->bound[0]));
  EXPECT_EQ(output->bound[4], 0);
}

TEST_F(EinsumTest, WhatTheKernelMakesStandsOnTheLeftOnly) {
  const Tensor made{DType::kF32, {2}, {}};
  run_.tensors.push_back({"made", &made, false});
  EXPECT_EQ(run_.mistake("made[m] = 2 * made[m]"), "expect-reads-result");
  const auto output = run_("made[m] = lhs[m,k]");
  ASSERT_TRUE(output.has_value());
  EXPECT_EQ(output->expected.size(), 2U);
}

TEST_F(EinsumTest, MistakesAreNamed) {
  EXPECT_EQ(run_.mistake(""), "expect-syntax");
  EXPECT_EQ(run_.mistake("output[m,n]"), "expect-syntax");
  EXPECT_EQ(run_.mistake("output[m,n] = lhs[m,k] +"), "expect-syntax");
  EXPECT_EQ(run_.mistake("output[m,n] = lhs[m,k"), "expect-syntax");
  EXPECT_EQ(run_.mistake("output[m,n] = lhs[m,] * rhs[n,k]"), "expect-syntax");
  EXPECT_EQ(run_.mistake("output[m,n] = \xff"), "expect-syntax");
  EXPECT_EQ(run_.mistake("output[m,n] = lsh[m,k] * rhs[n,k]"), "expect-unknown-name");
  EXPECT_EQ(run_.mistake("output[m,n] = lhs[m,k,j] * rhs[n,k]"), "expect-rank");
  EXPECT_EQ(run_.mistake("output[m,n] = lhs[k,m] * rhs[n,k]"), "expect-extent");
  EXPECT_EQ(run_.mistake("output[m,m] = lhs[m,k] * rhs[n,k]"), "expect-repeated-index");
}

}  // namespace
}  // namespace kiln::reference
