// What a call of kiln/attention_decode.h asks of the driver, with a driver of paper: one launch, or two
// where blocks share a sequence. Kernels are compiled by the real NVRTC; skipped without it.
#define KILN_GEMM_C_ONLY
#include "kiln/attention_decode.h"

#include <array>
#include <string>
#include <vector>

#include "gemm/fake_driver_test.h"

namespace kiln::attention {
namespace {

struct Seen {
  std::array<unsigned, 3> grid;
  unsigned threads;
  const void* stream;
};

class AttentionDecodeStart : public FakeDriverTest {
 protected:
  AttentionDecodeStart() : FakeDriverTest(see) {
    problem_.type = KILN_BF16;
    problem_.batch = 4;
    problem_.heads = 32;
    problem_.key_heads = 8;
    problem_.depth = 128;
    problem_.page_size = 64;
    problem_.pages = 1000;
    problem_.pages_of_sequence = 128;
  }
  void prepare() override {
    seen.clear();
    seen.reserve(64);
  }
  static void see(const FakeLaunch& launch) {
    seen.push_back(
        {{launch.grid[0], launch.grid[1], launch.grid[2]}, launch.threads, launch.stream});
  }
  static inline thread_local std::vector<Seen> seen;
  kiln_attention_decode_problem problem_ = {};
};

kiln_attention_decode_operands operands_at(std::uintptr_t base) {
  const auto at = [&](std::uintptr_t i) { return reinterpret_cast<void*>(base + 4096 * i); };
  kiln_attention_decode_operands operands = {};
  operands.q = at(0), operands.k = at(1), operands.v = at(2), operands.o = at(3);
  operands.lse = static_cast<float*>(at(4));
  operands.lengths = reinterpret_cast<const int32_t*>(base + 4100);
  operands.page_table = static_cast<const int32_t*>(at(6));
  return operands;
}

// 8 blocks for each of 32 heads of keys: 256 of 264 that run at once.
TEST_F(AttentionDecodeStart, BlocksShareASequence) {
  std::size_t bytes = 0;
  ASSERT_EQ(kiln_attention_decode_prepare(&problem_, &bytes), KILN_OK) << kiln_last_error();
  const std::string kernel = kiln_attention_decode_kernel(&problem_, nullptr);
  EXPECT_EQ(kernel.find("attention_decode_sm90 -D CAUSAL=false -D D=128"), 0U) << kernel;
  const auto splits = static_cast<unsigned>(std::stoul(kernel.substr(kernel.find("splits=") + 7)));
  EXPECT_GT(splits, 1U);
  EXPECT_EQ(bytes, std::size_t{splits} * 4 * 32 * (128 + 1) * sizeof(float));
  const kiln_attention_decode_operands operands = operands_at(1 << 20);
  auto* const space = reinterpret_cast<void*>(std::uintptr_t{1} << 30);
  int stream = 0;
  ASSERT_EQ(kiln_attention_decode(&problem_, &operands, space, bytes, &stream), KILN_OK)
      << kiln_last_error();
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].grid, (std::array<unsigned, 3>{32, splits, 1}));
  EXPECT_EQ(seen[0].threads, 128U);
  EXPECT_EQ(seen[1].grid[0] * seen[1].grid[1] * seen[1].grid[2], 4U * 32);
  EXPECT_EQ(seen[1].stream, &stream);
  const int maps = fake_->maps;
  EXPECT_EQ(kiln_attention_decode(&problem_, &operands, space, bytes, &stream), KILN_OK);
  EXPECT_EQ(fake_->maps, maps);  // those of before serve again
  EXPECT_EQ(fake_->synchronisations, 0);
}

TEST_F(AttentionDecodeStart, ManySequencesAreOneLaunch) {
  problem_.batch = 100;
  problem_.page_size = problem_.pages = problem_.pages_of_sequence = 0;
  problem_.keys = 1000;
  std::size_t bytes = 0;
  ASSERT_EQ(kiln_attention_decode_prepare(&problem_, &bytes), KILN_OK) << kiln_last_error();
  kiln_attention_decode_operands operands = operands_at(1 << 20);
  auto* const space = reinterpret_cast<void*>(std::uintptr_t{1} << 30);
  EXPECT_EQ(kiln_attention_decode(&problem_, &operands, space, bytes, nullptr), KILN_INVALID);
  EXPECT_NE(std::string(kiln_last_error()).find("there is a page_table"), std::string::npos);
  operands.page_table = nullptr;
  ASSERT_EQ(kiln_attention_decode(&problem_, &operands, space, bytes, nullptr), KILN_OK)
      << kiln_last_error();
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].grid, (std::array<unsigned, 3>{800, 1, 1}));
}

TEST_F(AttentionDecodeStart, WhatIsOutOfPlaceIsSaid) {
  std::size_t bytes = 0;
  ASSERT_EQ(kiln_attention_decode_prepare(&problem_, &bytes), KILN_OK) << kiln_last_error();
  auto* const space = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 30);
  const auto refused = [&](const kiln_attention_decode_operands& operands, std::size_t size,
                           kiln_status status, const char* text) {
    EXPECT_EQ(kiln_attention_decode(&problem_, &operands, space, size, nullptr), status);
    EXPECT_NE(std::string(kiln_last_error()).find(text), std::string::npos) << kiln_last_error();
  };
  kiln_attention_decode_operands operands = operands_at(1 << 20);
  refused(operands, bytes - 1, KILN_WORKSPACE, "the workspace has");
  operands.lengths = nullptr;
  refused(operands, bytes, KILN_INVALID, "lengths is null");
  operands = operands_at(1 << 20);
  operands.page_table = nullptr;
  refused(operands, bytes, KILN_INVALID, "page_table is null");
  refused(operands_at((1 << 20) + 8), bytes, KILN_INVALID,
          "q begins 8 bytes past a multiple of 16");
  operands = operands_at(1 << 20);
  operands.scale = -1;
  refused(operands, bytes, KILN_INVALID, "the scale is -1, a number above 0 is needed");
  problem_.pages = 1001;
  fake_->capturing = true;
  refused(operands_at(1 << 20), bytes, KILN_NOT_PREPARED, "was not prepared");
  EXPECT_TRUE(seen.empty());
}

}  // namespace
}  // namespace kiln::attention
