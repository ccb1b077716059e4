// Attention in `kiln bench random` over the driver of paper: a plain program stands for the kernel,
// right or wrong in ways that a kernel may be. Skipped without NVRTC.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <sstream>

#include "driver/commands.h"
#include "gemm/fake_driver_test.h"
#include "measure/random_attention.h"

namespace kiln::measure {
namespace {

enum class Mistake : std::uint8_t {
  kNone,
  kElement,    // one is wrong
  kUnwritten,  // one is left
  kGap,        // something is written between two rows
  kRandom,     // every start has other bits
  kInput,      // an input is overwritten
  kBefore,     // something is written in front of the result
  kHeads,      // all heads have the first one's keys
  kLse,        // a sum is wrong
};

// Heads in pairs share keys; o has gaps between its rows.
constexpr std::int64_t kBatch = 2;
constexpr std::int64_t kQueries = 20;
constexpr std::int64_t kKeys = 30;
constexpr std::int64_t kHeads = 4;
constexpr std::int64_t kDepth = 64;
constexpr std::int64_t kRowOfO = kHeads * kDepth + 8;
constexpr const char* kText =
    "attention bf16 batch=2 queries=20 keys=30 heads=4 key_heads=2 depth=64 scale=0.125 "
    "o=5280,264,64 offset=16 seed=5";
constexpr const char* kBackwardText =
    "attention f16 batch=1 queries=9 keys=12 heads=2 key_heads=1 depth=64 causal backward "
    "scale=0.125 seed=5";

constexpr const char* kTextOf8Bits =
    "attention f8_e4m3 batch=2 queries=9 keys=12 heads=2 key_heads=1 depth=64 factors "
    "scale=0.125 o=1184,128,64 offset=32 seed=5";

Mistake mistake;
int starts;
AttentionTensors* inputs;  // what q, k and v are to hold

// The tensors of a launch: a map says where each begins, what lies there says which it is.
struct Placed {
  const std::byte* q = nullptr;
  const std::byte* k = nullptr;
  const std::byte* v = nullptr;
  std::byte* o = nullptr;
  float* lse = nullptr;
};

Placed placed(const FakeLaunch& launch) {
  constexpr int kMaps = 4;
  constexpr std::size_t kRow = 2 * kDepth;
  Placed out;
  for (int i = 0; i < kMaps; ++i) {
    std::byte* data = nullptr;
    std::memcpy(&data, launch.parameters[i], sizeof data);
    const std::pair<const Tensor*, const std::byte**> known[] = {
        {&inputs->q, &out.q}, {&inputs->k, &out.k}, {&inputs->v, &out.v}};
    bool found = false;
    for (const auto& [tensor, place] : known) {
      if (std::memcmp(data, tensor->bytes.data(), kRow) != 0) continue;
      *place = data;
      found = true;
    }
    if (!found) out.o = data;
  }
  std::memcpy(&out.lse, launch.parameters[kMaps], sizeof out.lse);
  return out;
}

double element(const std::byte* x, std::int64_t rows, std::int64_t heads,
               std::array<std::int64_t, 3> place, std::int64_t d) {
  const auto [b, i, h] = place;
  return load_element(DType::kBF16, x,
                      static_cast<std::size_t>(((b * rows + i) * heads + h) * kDepth + d));
}

void one_row(const Placed& at, std::int64_t b, std::int64_t h, std::int64_t i) {
  const std::int64_t shared = mistake == Mistake::kHeads ? 0 : h / 2;
  double sum = 0;
  std::vector<double> value(kDepth);
  for (std::int64_t j = 0; j < kKeys; ++j) {
    double score = 0;
    for (std::int64_t d = 0; d < kDepth; ++d) {
      score += element(at.q, kQueries, kHeads, {b, i, h}, d) *
               element(at.k, kKeys, kHeads / 2, {b, j, shared}, d);
    }
    const double weight = std::exp(score / 8);
    sum += weight;
    for (std::int64_t d = 0; d < kDepth; ++d) {
      value[static_cast<std::size_t>(d)] +=
          weight * element(at.v, kKeys, kHeads / 2, {b, j, shared}, d);
    }
  }
  const std::int64_t first = b * kQueries * kRowOfO + i * kRowOfO + h * kDepth;
  for (std::int64_t d = 0; d < kDepth; ++d) {
    store_element(DType::kBF16, at.o, static_cast<std::size_t>(first + d),
                  value[static_cast<std::size_t>(d)] / sum);
  }
  at.lse[(b * kHeads + h) * kQueries + i] = static_cast<float>(std::log(sum));
}

void attend(const FakeLaunch& launch) {
  if (std::string_view(launch.kernel) != "attention" || inputs == nullptr) return;
  const Placed at = placed(launch);
  ASSERT_TRUE(at.q != nullptr && at.k != nullptr && at.v != nullptr && at.o != nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at.q) % 256, 16U);
  for (std::int64_t place = 0; place < kBatch * kHeads * kQueries; ++place) {
    one_row(at, place / kQueries / kHeads, place / kQueries % kHeads, place % kQueries);
  }
  ++starts;
  constexpr std::size_t kOne = 3 * kRowOfO + 2 * kDepth + 7;  // o[0, 3, 2, 7]
  const double one = load_element(DType::kBF16, at.o, kOne);
  if (mistake == Mistake::kElement) store_element(DType::kBF16, at.o, kOne, one + 0.25);
  if (mistake == Mistake::kUnwritten) std::memset(at.o + 2 * kOne, 0xff, 2);
  if (mistake == Mistake::kGap) std::memset(at.o + 2 * kHeads * kDepth + 4, 0, 2);
  if (mistake == Mistake::kBefore) std::memset(at.o - 500, 0, 2);
  if (mistake == Mistake::kRandom) at.lse[0] += static_cast<float>(starts % 2) * 1e-6F;
  if (mistake == Mistake::kInput) std::memset(const_cast<std::byte*>(at.v) + 300, 0, 2);
  if (mistake == Mistake::kLse) at.lse[kQueries] += 0.01F;
}

class BenchRandomAttention : public FakeDriverTest {
 protected:
  BenchRandomAttention() : FakeDriverTest(attend) {}
  void prepare() override {
    mistake = Mistake::kNone;
    const auto problem = parse_attention(kText);
    ASSERT_TRUE(problem);
    inputs_ = make_inputs(*problem, {.scale = problem->scale});
    inputs = &inputs_;
  }
  io::Exit run(const std::string& only) {
    starts = 0;
    out_.str("");
    err_.str("");
    io::Console console{.out = out_, .err = err_};
    BenchOptions options;
    options.program.file = "random";
    options.only = only;
    return driver::bench(options, console);
  }
  void expect_told(Mistake what, const std::string& words) {
    mistake = what;
    EXPECT_EQ(run(kText), io::Exit::kWrong) << words;
    EXPECT_NE(err_.str().find(words), std::string::npos) << err_.str();
    // All that is needed to see it again.
    EXPECT_NE(err_.str().find(kText), std::string::npos) << err_.str();
    EXPECT_NE(out_.str().find("1 problems checked, 1 outside"), std::string::npos) << out_.str();
  }
  AttentionTensors inputs_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(BenchRandomAttention, ARightKernelIsFine) {
  EXPECT_EQ(run(kText), io::Exit::kFine) << err_.str();
  EXPECT_EQ(err_.str(), "");
  EXPECT_EQ(starts, 2);
  EXPECT_NE(out_.str().find("1 problems checked, 0 outside, 1 kernels"), std::string::npos)
      << out_.str();
  EXPECT_NE(out_.str().find("1  attention bf16"), std::string::npos) << out_.str();
  EXPECT_NE(out_.str().find("1  attention_sm90"), std::string::npos) << out_.str();
}

TEST_F(BenchRandomAttention, EveryMistakeIsTold) {
  expect_told(Mistake::kElement, "1 of 10240 elements of `o`, the first is [0, 3, 2, 7]");
  expect_told(Mistake::kUnwritten, "1 of 10240 elements of `o`, the first is [0, 3, 2, 7]");
  expect_told(Mistake::kLse, "1 of 160 elements of `lse`, the first is [0, 1, 0]");
  expect_told(Mistake::kGap, "`o` is not all that was written: bytes between its rows");
  expect_told(Mistake::kBefore, "`o` is not all that was written: bytes around it");
  expect_told(Mistake::kInput, "`v` was overwritten");
  expect_told(Mistake::kRandom, "`lse` has other bits in the second run");
  expect_told(Mistake::kHeads, "elements of `o`, the first is [0, 0, 2, 1]");
}

// Nothing is computed here: what must be written is not.
TEST_F(BenchRandomAttention, GradientsThatNobodyWroteAreTold) {
  inputs = nullptr;
  EXPECT_EQ(run(kBackwardText), io::Exit::kWrong);
  for (const char* words : {"1152 of 1152 elements of `dq`", "768 of 768 elements of `dk`",
                            "768 of 768 elements of `dv`", "attention_backward_sm90"}) {
    EXPECT_NE(err_.str().find(words), std::string::npos) << words << "\n" << err_.str();
  }
  EXPECT_EQ(err_.str().find("overwritten"), std::string::npos) << err_.str();
}

// 8-bit floats have two launches and factors; o has 16 bits.
TEST_F(BenchRandomAttention, ResultsOf8BitsThatNobodyWroteAreTold) {
  inputs = nullptr;
  EXPECT_EQ(run(kTextOf8Bits), io::Exit::kWrong);
  for (const char* words : {"2304 of 2304 elements of `o`", "36 of 36 elements of `lse`",
                            "attention_f8_sm90", kTextOf8Bits}) {
    EXPECT_NE(err_.str().find(words), std::string::npos) << words << "\n" << err_.str();
  }
  EXPECT_EQ(err_.str().find("overwritten"), std::string::npos) << err_.str();
}

TEST_F(BenchRandomAttention, WhatIsNotServedIsCounted) {
  EXPECT_EQ(run("attention bf16 queries=4 keys=4 heads=1 key_heads=1 depth=8"), io::Exit::kUsage);
  EXPECT_NE(out_.str().find("refused: 1 of 1 drawn"), std::string::npos) << out_.str();
  EXPECT_NE(err_.str().find("leave no problem of `random`"), std::string::npos) << err_.str();
}

TEST_F(BenchRandomAttention, ADriverThatFailsEndsIt) {
  fake_->launch_status = 700;
  EXPECT_EQ(run(kText), io::Exit::kWrong);
  EXPECT_NE(err_.str().find("CUDA_ERROR_OF_PAPER"), std::string::npos) << err_.str();
}

}  // namespace
}  // namespace kiln::measure
