// Problems over a cache: what is none, what is chosen, and how many blocks share a sequence. No GPU is
// needed.
#include "attention/decode_choice.h"

#include <gtest/gtest.h>

#include "emit/cuda/launch_plan.h"
#include "gemm/program.h"

namespace kiln::attention {
namespace {

constexpr int kMultiprocessors = 132;

DecodeProblem paged_problem(std::int64_t depth) {
  return {.batch = 4,
          .heads = 32,
          .key_heads = 8,
          .depth = depth,
          .page_size = 64,
          .pages = 1000,
          .pages_of_sequence = 128};
}

const target::Arch& hopper() { return *target::find_arch("sm_90a"); }

Result<DecodeChoice> chosen(const DecodeProblem& problem) {
  const auto whole = normalised(problem);
  if (!whole) return Unexpected{whole.error()};
  return choose(*whole, hopper(), kMultiprocessors);
}

bool says(const DecodeProblem& problem, const std::string& text) {
  const auto choice = chosen(problem);
  if (choice) return false;
  EXPECT_NE(choice.error().text().find(text), std::string::npos) << choice.error().text();
  return true;
}

TEST(AttentionDecodeProblem, WhatIsNotSaidIsWrittenOut) {
  DecodeProblem problem = paged_problem(128);
  problem.causal = true;
  problem.v = {
      .batch = 2 * 64 * 8 * 128, .row = 128, .head = 64 * 128};  // [page, head, row, depth]
  const auto whole = normalised(problem);
  ASSERT_TRUE(whole) << whole.error().text();
  EXPECT_EQ(whole->keys, 128 * 64);
  EXPECT_EQ(whole->k, (Spacing{64 * 8 * 128, 8 * 128, 128}));
  EXPECT_EQ(whole->v, problem.v);
  EXPECT_FALSE(whole->causal);  // of one query
  EXPECT_EQ(text(*whole), "bf16 q[4,1,32,128] k[1000,64,8,128], 128 pages each");
}

TEST(AttentionDecodeProblem, WhatIsNoneIsSaid) {
  DecodeProblem problem = paged_problem(128);
  problem.key_heads = 5;
  EXPECT_TRUE(says(problem, "32 heads of q share 5 of k and v"));
  problem = paged_problem(128);
  problem.keys = 77;
  EXPECT_TRUE(says(problem, "77 keys of each sequence beside pages"));
  problem = paged_problem(128);
  problem.page_size = 0;
  EXPECT_TRUE(says(problem, "1000 pages, and 128 of each sequence, without a page size"));
  problem = paged_problem(128);
  problem.pages_of_sequence = 0;
  EXPECT_TRUE(says(problem, "extents lie between 1 and 2147483647"));
  problem = paged_problem(128);
  problem.pages_of_sequence = std::int64_t{1} << 26;
  EXPECT_TRUE(says(problem, "67108864 pages of 64 keys of a sequence are more than"));
  problem = paged_problem(128);
  problem.k.row = -1;
  EXPECT_TRUE(says(problem, "k steps by -1 elements"));
}

TEST(AttentionDecodeChoice, WhatIsLackingIsSaid) {
  DecodeProblem problem = paged_problem(96);
  EXPECT_TRUE(says(problem, "a depth of 96, it takes 64, 128 and 256"));
  problem = paged_problem(128);
  problem.page_size = 20;
  EXPECT_TRUE(says(problem, "pages of 20 keys, it takes multiples of 8"));
  problem = paged_problem(128);
  problem.k.row = 8 * 128 + 4;
  EXPECT_TRUE(says(problem, "rows of k lie 2056 bytes apart, it needs multiples of 16"));
  problem = paged_problem(128);
  problem.queries = 20000;
  EXPECT_TRUE(says(problem, "80000 queries of heads that share keys, it takes 65535"));
  const auto old = choose(*normalised(paged_problem(64)), *target::find_arch("sm_80"), 108);
  ASSERT_FALSE(old);
  EXPECT_NE(old.error().text().find("sm_80 has no matrix units"), std::string::npos);
}

std::string value_of(const DecodeChoice& choice, const std::string& name) {
  for (const auto& [define, value] : choice.kernel.defines) {
    if (define == name) return value;
  }
  return "";
}

TEST(AttentionDecodeChoice, APieceIsOfOnePage) {
  const std::pair<std::int64_t, const char*> sizes[] = {
      {8, "8"}, {16, "16"}, {24, "8"}, {32, "32"}, {48, "16"}, {64, "64"}, {256, "64"}};
  for (const auto& [size, piece] : sizes) {
    DecodeProblem problem = paged_problem(64);
    problem.page_size = size;
    const auto choice = chosen(problem);
    ASSERT_TRUE(choice) << choice.error().text();
    EXPECT_EQ(value_of(*choice, "PIECE"), piece) << size;
  }
}

// Few sequences are shared by as many blocks as run at once, many by one each.
TEST(AttentionDecodeChoice, BlocksFillTheMultiprocessors) {
  const auto splits_of = [](std::int64_t batch, std::int64_t pages) {
    DecodeProblem problem = paged_problem(128);
    problem.batch = batch;
    problem.pages_of_sequence = pages;
    const auto choice = chosen(problem);
    EXPECT_EQ(value_of(*choice, "SPLIT"), choice->splits > 1 ? "true" : "false");
    return choice->splits;
  };
  EXPECT_EQ(splits_of(1, 1), 1);  // one tile
  EXPECT_EQ(splits_of(1, 5), 5);  // no more parts than tiles
  EXPECT_EQ(splits_of(64, 128), 1);
  EXPECT_EQ(splits_of(27, 128), 1);  // 216 of 264 blocks
  for (std::int64_t batch = 1; batch <= 26; ++batch) {
    const std::int64_t blocks = batch * 8 * splits_of(batch, 1000);
    const std::int64_t rounds = (blocks + 263) / 264;
    EXPECT_GE(blocks * 100, rounds * 264 * 82) << batch;
  }
}

// Each depth and kind of cache compiles for Hopper as it is chosen.
TEST(AttentionDecodeChoice, WhatIsChosenCompiles) {
  for (const std::int64_t depth : {64, 128, 256}) {
    for (const bool pages : {false, true}) {
      DecodeProblem problem = paged_problem(depth);
      problem.queries = pages ? 3 : 1;
      problem.causal = pages;
      problem.batch = pages ? 4 : 100;
      problem.dtype = pages ? DType::kBF16 : DType::kF16;
      if (!pages) {
        problem.keys = 1000;
        problem.page_size = problem.pages = problem.pages_of_sequence = 0;
      }
      const auto choice = chosen(problem);
      ASSERT_TRUE(choice) << choice.error().text();
      const auto program = gemm::compile(choice->kernel, hopper());
      ASSERT_TRUE(program) << program.error().text();
      EXPECT_EQ(text(*choice).find("attention_decode_sm90 -D CAUSAL="), 0U) << text(*choice);
    }
  }
}

}  // namespace
}  // namespace kiln::attention
