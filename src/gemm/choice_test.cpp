// Which kernel serves what: every candidate compiles, choices follow the model, and nothing depends
// on m where it must not.
#include "gemm/choice.h"

#include <gtest/gtest.h>

#include <set>

#include "gemm/kernel_row.h"
#include "gemm/model.h"
#include "gemm/program.h"

namespace kiln::gemm {
namespace {

const target::Arch& hopper() { return *target::find_arch("sm_90a"); }

std::string define(const Choice& choice, const std::string& name) {
  for (const auto& [each, value] : choice.defines) {
    if (each == name) return value;
  }
  return "";
}

Choice chosen(const Problem& problem) {
  const auto choice = choose(problem, hopper(), 132);
  EXPECT_TRUE(choice) << choice.error().text();
  return choice ? *choice : Choice{};
}

std::string refusal(const Problem& problem, const target::Arch& arch = hopper()) {
  const auto choice = choose(problem, arch, 132);
  return choice ? text(*choice) : choice.error().reason;
}

TEST(ChoiceTest, EveryTilingOfEveryRowCompiles) {
  for (const KernelRow& row : kernel_rows()) {
    const TypeRow& types = row.types.front();
    Problem problem{.m = 1024, .n = 1024, .k = 1024, .a = types.a, .b = types.b, .c = types.c};
    problem.block_scales = row.block_scales;
    for (const Tiling& tiling : row.tilings) {
      Choice choice{.kernel = std::string(row.name),
                    .defines = {{"TILE_M", std::to_string(tiling.m)},
                                {"TILE_N", std::to_string(tiling.n)},
                                {"TILE_K", std::to_string(tiling.k)},
                                {"STAGES", std::to_string(tiling.stages)},
                                {"SPLITS", std::to_string(tiling.splits)}}};
      for (auto& each : problem_defines(row, problem, 132)) choice.defines.push_back(each);
      const auto program = compile(choice, hopper());
      EXPECT_TRUE(program) << program.error().text();
    }
  }
}

TEST(ChoiceTest, LargeProductsTakeLargeTilesAndFewTilesSmallOnes) {
  const Choice large = chosen({.m = 8192, .n = 8192, .k = 8192});
  EXPECT_EQ(large.kernel, "gemm_sm90");
  EXPECT_EQ(define(large, "TILE_N"), "256");
  EXPECT_EQ(define(large, "BLOCKS"), "132");
  EXPECT_EQ(define(large, "DTYPE"), "bf16");
  const Choice small = chosen({.m = 128, .n = 4096, .k = 4096});
  EXPECT_EQ(define(small, "TILE_N"), "64");
}

TEST(ChoiceTest, TypesFollowTheProblem) {
  Problem problem{.m = 256, .n = 256, .k = 256};
  problem.a = problem.b = problem.c = DType::kF16;
  EXPECT_EQ(define(chosen(problem), "DTYPE"), "f16");
}

TEST(ChoiceTest, BatchInvariantChoicesDoNotDependOnM) {
  std::set<std::string> choices;
  std::set<std::string> free_choices;
  for (std::int64_t m = 1; m <= 16384; m = m * 2 + 1) {
    Problem problem{.m = m, .n = 7168, .k = 2048};
    free_choices.insert(text(chosen(problem)));
    problem.batch_invariant = true;
    choices.insert(text(chosen(problem)));
  }
  EXPECT_EQ(choices.size(), 1U);
  EXPECT_GT(free_choices.size(), 1U);
}

TEST(ChoiceTest, WhatNoKernelServesIsSaidByKernel) {
  Problem problem{.m = 256, .n = 256, .k = 256};
  problem.a = DType::kF64;
  EXPECT_EQ(refusal(problem), "gemm_sm90: other element types");
  problem = {.m = 256, .n = 256, .k = 255};
  EXPECT_EQ(refusal(problem), "gemm_sm90: A steps by 510 bytes, it needs multiples of 16");
  problem = {.m = 256, .n = 256, .k = 256};
  problem.c_spacing.row = 260;
  EXPECT_EQ(refusal(problem), "gemm_sm90: C steps by 520 bytes, it needs multiples of 16");
  problem = {.m = 256, .n = 256, .k = 256, .alignment = 8};
  EXPECT_EQ(refusal(problem), "gemm_sm90: operands lie at multiples of 8 bytes, it needs 16");
  EXPECT_EQ(refusal({.m = 256, .n = 256, .k = 256}, *target::find_arch("sm_80")),
            "gemm_sm90: not for sm_80");
}

TEST(ChoiceTest, ProblemsThatAreNone) {
  EXPECT_EQ(refusal({.m = 0, .n = 256, .k = 256}), "extents lie between 1 and 2147483647");
  Problem problem{.m = 256, .n = 256, .k = 256};
  problem.b_spacing.row = 255;
  EXPECT_EQ(refusal(problem), "256 rows of B have 256 elements and lie 255 apart");
  problem = {.m = 256, .n = 256, .k = 256, .batch = 2};
  problem.c_spacing.batch = 256 * 256 - 8;
  EXPECT_EQ(refusal(problem), "2 matrices C of 65536 elements lie 65528 apart");
  EXPECT_EQ(refusal({.m = 256, .n = 256, .k = 256, .alignment = 12}), "an alignment of 12 bytes");
}

TEST(ModelTest, SplittingPaysOnlyWhereTilesAreFew) {
  const Tiling whole{.m = 128, .n = 128, .k = 64, .stages = 4};
  Tiling split = whole;
  split.splits = 8;
  const Problem few{.m = 128, .n = 512, .k = 16384};
  const Problem many{.m = 8192, .n = 8192, .k = 4096};
  EXPECT_LT(modelled_seconds(few, split, hopper(), 132),
            modelled_seconds(few, whole, hopper(), 132));
  EXPECT_GT(modelled_seconds(many, split, hopper(), 132),
            modelled_seconds(many, whole, hopper(), 132));
}

TEST(ModelTest, NoProductIsFasterThanMemoryOrTheMatrixUnits) {
  const Tiling tiling{.m = 128, .n = 256, .k = 64, .stages = 3};
  const double compute = modelled_seconds({.m = 8192, .n = 8192, .k = 8192}, tiling, hopper(), 132);
  EXPECT_GT(compute, 2.0 * 8192 * 8192 * 8192 / 989e12);
  const double memory = modelled_seconds({.m = 16, .n = 65536, .k = 8192}, tiling, hopper(), 132);
  EXPECT_GT(memory, 65536.0 * 8192 * 2 / 4.8e12);
}

}  // namespace
}  // namespace kiln::gemm
