// The check of attention that was computed on a GPU: a kernel's result passes, whatever it rounds on
// its way, and wrong ones do not. And which rows `kiln bench attention` has.
#include "measure/attention_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
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

// What a kernel may do otherwise than the right one.
struct Kernel {
  float scale = kScale;
  std::int64_t later = 0;      // so many keys more are seen than the mask lets through
  std::int64_t earlier = 0;    // the same on the left
  std::int64_t first_key = 0;  // those before are left out
  bool caps = true;
  bool delta = true;      // of gradients: o is taken off
  bool all_heads = true;  // gradients of keys are added up over all heads that share them
};

// As a kernel computes, in f32 and with weights that are rounded.
class RoundingKernel {
 public:
  RoundingKernel(const attention::Problem& problem, AttentionTensors& tensors, const Kernel& how)
      : p_(problem), t_(tensors), how_(how) {}

  void forward() {
    each_query([&](std::int64_t b, std::int64_t h, std::int64_t i) {
      float sum = 0;
      std::vector<float> value(kDepth);
      const float shift = shift_of(b, h, i);
      for (std::int64_t j = first(i); j < seen(i); ++j) {
        const float weight = std::exp(capped(how_.scale * score(b, h, i, j)) + shift);
        sum += weight;
        for (std::int64_t d = 0; d < kDepth; ++d) {
          value[static_cast<std::size_t>(d)] += rounded(weight) * at(t_.v, b, j, h / 2, d);
        }
      }
      for (std::int64_t d = 0; d < kDepth; ++d) {
        const float mean = value[static_cast<std::size_t>(d)] / sum * factor(t_.v_scale, b, h / 2);
        t_.o.set(index(t_.o, b, i, h, d), sum > 0 ? static_cast<double>(mean) : 0);
      }
      t_.lse.set(static_cast<std::size_t>((b * kHeads + h) * kQueries + i),
                 static_cast<double>(std::log(sum) - shift));
    });
  }

  void backward() {
    std::vector<float> dk(static_cast<std::size_t>(t_.dk.elements()));
    std::vector<float> dv = dk;
    each_query([&](std::int64_t b, std::int64_t h, std::int64_t i) {
      const float lse =
          static_cast<float>(t_.lse.get(static_cast<std::size_t>((b * kHeads + h) * kQueries + i)));
      float delta = 0;
      for (std::int64_t d = 0; d < kDepth; ++d) {
        delta += at(t_.o, b, i, h, d) * at(t_.dout, b, i, h, d);
      }
      if (!how_.delta) delta = 0;
      std::vector<float> dq(kDepth);
      for (std::int64_t j = first(i); j < seen(i); ++j) {
        const float s = capped(how_.scale * score(b, h, i, j));
        const float p = std::exp(s - lse);
        float dp = 0;
        for (std::int64_t d = 0; d < kDepth; ++d) {
          dp += at(t_.dout, b, i, h, d) * at(t_.v, b, j, h / 2, d);
        }
        const float tangent = p_.soft_cap == 0 || !how_.caps ? 0 : s / p_.soft_cap;
        const float ds = rounded(p * (dp - delta) * (1 - tangent * tangent));
        for (std::int64_t d = 0; d < kDepth; ++d) {
          const std::size_t to = index(t_.dk, b, j, h / 2, d);
          dq[static_cast<std::size_t>(d)] += ds * at(t_.k, b, j, h / 2, d);
          if (!how_.all_heads && h % 2 != 0) continue;
          dk[to] += ds * at(t_.q, b, i, h, d);
          dv[to] += rounded(p) * at(t_.dout, b, i, h, d);
        }
      }
      for (std::int64_t d = 0; d < kDepth; ++d) {
        t_.dq.set(index(t_.dq, b, i, h, d),
                  static_cast<double>(how_.scale * dq[static_cast<std::size_t>(d)]));
      }
    });
    for (std::size_t e = 0; e < dk.size(); ++e) {
      t_.dk.set(e, static_cast<double>(how_.scale * dk[e]));
      t_.dv.set(e, static_cast<double>(dv[e]));
    }
  }

 private:
  static std::size_t index(const Tensor& x, std::int64_t b, std::int64_t i, std::int64_t h,
                           std::int64_t d) {
    return static_cast<std::size_t>(((b * x.shape[1] + i) * x.shape[2] + h) * kDepth + d);
  }
  static float at(const Tensor& x, std::int64_t b, std::int64_t i, std::int64_t h, std::int64_t d) {
    return static_cast<float>(x.get(index(x, b, i, h, d)));
  }
  static float factor(const Tensor& factors, std::int64_t b, std::int64_t key_head) {
    if (factors.bytes.empty()) return 1;
    return static_cast<float>(factors.get(static_cast<std::size_t>(b * kKeyHeads + key_head)));
  }
  // What matrix instructions of 8-bit floats keep of a sum.
  [[nodiscard]] float kept(float sum) const {
    if (!has_8_bits(p_)) return sum;
    int exponent = 0;
    const float part = std::frexp(sum, &exponent);
    return std::ldexp(std::trunc(std::ldexp(part, 14)), exponent - 14);
  }
  // Of 8 bits weights are at most 2^8, by which they are all larger.
  [[nodiscard]] float shift_of(std::int64_t b, std::int64_t h, std::int64_t i) const {
    if (!has_8_bits(p_)) return 0;
    float largest = -std::numeric_limits<float>::infinity();
    for (std::int64_t j = first(i); j < seen(i); ++j) {
      largest = std::max(largest, capped(how_.scale * score(b, h, i, j)));
    }
    return std::isfinite(largest) ? 8 * std::log(2.0F) - largest : 0;
  }
  [[nodiscard]] float rounded(float x) const {
    return static_cast<float>(round_to(p_.dtype, static_cast<double>(x)));
  }
  [[nodiscard]] float score(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    float sum = 0;
    for (std::int64_t d = 0; d < kDepth; ++d)
      sum += at(t_.q, b, i, h, d) * at(t_.k, b, j, h / 2, d);
    return kept(sum) * factor(t_.q_scale, b, h / 2) * factor(t_.k_scale, b, h / 2);
  }
  // As the hardware does, whose tangent has 11 bits.
  [[nodiscard]] float capped(float score) const {
    if (p_.soft_cap == 0 || !how_.caps) return score;
    int exponent = 0;
    const float part = std::frexp(std::tanh(score / p_.soft_cap), &exponent);
    return p_.soft_cap * std::ldexp(std::trunc(std::ldexp(part, 12)), exponent - 12);
  }
  [[nodiscard]] std::int64_t seen(std::int64_t i) const {
    const std::int64_t right = p_.causal ? 0 : p_.right;
    const std::int64_t last = i + kKeys - kQueries + 1 + right + how_.later;
    return right == -1 ? kKeys : std::min(kKeys, last);
  }
  [[nodiscard]] std::int64_t first(std::int64_t i) const {
    const std::int64_t from = p_.left == -1 ? 0 : i + kKeys - kQueries - p_.left - how_.earlier;
    return std::max(from, how_.first_key);
  }
  template <class Visit>
  static void each_query(Visit&& visit) {
    for (std::int64_t b = 0; b < kBatch; ++b) {
      for (std::int64_t h = 0; h < kHeads; ++h) {
        for (std::int64_t i = 0; i < kQueries; ++i) visit(b, h, i);
      }
    }
  }

  const attention::Problem& p_;
  AttentionTensors& t_;
  Kernel how_;
};

struct AttentionKind {
  DType dtype;
  bool causal;
  std::int64_t left = -1;
  std::int64_t right = -1;
  float soft_cap = 0;

  [[nodiscard]] bool is_bounded() const { return causal || right != -1; }
};

class AttentionCheckTest : public testing::TestWithParam<AttentionKind> {
 protected:
  AttentionCheckTest() {
    problem_ = *attention::normalised({.dtype = GetParam().dtype,
                                       .batch = kBatch,
                                       .queries = kQueries,
                                       .keys = kKeys,
                                       .heads = kHeads,
                                       .key_heads = kKeyHeads,
                                       .depth = kDepth,
                                       .causal = GetParam().causal,
                                       .left = GetParam().left,
                                       .right = GetParam().right,
                                       .soft_cap = GetParam().soft_cap});
    const auto filled = [](std::int64_t rows, std::int64_t heads, std::uint64_t ordinal) {
      Tensor out = Tensor::zeros(GetParam().dtype, {kBatch, rows, heads, kDepth});
      io::fill_tensor(out,
                      {.fill = io::Fill::kNormal, .seed = 1, .ordinal = ordinal, .longest = 1});
      return out;
    };
    tensors_.q = filled(kQueries, kHeads, 0);
    tensors_.k = filled(kKeys, kKeyHeads, 1);
    tensors_.v = filled(kKeys, kKeyHeads, 2);
    tensors_.dout = filled(kQueries, kHeads, 3);
    tensors_.dq = Tensor::zeros(problem_.dtype, tensors_.q.shape);
    tensors_.o = Tensor::zeros(result_type(problem_), tensors_.q.shape);
    tensors_.dk = tensors_.dv = Tensor::zeros(problem_.dtype, tensors_.k.shape);
    tensors_.lse = Tensor::zeros(DType::kF32, {kBatch, kHeads, kQueries});
    if (has_8_bits(problem_)) add_factors();
    RoundingKernel(problem_, tensors_, {}).forward();
  }

  void add_factors() {
    for (Tensor* each : {&tensors_.q_scale, &tensors_.k_scale, &tensors_.v_scale}) {
      *each = Tensor::zeros(DType::kF32, {kBatch, kKeyHeads});
    }
    for (std::size_t i = 0; i < kBatch * kKeyHeads; ++i) {
      const auto number = static_cast<double>(i);
      tensors_.q_scale.set(i, 0.75 + 0.25 * number);
      tensors_.k_scale.set(i, 1.5 - 0.25 * number);
      tensors_.v_scale.set(i, 0.5 + number);
    }
  }

  void run(const Kernel& how) {
    RoundingKernel kernel(problem_, tensors_, how);
    if (problem_.backward) return kernel.backward();
    kernel.forward();
  }
  [[nodiscard]] std::vector<AttentionFound> check() const {
    return check_attention(problem_, tensors_, {.scale = kScale});
  }
  // Of all results.
  [[nodiscard]] std::int64_t outside() const {
    std::int64_t count = 0;
    for (const AttentionFound& found : check()) count += found.result.outside;
    return count;
  }
  [[nodiscard]] std::int64_t outside(const char* name) const {
    for (const AttentionFound& found : check()) {
      if (std::string_view(found.name) == name) return found.result.outside;
    }
    ADD_FAILURE() << name;
    return 0;
  }

  attention::Problem problem_;
  AttentionTensors tensors_;
};

TEST_P(AttentionCheckTest, ARightResultPasses) {
  const auto found = check();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].result.elements, tensors_.o.elements());
  EXPECT_EQ(found[1].result.elements, tensors_.lse.elements());
  for (const AttentionFound& each : found) {
    EXPECT_EQ(each.result.outside, 0) << each.name;
    EXPECT_LE(each.result.worst, 1) << each.name;
    EXPECT_GT(each.result.worst, 0.01) << each.name;  // a bound that is not far from what happens
  }
}

TEST_P(AttentionCheckTest, ASampleIsOfSomeRows) {
  const auto found = check_attention(problem_, tensors_, {.scale = kScale}, 3);
  EXPECT_EQ(found[0].result.outside, 0);
  EXPECT_EQ(found[0].result.elements, 2 * 8 * kDepth);
  EXPECT_EQ(found[1].result.elements, 2 * 8);
}

TEST_P(AttentionCheckTest, EveryMistakeOfAForwardPassIsFound) {
  run({.scale = 0.26F});
  EXPECT_GT(outside("lse"), 0);
  if (has_8_bits(problem_)) run({.scale = 0.35F});  // o tells of larger ones: weights have 4 bits
  EXPECT_GT(outside("o"), 0);
  run({.first_key = 1});
  EXPECT_GT(outside("o"), 0);
  if (GetParam().is_bounded()) {
    run({.later = 1});
    EXPECT_GT(outside("o"), 0);
    run({.later = -1});
    EXPECT_GT(outside("lse"), 0);
  }
  for (const std::int64_t earlier : {1, -1}) {
    if (GetParam().left == -1) continue;
    run({.earlier = earlier});
    EXPECT_GT(outside("lse"), 0);
  }
  if (GetParam().soft_cap != 0) {
    run({.caps = false});
    EXPECT_GT(outside("o"), 0);
    EXPECT_GT(outside("lse"), 0);
  }
  run({});
  std::swap(tensors_.k, tensors_.v);
  EXPECT_GT(outside("o"), 0);
}

TEST_P(AttentionCheckTest, OneElementThatIsWrongIsFound) {
  for (const double wrong : {std::nan(""), 9.0}) {
    const auto last = static_cast<std::size_t>(tensors_.o.elements() - 1);
    const double before = tensors_.o.get(last);
    tensors_.o.set(last, wrong);
    EXPECT_EQ(outside("o"), 1);
    const auto found = check_attention(problem_, tensors_, {.scale = kScale}, 3);
    EXPECT_GE(found[0].result.outside, std::isnan(wrong) ? 1 : 0);
    EXPECT_EQ(check()[0].result.first->coordinates,
              (std::vector<std::int64_t>{kBatch - 1, kQueries - 1, kHeads - 1, kDepth - 1}));
    tensors_.o.set(last, before);
  }
  tensors_.lse.set(77, tensors_.lse.get(77) + 0.01);
  EXPECT_EQ(outside(), 1);
}

class AttentionOf8BitsTest : public AttentionCheckTest {};

TEST_P(AttentionOf8BitsTest, AnotherFactorIsFound) {
  for (Tensor* each : {&tensors_.q_scale, &tensors_.k_scale, &tensors_.v_scale}) {
    const double before = each->get(1);
    each->set(1, 1.25 * before);
    EXPECT_GT(outside(), 0);
    each->set(1, before);
  }
}

class AttentionGradientsTest : public AttentionCheckTest {};

TEST_P(AttentionGradientsTest, RightGradientsPass) {
  problem_.backward = true;
  run({});
  const auto found = check();
  ASSERT_EQ(found.size(), 3U);
  for (const AttentionFound& each : found) {
    EXPECT_EQ(each.result.outside, 0) << each.name << " " << each.result.worst;
    EXPECT_GT(each.result.worst, 0.02) << each.name;
  }
  EXPECT_EQ(found[0].result.elements, tensors_.dq.elements());
  EXPECT_EQ(found[2].result.elements, tensors_.dv.elements());
  for (const AttentionFound& each : check_attention(problem_, tensors_, {.scale = kScale}, 3)) {
    EXPECT_EQ(each.result.outside, 0) << each.name;
    EXPECT_EQ(each.result.elements, 2 * 8 * kDepth) << each.name;
  }
}

TEST_P(AttentionGradientsTest, EveryMistakeOfGradientsIsFound) {
  problem_.backward = true;
  run({.scale = 0.26F});
  for (const char* name : {"dq", "dk", "dv"}) EXPECT_GT(outside(name), 0) << name;
  run({.delta = false});
  EXPECT_GT(outside("dq"), 0);
  EXPECT_GT(outside("dk"), 0);
  EXPECT_EQ(outside("dv"), 0);
  run({.all_heads = false});
  EXPECT_EQ(outside("dq"), 0);
  EXPECT_GT(outside("dk"), 0);
  EXPECT_GT(outside("dv"), 0);
  run({.first_key = 1});
  EXPECT_GT(outside("dq"), 0);
  EXPECT_GE(outside("dv"), kBatch * kKeyHeads);
  if (GetParam().is_bounded()) {
    run({.later = -1});
    for (const char* name : {"dq", "dk", "dv"}) EXPECT_GT(outside(name), 0) << name;
  }
  if (GetParam().left != -1) {
    run({.earlier = -1});
    for (const char* name : {"dq", "dk", "dv"}) EXPECT_GT(outside(name), 0) << name;
  }
  if (GetParam().soft_cap != 0) {
    run({.caps = false});
    for (const char* name : {"dq", "dk", "dv"}) EXPECT_GT(outside(name), 0) << name;
  }
  run({});
  tensors_.dk.set(5, std::nan(""));
  EXPECT_EQ(outside(), 1);
}

TEST_P(AttentionGradientsTest, TheForwardPassOfGradientsIsTheExactOne) {
  const AttentionTensors computed = tensors_;
  problem_.backward = true;
  fill_forward(problem_, {.scale = kScale}, tensors_);
  problem_.backward = false;
  EXPECT_EQ(outside(), 0);
  EXPECT_EQ(tensors_.lse.shape, computed.lse.shape);
  EXPECT_NE(tensors_.o.bytes, computed.o.bytes);  // not all roundings fall together
}

constexpr AttentionKind kOf8Bits[] = {
    {DType::kE4M3, false}, {DType::kE4M3, true}, {DType::kE4M3, false, 5, 3}};
constexpr AttentionKind kOf16Bits[] = {{DType::kBF16, false},
                                       {DType::kBF16, true},
                                       {DType::kF16, false},
                                       {DType::kF16, true},
                                       {DType::kBF16, false, 5, 3},
                                       {DType::kF16, false, -1, 4},
                                       {DType::kF16, true, 7},
                                       {DType::kBF16, false, 6},
                                       {DType::kBF16, false, -1, -1, 1.5F},
                                       {DType::kF16, true, 9, -1, 1.0F}};

INSTANTIATE_TEST_SUITE_P(Kinds, AttentionCheckTest, testing::ValuesIn(kOf16Bits));
INSTANTIATE_TEST_SUITE_P(KindsOf8Bits, AttentionCheckTest, testing::ValuesIn(kOf8Bits));
INSTANTIATE_TEST_SUITE_P(Kinds, AttentionOf8BitsTest, testing::ValuesIn(kOf8Bits));
INSTANTIATE_TEST_SUITE_P(Kinds, AttentionGradientsTest, testing::ValuesIn(kOf16Bits));

TEST(BenchAttention, RowsAreOfOneSize) {
  for (const std::string_view suite : {"attention", "attention-backward", "attention-fp8"}) {
    const auto cases = attention_cases(suite);
    EXPECT_TRUE(is_attention({.program = {.file = std::string(suite)}}));
    EXPECT_EQ(cases.size(), 30U);
    std::set<std::string> names;
    for (const attention::Problem& problem : cases) {
      EXPECT_EQ(problem.batch * problem.queries, 16384);
      EXPECT_EQ(problem.heads * problem.depth, 2048);
      EXPECT_EQ(problem.backward, suite == "attention-backward");
      names.insert(shape_of(problem) + types_of(problem));
    }
    EXPECT_EQ(names.size(), cases.size());
    EXPECT_EQ(shape_of(cases.front()), "D=64,S=1024,B=16,H=32");
    EXPECT_EQ(types_of(cases.back()),
              suite == "attention-fp8" ? "f8_e4m3, causal" : "bf16, causal");
  }
}

}  // namespace
}  // namespace kiln::measure
