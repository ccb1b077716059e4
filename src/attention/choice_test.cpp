// Problems of attention: what is none, how it lies, and what is chosen for it. No GPU is needed.
#include "attention/choice.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "emit/cuda/launch_plan.h"
#include "gemm/program.h"
#include "gemm/sample_test_support.h"

namespace kiln::attention {
namespace {

constexpr int kMultiprocessors = 132;

Problem problem_of(std::int64_t depth) {
  return {.batch = 2,
          .queries = 300,
          .keys = 500,
          .heads = 8,
          .key_heads = 2,
          .depth = depth,
          .causal = true};
}

const target::Arch& hopper() { return *target::find_arch("sm_90a"); }

std::string reason_of(const Problem& problem) {
  const auto whole = normalised(problem);
  if (!whole) return whole.error().text();
  const auto choice = choose(*whole, hopper(), kMultiprocessors);
  return choice ? "" : choice.error().text();
}

bool says(const Problem& problem, const std::string& text) {
  const std::string reason = reason_of(problem);
  EXPECT_NE(reason.find(text), std::string::npos) << reason;
  return !reason.empty();
}

TEST(AttentionProblem, SpacingsAreWrittenOut) {
  Problem problem = problem_of(64);
  problem.k = {.batch = 2 * 500 * 64, .row = 64, .head = 500 * 64};  // [batch, head, key, depth]
  const auto whole = normalised(problem);
  ASSERT_TRUE(whole) << whole.error().text();
  EXPECT_EQ(whole->q, (Spacing{300 * 8 * 64, 8 * 64, 64}));
  EXPECT_EQ(whole->k, problem.k);
  EXPECT_EQ(whole->v, (Spacing{500 * 2 * 64, 2 * 64, 64}));
  problem.batch = 1;
  problem.q.batch = 7;  // of one batch it does not matter
  const auto one = normalised(problem);
  ASSERT_TRUE(one) << one.error().text();
  EXPECT_EQ(one->q.batch, 300 * 8 * 64);
}

TEST(AttentionProblem, WhatIsNoneIsSaid) {
  Problem problem = problem_of(64);
  problem.key_heads = 3;
  EXPECT_TRUE(says(problem, "8 heads of q share 3 of k and v"));
  problem = problem_of(64);
  problem.keys = 0;
  EXPECT_TRUE(says(problem, "extents lie between 1 and 2147483647"));
  problem = problem_of(64);
  problem.o.row = 8;
  EXPECT_TRUE(says(problem, "rows of o lie 8 elements apart, and take 64"));
  problem = problem_of(64);
  problem.o = {.batch = 1 << 20, .row = 512, .head = 128};  // heads reach into the next row
  EXPECT_TRUE(says(problem, "rows of o lie 512 elements apart, and take 960"));
  problem = problem_of(64);
  problem.v.head = -64;
  EXPECT_TRUE(says(problem, "v steps by -64 elements"));
  problem = problem_of(64);
  problem.k.batch = std::int64_t{1} << 40;
  EXPECT_TRUE(says(problem, "k reaches over more than 1099511627776 elements"));
  problem = problem_of(64);
  problem.queries = problem.heads = (std::int64_t{1} << 31) - 1;
  problem.key_heads = 1;
  EXPECT_TRUE(says(problem, "q reaches over more than"));
}

TEST(AttentionChoice, WhatNoKernelTakesIsSaid) {
  Problem problem = problem_of(32);
  EXPECT_TRUE(
      says(problem, "a depth of 32, it takes 64, 96, 128, 192 with values of 128, 192 and 256"));
  problem = problem_of(128);
  problem.value_depth = 64;
  EXPECT_TRUE(says(problem, "a depth of 128 with values of 64, it takes 64, 96"));
  problem = problem_of(64);
  problem.dtype = DType::kF32;
  EXPECT_TRUE(says(problem, "tensors of f32"));
  problem = problem_of(64);
  problem.v.row = 2 * 64 + 4;
  EXPECT_TRUE(says(problem, "rows of v lie 264 bytes apart, it needs multiples of 16"));
  const auto whole = normalised(problem_of(64));
  ASSERT_TRUE(whole);
  const auto choice = choose(*whole, *target::find_arch("sm_80"), 108);
  ASSERT_FALSE(choice);
  EXPECT_NE(choice.error().text().find("sm_80 has no matrix units of warpgroups"),
            std::string::npos);
}

TEST(AttentionProblem, GradientsAreAProblemOfTheirOwn) {
  Problem problem = problem_of(64);
  const auto forward = normalised(problem);
  problem.backward = true;
  problem.o.row = 8;  // only read
  problem.dk = {.batch = 2 * 500 * 64, .row = 64, .head = 500 * 64};
  const auto whole = normalised(problem);
  ASSERT_TRUE(forward && whole) << whole.error().text();
  EXPECT_NE(*whole, *forward);
  EXPECT_EQ(text(*whole), text(*forward) + ", backward");
  EXPECT_EQ(whole->dout, (Spacing{300 * 8 * 64, 8 * 64, 64}));
  EXPECT_EQ(whole->dq, whole->dout);
  EXPECT_EQ(whole->dk, problem.dk);
  EXPECT_EQ(whole->dv, (Spacing{500 * 2 * 64, 2 * 64, 64}));
  problem.dv.head = 8;
  EXPECT_TRUE(says(problem, "heads of dv lie 8 elements apart, and take 64"));
  problem.dv = {};
  problem.dout.row = 8 * 64 + 4;
  EXPECT_TRUE(says(problem, "rows of dout lie 1032 bytes apart, it needs multiples of 16"));
  problem = problem_of(192);
  problem.backward = true;
  problem.value_depth = 128;
  EXPECT_TRUE(says(problem,
                   "attention_backward_sm90: a depth of 192 with values of 128, it takes 64, 96, "
                   "128 and 256"));
}

TEST(AttentionProblem, BoundsThatHideNoKeyAreNone) {
  Problem problem = problem_of(64);  // 300 queries, 500 keys
  problem.causal = false;
  problem.left = 499;
  problem.right = 299;
  auto whole = normalised(problem);
  ASSERT_TRUE(whole) << whole.error().text();
  EXPECT_EQ(std::pair(whole->left, whole->right), std::pair(std::int64_t{-1}, std::int64_t{-1}));
  EXPECT_FALSE(whole->causal);
  problem.left = 498;
  problem.right = 298;
  whole = normalised(problem);
  ASSERT_TRUE(whole) << whole.error().text();
  EXPECT_EQ(std::pair(whole->left, whole->right), std::pair(std::int64_t{498}, std::int64_t{298}));
  EXPECT_EQ(text(*whole),
            "bf16 q[2,300,8,64] k[2,500,2,64], 498 keys to the left, 298 keys to the right");
  problem.right = 0;  // a causal mask
  whole = normalised(problem);
  ASSERT_TRUE(whole) << whole.error().text();
  EXPECT_TRUE(whole->causal && whole->right == -1 && whole->left == 498);
  problem.causal = true;
  problem.right = 7;  // which a causal mask hides
  EXPECT_EQ(*normalised(problem), *whole);
  EXPECT_EQ(whole->value_depth, 64);
}

TEST(AttentionProblem, OptionsThatAreNoneAreSaid) {
  Problem problem = problem_of(64);
  problem.left = -2;
  EXPECT_TRUE(says(problem, "a window of -2 keys to the left: 0 and more are possible, and -1"));
  problem = problem_of(64);
  problem.soft_cap = -1;
  EXPECT_TRUE(says(problem, "a soft cap of -1: numbers from 0, for none, to 1e+38 are possible"));
  problem = problem_of(64);
  problem.soft_cap = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(says(problem, "a soft cap of nan"));
  problem = problem_of(64);
  problem.value_depth = -64;
  EXPECT_TRUE(says(problem, "extents lie between 1 and 2147483647"));
  problem = problem_of(64);
  problem.heads = problem.key_heads = 1;
  problem.queries = problem.keys = std::int64_t{1} << 30;
  problem.left = 5;
  EXPECT_TRUE(says(problem, "a window with 2147483648 queries and keys, 1073741824 are possible"));
}

// What of a program's parameters kernels have by address. The others are seen through tensor maps
// alone, which have strides.
std::set<std::string> addressed(const gemm::Program& program) {
  std::set<std::string> out;
  for (const emit::LaunchPlan& plan : emit::plan_launches(program.module, program.function())) {
    for (const emit::ParamSlot& slot : plan.slots) {
      if (slot.kind != emit::SlotKind::kParam) continue;
      out.insert(program.function().params[slot.param].name);
    }
  }
  return out;
}

bool maps_alone(const gemm::Program& program) {
  return addressed(program) == std::set<std::string>{"lse"};
}

// Masks, soft caps and depths of values, with each kernel: what it is compiled with, and what not.
TEST(AttentionChoice, OptionsAreDefines) {
  for (const bool backward : {false, true}) {
    Problem problem = problem_of(64);
    problem.backward = backward;
    const auto plain = choose(*normalised(problem), hopper(), kMultiprocessors);
    ASSERT_TRUE(plain) << plain.error().text();
    for (const char* name : {"LEFT", "RIGHT", "SOFT_CAP", "DV"}) {
      EXPECT_EQ(gemm::text(*plain).find(name), std::string::npos) << gemm::text(*plain);
    }
    problem.causal = false;
    problem.left = 20;
    problem.right = 30;
    problem.soft_cap = 2;
    const auto choice = choose(*normalised(problem), hopper(), kMultiprocessors);
    ASSERT_TRUE(choice) << choice.error().text();
    EXPECT_TRUE(std::ranges::is_sorted(choice->defines));
    for (const char* text : {"CAUSAL=false", "LEFT=true", "RIGHT=true", "SOFT_CAP=true"}) {
      EXPECT_NE(gemm::text(*choice).find(text), std::string::npos) << gemm::text(*choice);
    }
    const auto program = gemm::compile(*choice, hopper());
    ASSERT_TRUE(program) << program.error().text();
  }
}

TEST(AttentionChoice, EveryDepthHasAKernelOfGradients) {
  gemm::Sample sample;
  for (const std::int64_t depth : {64, 96, 128, 256}) {
    for (const DType dtype : {DType::kBF16, DType::kF16}) {
      Problem problem = problem_of(depth);
      problem.dtype = dtype;
      problem.causal = dtype == DType::kBF16;
      problem.backward = true;
      const auto whole = normalised(problem);
      ASSERT_TRUE(whole);
      const auto choice = choose(*whole, hopper(), kMultiprocessors);
      ASSERT_TRUE(choice) << choice.error().text();
      EXPECT_EQ(choice->kernel, "attention_backward_sm90");
      EXPECT_TRUE(std::ranges::is_sorted(choice->defines));
      if (!sample.has_next()) continue;
      const auto program = gemm::compile(*choice, hopper());
      ASSERT_TRUE(program) << program.error().text();
      // At 256 dk and dv leave from registers, and cannot have gaps.
      EXPECT_TRUE(maps_alone(**program) || depth == 256) << depth;
    }
  }
}

TEST(AttentionChoice, SumsInAnyOrderAreForWhoAllowsThem) {
  gemm::Sample sample;
  for (const std::int64_t depth : {64, 96, 128, 256}) {
    Problem problem = problem_of(depth);
    problem.backward = true;
    problem.causal = true;
    for (const bool any_order : {false, true}) {
      problem.any_order = any_order;
      const auto whole = normalised(problem);
      ASSERT_TRUE(whole);
      EXPECT_EQ(text(*whole).ends_with("backward in any order"), any_order);
      const auto choice = choose(*whole, hopper(), kMultiprocessors);
      ASSERT_TRUE(choice) << choice.error().text();
      const bool adds = gemm::text(*choice).find("DETERMINISTIC=false") != std::string::npos;
      EXPECT_EQ(adds, any_order && (depth == 64 || depth == 128)) << gemm::text(*choice);
      if (!sample.has_next()) continue;
      const auto program = gemm::compile(*choice, hopper());
      ASSERT_TRUE(program) << program.error().text();
    }
  }
}

// Every row of the table is a kernel that compiles, for tensors that lie anyhow.
TEST(AttentionChoice, EveryDepthHasAKernel) {
  gemm::Sample sample;
  const std::pair<std::int64_t, std::int64_t> depths[] = {{64, 64},   {96, 96},   {128, 128},
                                                          {192, 128}, {192, 192}, {256, 256}};
  for (const auto& [depth, value_depth] : depths) {
    for (const DType dtype : {DType::kBF16, DType::kF16}) {
      Problem problem = problem_of(depth);
      problem.value_depth = value_depth;
      problem.dtype = dtype;
      problem.causal = dtype == DType::kBF16;
      const auto whole = normalised(problem);
      ASSERT_TRUE(whole);
      const auto choice = choose(*whole, hopper(), kMultiprocessors);
      ASSERT_TRUE(choice) << choice.error().text();
      EXPECT_EQ(choice->kernel, "attention_sm90");
      EXPECT_TRUE(std::ranges::is_sorted(choice->defines));
      if (!sample.has_next()) continue;
      const auto program = gemm::compile(*choice, hopper());
      ASSERT_TRUE(program) << program.error().text();
      EXPECT_EQ((*program)->function().name, "attention");
      // From 192 on the result leaves from registers, and cannot have gaps.
      EXPECT_TRUE(maps_alone(**program) || value_depth >= 192) << depth;
    }
  }
}

// 300 queries and 500 keys of seven sequences.
Problem of_sequences(std::int64_t depth) {
  Problem problem = problem_of(depth);
  problem.batch = 1;
  problem.sequences = 7;
  return problem;
}

TEST(AttentionOfSequences, TheirNumberIsPartOfTheProblem) {
  const auto whole = normalised(of_sequences(64));
  ASSERT_TRUE(whole) << whole.error().text();
  EXPECT_EQ(text(*whole), "bf16 q[300,8,64] k[500,2,64] of 7 sequences, causal");
  Problem problem = of_sequences(64);
  problem.sequences = 8;
  EXPECT_NE(*normalised(problem), *whole);
  problem.batch = 2;
  EXPECT_TRUE(says(problem, "8 sequences in a batch of 2: it is 1 then"));
  problem = of_sequences(64);
  problem.sequences = -1;
  EXPECT_TRUE(says(problem, "-1 sequences: 0, for a batch, to 2147483646 are possible"));
  problem.sequences = 1 << 28;
  EXPECT_TRUE(says(problem, "268435465 tiles of queries of 8 heads, 2147483647 are possible"));
}

// The value of a define; "" where there is none.
std::string define_of(const gemm::Choice& choice, std::string_view name) {
  for (const auto& [known, value] : choice.defines) {
    if (known == name) return value;
  }
  return "";
}

std::string drawn_of(const Problem& problem) {
  const auto whole = normalised(problem);
  if (!whole) return whole.error().text();
  const auto choice = choose(*whole, hopper(), kMultiprocessors);
  return choice ? define_of(*choice, "DRAWN") : choice.error().text();
}

TEST(AttentionChoice, BalancedProblemsOfManyUnevenItemsAreDrawn) {
  Problem problem{.batch = 4,
                  .queries = 4096,
                  .keys = 4096,
                  .heads = 16,
                  .key_heads = 16,
                  .depth = 128,
                  .causal = true,
                  .balanced = true};
  const auto with = [&](const auto& change) {
    Problem out = problem;
    change(out);
    return drawn_of(out);
  };
  EXPECT_EQ(drawn_of(problem), "true");
  EXPECT_EQ(with([](Problem& p) { p.causal = false, p.right = 30; }), "true");
  EXPECT_EQ(with([](Problem& p) { p.depth = 64, p.keys = p.queries = 2048; }), "true");
  EXPECT_EQ(with([](Problem& p) { p.depth = 256, p.keys = p.queries = 2048; }), "");  // not faster
  EXPECT_EQ(with([](Problem& p) { p.balanced = false; }), "");
  EXPECT_EQ(with([](Problem& p) { p.causal = false; }), "");               // all alike
  EXPECT_EQ(with([](Problem& p) { p.left = 100; }), "");                   // nearly so
  EXPECT_EQ(with([](Problem& p) { p.queries = 128, p.heads = 16; }), "");  // an item for each block
  EXPECT_EQ(with([](Problem& p) { p.batch = 1, p.sequences = 3, p.causal = false; }), "true");
  EXPECT_EQ(with([](Problem& p) { p.batch = 1, p.sequences = 3, p.queries = 900; }), "");
  EXPECT_EQ(with([](Problem& p) { p.backward = true; }), "");
}

TEST(AttentionChoice, BlocksOfAClusterHaveQueriesEach) {
  struct Case {
    std::int64_t depth;
    std::int64_t keys;
    bool causal;
  };
  for (const Case& one : {Case{64, 20000, false}, Case{128, 1000, false}, Case{128, 20000, false},
                          Case{256, 1000, false}, Case{256, 20000, true}}) {
    for (const std::int64_t queries : {100, 1000}) {
      const auto whole = normalised({.queries = queries,
                                     .keys = one.keys,
                                     .heads = 64,
                                     .key_heads = 8,
                                     .depth = one.depth,
                                     .causal = one.causal,
                                     .balanced = true});
      ASSERT_TRUE(whole) << whole.error().text();
      const auto choice = choose(*whole, hopper(), kMultiprocessors);
      ASSERT_TRUE(choice) << choice.error().text();
      EXPECT_EQ(define_of(*choice, "CLUSTER"), queries == 100 ? "" : "2") << one.depth;
    }
  }
}

TEST(AttentionChoice, WhatIsDrawnHasAKernelForEveryDepth) {
  gemm::Sample sample;
  const std::pair<std::int64_t, std::int64_t> depths[] = {{64, 64},   {96, 96},   {128, 128},
                                                          {192, 128}, {192, 192}, {256, 256}};
  for (const auto& [depth, value_depth] : depths) {
    for (const std::int64_t sequences : {0, 5}) {
      const auto whole = normalised({.queries = 40000,
                                     .keys = 40000,
                                     .heads = 2,
                                     .key_heads = 1,
                                     .depth = depth,
                                     .causal = true,
                                     .value_depth = value_depth,
                                     .sequences = sequences,
                                     .balanced = true});
      ASSERT_TRUE(whole) << whole.error().text();
      const auto choice = choose(*whole, hopper(), kMultiprocessors);
      ASSERT_TRUE(choice) << choice.error().text();
      const bool in_pairs = depth == 256 && sequences == 0;  // of blocks that share keys
      EXPECT_EQ(define_of(*choice, "DRAWN"), in_pairs ? "" : "true");
      EXPECT_EQ(define_of(*choice, "CLUSTER"), in_pairs ? "2" : "");
      EXPECT_TRUE(std::ranges::is_sorted(choice->defines));
      if (!sample.has_next()) continue;
      const auto program = gemm::compile(*choice, hopper());
      EXPECT_TRUE(program) << program.error().text();
    }
  }
}

TEST(AttentionOfSequences, EveryDepthHasAKernel) {
  gemm::Sample sample;
  const std::pair<std::int64_t, std::int64_t> depths[] = {{64, 64},   {96, 96},   {128, 128},
                                                          {192, 128}, {192, 192}, {256, 256}};
  for (const auto& [depth, value_depth] : depths) {
    for (const bool causal : {false, true}) {
      Problem problem = of_sequences(depth);
      problem.value_depth = value_depth;
      problem.causal = causal;
      problem.left = causal ? -1 : 100;
      problem.soft_cap = causal ? 0 : 30;
      const auto whole = normalised(problem);
      ASSERT_TRUE(whole) << whole.error().text();
      const auto choice = choose(*whole, hopper(), kMultiprocessors);
      ASSERT_TRUE(choice) << choice.error().text();
      EXPECT_EQ(choice->kernel, "attention_varlen_sm90");
      EXPECT_TRUE(std::ranges::is_sorted(choice->defines));
      if (!sample.has_next()) continue;
      const auto program = gemm::compile(*choice, hopper());
      ASSERT_TRUE(program) << program.error().text();
      // q, k and v lie anyhow.
      EXPECT_EQ(addressed(**program),
                (std::set<std::string>{"cu_seqlens_k", "cu_seqlens_q", "lse", "o"}));
    }
  }
}

TEST(AttentionOfSequences, EveryDepthHasAKernelOfGradients) {
  gemm::Sample sample;
  for (const std::int64_t depth : {64, 96, 128, 256}) {
    Problem problem = of_sequences(depth);
    problem.backward = true;
    problem.left = depth == 96 ? 20 : -1;
    problem.soft_cap = depth == 64 ? 30 : 0;
    const auto whole = normalised(problem);
    ASSERT_TRUE(whole) << whole.error().text();
    const auto choice = choose(*whole, hopper(), kMultiprocessors);
    ASSERT_TRUE(choice) << choice.error().text();
    EXPECT_EQ(choice->kernel, "attention_varlen_backward_sm90");
    EXPECT_TRUE(std::ranges::is_sorted(choice->defines));
    if (!sample.has_next()) continue;
    const auto program = gemm::compile(*choice, hopper());
    ASSERT_TRUE(program) << program.error().text();
    EXPECT_EQ(addressed(**program),
              (std::set<std::string>{"cu_seqlens_k", "cu_seqlens_q", "dk", "dq", "dv", "lse"}));
  }
}

Problem of_8_bits(std::int64_t depth) {
  Problem problem = problem_of(depth);
  problem.dtype = DType::kE4M3;
  return problem;
}

TEST(AttentionOf8Bits, EveryDepthHasAKernel) {
  gemm::Sample sample;
  for (const std::int64_t depth : {64, 128, 256}) {
    for (const bool causal : {false, true}) {
      for (const std::int64_t keys : {500, 9000}) {
        Problem problem = of_8_bits(depth);
        problem.causal = causal;
        problem.left = causal ? 70 : -1;
        problem.keys = keys;
        const auto whole = normalised(problem);
        ASSERT_TRUE(whole) << whole.error().text();
        const auto choice = choose(*whole, hopper(), kMultiprocessors);
        ASSERT_TRUE(choice) << choice.error().text();
        EXPECT_EQ(choice->kernel, "attention_f8_sm90");
        EXPECT_EQ(define_of(*choice, "LEFT"), causal ? "true" : "");
        EXPECT_TRUE(std::ranges::is_sorted(choice->defines));
        if (!sample.has_next()) continue;
        const auto program = gemm::compile(*choice, hopper());
        EXPECT_TRUE(program) << program.error().text();
      }
    }
  }
  const auto program = gemm::compile({.kernel = "transpose_f8_sm90"}, hopper());
  EXPECT_TRUE(program) << program.error().text();
}

TEST(AttentionOf8Bits, BlocksDrawWhereTheyMay) {
  gemm::Sample sample;
  for (const std::int64_t depth : {64, 128, 256}) {
    Problem problem = of_8_bits(depth);
    problem.queries = problem.keys = 8192;
    EXPECT_EQ(drawn_of(problem), "");
    problem.balanced = true;
    EXPECT_EQ(drawn_of(problem), "true");
    const auto choice = choose(*normalised(problem), hopper(), kMultiprocessors);
    ASSERT_TRUE(choice) << choice.error().text();
    if (sample.has_next()) {
      const auto program = gemm::compile(*choice, hopper());
      EXPECT_TRUE(program) << program.error().text();
    }
    problem.causal = false;
    EXPECT_EQ(drawn_of(problem), "");
  }
}

TEST(AttentionOf8Bits, WhatIsOf16BitsAloneIsSaid) {
  Problem problem = of_8_bits(128);
  problem.soft_cap = 30;
  EXPECT_TRUE(says(problem, "a soft cap with tensors of f8_e4m3"));
  problem = of_8_bits(128);
  problem.backward = true;
  EXPECT_TRUE(says(problem, "gradients with tensors of f8_e4m3"));
  problem = of_8_bits(128);
  problem.batch = 1;
  problem.sequences = 3;
  EXPECT_TRUE(says(problem, "sequences of any lengths with tensors of f8_e4m3"));
  EXPECT_TRUE(says(of_8_bits(96), "a depth of 96, it takes 64, 128 and 256"));
  problem = of_8_bits(128);
  problem.v.row = 2 * 128 + 8;
  EXPECT_TRUE(says(problem, "rows of v lie 264 bytes apart, it needs multiples of 16"));
}

}  // namespace
}  // namespace kiln::attention
