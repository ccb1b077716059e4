// The check of what `kiln bench attention` measured: a right result passes, wrong ones do not. And which rows it has.
#include "measure/attention_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "io/fill.h"
#include "measure/bench_attention.h"

namespace kiln::measure {
namespace {

constexpr std::int64_t kBatch = 2;
constexpr std::int64_t kQueries = 40;
constexpr std::int64_t kKeys = 30;  // the first ten queries see none with a mask
constexpr std::int64_t kHeads = 4;
constexpr std::int64_t kKeyHeads = 2;
constexpr std::int64_t kDepth = 16;
constexpr float kScale = 0.25F;

class AttentionCheckTest : public testing::TestWithParam<bool> {
 protected:
  AttentionCheckTest() {
    problem_ = *attention::normalised({.batch = kBatch,
                                       .queries = kQueries,
                                       .keys = kKeys,
                                       .heads = kHeads,
                                       .key_heads = kKeyHeads,
                                       .depth = kDepth,
                                       .causal = GetParam()});
    const auto filled = [](std::int64_t rows, std::int64_t heads, std::uint64_t ordinal) {
      Tensor out = Tensor::zeros(DType::kBF16, {kBatch, rows, heads, kDepth});
      io::fill_tensor_in_parts(
          out, {.fill = io::Fill::kNormal, .seed = 1, .ordinal = ordinal, .longest = 1});
      return out;
    };
    tensors_ = {.q = filled(kQueries, kHeads, 0),
                .k = filled(kKeys, kKeyHeads, 1),
                .v = filled(kKeys, kKeyHeads, 2),
                .o = Tensor::zeros(DType::kBF16, {kBatch, kQueries, kHeads, kDepth}),
                .lse = Tensor::zeros(DType::kF32, {kBatch, kHeads, kQueries})};
    for (std::int64_t row = 0; row < kBatch * kQueries * kHeads; ++row) compute(row);
  }

  static double at(const Tensor& x, std::int64_t b, std::int64_t i, std::int64_t h,
                   std::int64_t d) {
    return x.get(static_cast<std::size_t>(((b * x.shape[1] + i) * x.shape[2] + h) * kDepth + d));
  }

  void compute(std::int64_t row) {
    const std::int64_t h = row % kHeads;
    const std::int64_t i = row / kHeads % kQueries;
    const std::int64_t b = row / kHeads / kQueries;
    const std::int64_t seen = GetParam() ? i + kKeys - kQueries + 1 : kKeys;
    double sum = 0;
    std::vector<double> value(kDepth);
    for (std::int64_t j = 0; j < seen; ++j) {
      double score = 0;
      for (std::int64_t d = 0; d < kDepth; ++d) {
        score += at(tensors_.q, b, i, h, d) * at(tensors_.k, b, j, h / 2, d);
      }
      const double weight = std::exp(score * static_cast<double>(kScale));
      sum += weight;
      for (std::int64_t d = 0; d < kDepth; ++d) {
        value[static_cast<std::size_t>(d)] += weight * at(tensors_.v, b, j, h / 2, d);
      }
    }
    for (std::int64_t d = 0; d < kDepth; ++d) {
      tensors_.o.set(static_cast<std::size_t>(row * kDepth + d),
                     sum > 0 ? value[static_cast<std::size_t>(d)] / sum : 0);
    }
    tensors_.lse.set(static_cast<std::size_t>((b * kHeads + h) * kQueries + i), std::log(sum));
  }

  [[nodiscard]] reference::Comparison check() const {
    return check_attention(problem_, tensors_, kScale, 3);
  }

  attention::Problem problem_;
  AttentionTensors tensors_;
};

TEST_P(AttentionCheckTest, ARightResultPasses) {
  const reference::Comparison found = check();
  EXPECT_EQ(found.outside, 0);
  EXPECT_GT(found.elements, 200);
  EXPECT_LE(found.worst, 1);
}

TEST_P(AttentionCheckTest, AWrongScaleDoesNot) {
  EXPECT_GT(check_attention(problem_, tensors_, 0.26F, 3).outside, 0);
}

TEST_P(AttentionCheckTest, AnElementThatIsNotFiniteDoesNot) {
  const auto last = static_cast<std::size_t>(tensors_.o.elements() - 1);
  tensors_.o.set(last, std::nan(""));
  const reference::Comparison found = check();
  EXPECT_GE(found.outside, 1);
  EXPECT_EQ(found.first->coordinates.back(), kDepth - 1);
  EXPECT_TRUE(std::isinf(found.worst));
}

TEST_P(AttentionCheckTest, SumsThatAreWrongDoNot) {
  for (std::int64_t i = 0; i < tensors_.lse.elements(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    tensors_.lse.set(at, tensors_.lse.get(at) + 0.01);
  }
  EXPECT_GT(check().outside, 0);
}

INSTANTIATE_TEST_SUITE_P(Masks, AttentionCheckTest, testing::Bool());

TEST(BenchAttention, RowsAreOfOneSize) {
  const auto cases = attention_cases();
  EXPECT_EQ(cases.size(), 30U);
  std::set<std::string> names;
  for (const attention::Problem& problem : cases) {
    EXPECT_EQ(problem.batch * problem.queries, 16384);
    EXPECT_EQ(problem.heads * problem.depth, 2048);
    names.insert(shape_of(problem) + types_of(problem));
  }
  EXPECT_EQ(names.size(), cases.size());
  EXPECT_EQ(shape_of(cases.front()), "D=64,S=1024,B=16,H=32");
  EXPECT_EQ(types_of(cases.back()), "bf16, causal");
}

}  // namespace
}  // namespace kiln::measure
