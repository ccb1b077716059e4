// What a plan hands to the driver, without a driver: the shipped kernel, and small ones that take
// every kind of parameter or break the contract.
#include "gemm/recipe.h"

#include <gtest/gtest.h>

namespace kiln::gemm {
namespace {

const target::Arch& hopper() { return *target::find_arch("sm_90a"); }

Problem dense(std::int64_t m, std::int64_t n, std::int64_t k) { return {.m = m, .n = n, .k = k}; }

Result<Recipe> recipe_of(const std::string& text, const Problem& problem) {
  const auto whole = normalised(problem);
  if (!whole) return Unexpected{whole.error()};
  const auto program = compile({.kernel = "test"}, hopper(), "test.co", text);
  if (!program) return Unexpected{program.error()};
  return make_recipe(**program, *whole, hopper());
}

Result<Recipe> shipped(const Problem& problem) {
  const auto whole = normalised(problem);
  const Choice choice{.kernel = "gemm_sm90", .defines = {{"BLOCKS", "132"}, {"WARPGROUPS", "2"}}};
  const auto program = compile(choice, hopper());
  if (!program) return Unexpected{program.error()};
  return make_recipe(**program, *whole, hopper());
}

// The reason alone.
std::string mistake(const std::string& text, const Problem& problem) {
  const auto recipe = recipe_of(text, problem);
  return recipe ? "none" : recipe.error().reason;
}

TEST(RecipeTest, TheShippedKernelIsOneLaunchWithThreeMaps) {
  const auto recipe = shipped(dense(512, 4096, 256));
  ASSERT_TRUE(recipe) << recipe.error().text();
  ASSERT_EQ(recipe->launches.size(), 1U);
  EXPECT_EQ(recipe->workspace_bytes, 0U);
  const LaunchRecipe& launch = recipe->launches[0];
  EXPECT_EQ(launch.launch.grid[0], 132U);
  EXPECT_EQ(launch.launch.threads, 384U);
  ASSERT_EQ(launch.maps.size(), 3U);
  EXPECT_EQ(launch.maps[0].pointer.role, Role::kA);
  EXPECT_EQ(launch.maps[2].pointer.role, Role::kC);
  EXPECT_EQ(launch.maps[2].arguments.extents[0], 4096U);
  EXPECT_EQ(launch.maps[2].arguments.extents[1], 512U);
  EXPECT_EQ(launch.maps[2].arguments.pitches[0], 8192U);
  ASSERT_EQ(launch.slots.size(), 6U);
  EXPECT_EQ(launch.slots[1].map, 1U);
  std::vector<std::uint64_t> values;
  for (std::size_t i = 3; i < 6; ++i) values.push_back(launch.slots[i].bits);
  EXPECT_EQ(values, (std::vector<std::uint64_t>{512, 256, 4096}));
}

TEST(RecipeTest, GapsBetweenRowsAreInTheMaps) {
  Problem problem = dense(256, 512, 128);
  problem.a_spacing.row = 136;
  problem.c_spacing.row = 1024;
  const auto recipe = shipped(problem);
  ASSERT_TRUE(recipe) << recipe.error().text();
  const LaunchRecipe& launch = recipe->launches[0];
  EXPECT_EQ(launch.maps[0].arguments.pitches[0], 272U);
  EXPECT_EQ(launch.maps[0].arguments.extents[0], 128U);
  EXPECT_EQ(launch.maps[1].arguments.pitches[0], 256U);
  EXPECT_EQ(launch.maps[2].arguments.pitches[0], 2048U);
}

TEST(RecipeTest, AKernelWithoutBatchIsStartedForEachProduct) {
  Problem problem = dense(256, 512, 128);
  problem.batch = 3;
  problem.b_spacing.batch = 512 * 128 + 64;
  const auto recipe = shipped(problem);
  ASSERT_TRUE(recipe) << recipe.error().text();
  EXPECT_EQ(recipe->repeats, 3);
  EXPECT_EQ(recipe->repeat_bytes[0], 256 * 128 * 2);
  EXPECT_EQ(recipe->repeat_bytes[1], (512 * 128 + 64) * 2);
  EXPECT_EQ(recipe->repeat_bytes[2], 256 * 512 * 2);
}

TEST(RecipeTest, ASparseAIsWhatIsKeptAndMetadata) {
  Problem problem = dense(256, 512, 1024);
  problem.a = problem.b = problem.c = DType::kF16;
  problem.a_sparse = true;
  problem.batch = 2;
  const auto whole = normalised(problem);
  ASSERT_TRUE(whole) << whole.error().text();
  EXPECT_EQ(whole->a_spacing.row, 512);
  const auto program = compile({.kernel = "gemm_sparse_sm90"}, hopper());
  ASSERT_TRUE(program) << program.error().text();
  const auto recipe = make_recipe(**program, *whole, hopper());
  ASSERT_TRUE(recipe) << recipe.error().text();
  ASSERT_EQ(recipe->launches.size(), 1U);
  std::vector<Role> roles;
  for (const MapRecipe& map : recipe->launches[0].maps) roles.push_back(map.pointer.role);
  EXPECT_EQ(roles, (std::vector{Role::kA, Role::kMetadata, Role::kB, Role::kC}));
  EXPECT_EQ(recipe->launches[0].maps[0].arguments.pitches[0], 1024U);
  EXPECT_EQ(recipe->launches[0].maps[1].arguments.pitches[0], 128U);
  EXPECT_EQ(recipe->repeat_bytes[static_cast<std::size_t>(Role::kMetadata)], 256 * 32 * 4);
  EXPECT_EQ(recipe->repeat_bytes[static_cast<std::size_t>(Role::kA)], 256 * 512 * 2);
}

// A problem with groups, with gaps between their matrices, and its recipe.
Result<Recipe> grouped(bool has_bias) {
  Problem problem = dense(300, 512, 128);
  problem.groups = 5;
  problem.b_spacing.batch = 512 * 128 + 64;
  problem.epilogue.has_bias = has_bias;
  const auto whole = normalised(problem);
  if (!whole) return Unexpected{whole.error()};
  Choice choice{.kernel = "gemm_grouped_sm90", .defines = {}};
  if (has_bias) choice.defines.emplace_back("BIAS", "1");
  const auto program = compile(choice, hopper());
  if (!program) return Unexpected{program.error()};
  return make_recipe(**program, *whole, hopper());
}

TEST(RecipeTest, GroupsAreADimensionOfBAndAnOperand) {
  const auto recipe = grouped(true);
  ASSERT_TRUE(recipe) << recipe.error().text();
  EXPECT_EQ(recipe->repeats, 1);
  ASSERT_EQ(recipe->launches.size(), 1U);
  const LaunchRecipe& launch = recipe->launches[0];
  ASSERT_EQ(launch.maps.size(), 3U);
  const runtime::TensorMapArguments& b = launch.maps[1].arguments;
  EXPECT_EQ(launch.maps[1].pointer.role, Role::kB);
  EXPECT_EQ(b.rank, 3U);
  EXPECT_EQ(b.extents[1], 512U);
  EXPECT_EQ(b.extents[2], 5U);
  EXPECT_EQ(b.pitches[0], 256U);
  EXPECT_EQ(b.pitches[1], (512U * 128 + 64) * 2);
  std::vector<Role> pointers;
  for (const Slot& slot : launch.slots) {
    if (slot.source == SlotSource::kPointer) pointers.push_back(slot.pointer.role);
  }
  EXPECT_EQ(pointers, (std::vector{Role::kGroupOfTile, Role::kBias}));
  EXPECT_TRUE(recipe->used[static_cast<std::size_t>(Role::kGroupOfTile)]);
  EXPECT_FALSE(shipped(dense(300, 512, 128))->used[static_cast<std::size_t>(Role::kGroupOfTile)]);
}

TEST(RecipeTest, RowsThatAreNotAlignedAreCopiedIntoTheWorkspace) {
  Problem problem = dense(257, 263, 199);
  problem.a_spacing.row = 211;
  problem.alignment = 2;
  const auto whole = normalised(problem);
  const auto program = compile({.kernel = "gemm_ragged_sm90"}, hopper());
  ASSERT_TRUE(program) << program.error().text();
  const auto recipe = make_recipe(**program, *whole, hopper());
  ASSERT_TRUE(recipe) << recipe.error().text();
  ASSERT_EQ(recipe->launches.size(), 2U);
  // Rows of 256 elements.
  EXPECT_EQ(recipe->workspace_bytes, (257U + 263U) * 512U);
  ASSERT_EQ(recipe->launches[1].maps.size(), 2U);
  EXPECT_EQ(recipe->launches[1].maps[0].pointer.role, Role::kWorkspace);
  EXPECT_EQ(recipe->launches[1].maps[1].pointer.offset, 257 * 512);
  EXPECT_EQ(recipe->launches[1].maps[1].arguments.pitches[0], 512U);
}

// Also where c leaves by bulk copies.
TEST(RecipeTest, AnEpilogueReadsRowsThatAreNotAligned) {
  for (const std::int64_t n : {264, 263}) {
    Problem problem = dense(257, n, 1999);
    problem.c_spacing.row = n + 8;
    problem.residual_spacing.row = n + 3;
    problem.epilogue = {.has_alpha = true, .has_beta = true, .has_residual = true};
    const auto whole = normalised(problem);
    const auto choice = choose(*whole, hopper(), 132);
    ASSERT_TRUE(choice) << choice.error().text();
    ASSERT_EQ(choice->kernel, "gemm_ragged_sm90");
    const auto program = compile(*choice, hopper());
    ASSERT_TRUE(program) << program.error().text();
    const auto recipe = make_recipe(**program, *whole, hopper());
    ASSERT_TRUE(recipe) << recipe.error().text();
    const LaunchRecipe& launch = recipe->launches[1];
    EXPECT_EQ(launch.maps.size(), n == 264 ? 3U : 2U);
    if (n == 263) continue;
    EXPECT_EQ(launch.maps[2].pointer.role, Role::kC);
    EXPECT_EQ(launch.maps[2].arguments.extents[0], 264U);
    EXPECT_EQ(launch.maps[2].arguments.pitches[0], 544U);
  }
}

// A product in parts, a buffer of the host's, and a second launch that uses alpha, beta and bias.
constexpr const char* kInParts = R"(
__co__ void gemm(global bf16 [M, K] a, global bf16 [N, K] b, global bf16 [M, N] c,
                 global f32 [2, M, N] partial, global bf16 [N] bias, float alpha, float beta) {
  f32 [M] counts;
  parallel i by M : block {
    parallel t by 32 : thread {
      counts.at(i) = 1.0f;
    }
  }
  parallel i by M : block {
    parallel t by 32 : thread {
      partial.at(0, i, t) = counts.at(i) + a.at(i, t) * b.at(t, t);
    }
  }
  parallel i by M : block {
    parallel t by 32 : thread {
      c.at(i, t) = __to<bf16>(alpha * partial.at(0, i, t) + beta * c.at(i, t) + bias.at(t));
    }
  }
}
)";

TEST(RecipeTest, PartsBuffersAndScalars) {
  Problem problem = dense(100, 32, 32);
  problem.epilogue = {.has_alpha = true, .has_beta = true, .has_bias = true};
  const auto recipe = recipe_of(kInParts, problem);
  ASSERT_TRUE(recipe) << recipe.error().text();
  ASSERT_EQ(recipe->launches.size(), 3U);
  // 2 x 100 x 32 and 100 floats, each at a multiple of 256 bytes.
  EXPECT_EQ(recipe->workspace_bytes, 25600U + 512U);
  const Slot& counts = recipe->launches[0].slots.at(0);
  EXPECT_EQ(counts.source, SlotSource::kPointer);
  EXPECT_EQ(counts.pointer.role, Role::kWorkspace);
  EXPECT_EQ(counts.pointer.offset, 25600);
  int alphas = 0;
  int betas = 0;
  for (const Slot& slot : recipe->launches[2].slots) {
    alphas += slot.source == SlotSource::kAlpha ? 1 : 0;
    betas += slot.source == SlotSource::kBeta ? 1 : 0;
  }
  EXPECT_EQ(alphas, 1);
  EXPECT_EQ(betas, 1);
}

TEST(RecipeTest, AWorkspaceThatWillNotDo) {
  Recipe recipe;
  EXPECT_EQ(workspace_mistake(recipe.workspace_bytes, 0, 0), "");
  recipe.workspace_bytes = 512;
  EXPECT_EQ(workspace_mistake(recipe.workspace_bytes, 0, 512),
            "the workspace is null, 512 bytes are needed");
  EXPECT_EQ(workspace_mistake(recipe.workspace_bytes, 4096, 511),
            "the workspace has 511 bytes, 512 are needed");
  EXPECT_EQ(workspace_mistake(recipe.workspace_bytes, 4104, 512),
            "the workspace begins 8 bytes past a multiple of 256");
  EXPECT_EQ(workspace_mistake(recipe.workspace_bytes, 4096, 512), "");
}

std::string kernel(const std::string& params, const std::string& host = "") {
  return "__co__ void gemm(" + params + ") {\n" + host +
         "  parallel i by 4 : block { parallel t by 32 : thread { c.at(i, t) = a.at(i, t); } "
         "}\n}\n";
}
constexpr const char* kAbc = "global bf16 [M, K] a, global bf16 [N, K] b, global bf16 [M, N] c";

TEST(RecipeTest, ParametersThatAreNotInTheContract) {
  const Problem problem = dense(64, 64, 64);
  EXPECT_EQ(mistake(kernel(kAbc), problem), "none");
  EXPECT_EQ(mistake(kernel(std::string(kAbc) + ", global f32 [M] sums"), problem),
            "tensor `sums` is none of a, b, c, residual, bias, a_scale, b_scale, metadata, "
            "group_of_tile, rows_of_group, a_pad, b_pad, partial");
  EXPECT_EQ(mistake(kernel(std::string(kAbc) + ", float gamma"), problem),
            "scalar `gamma` is neither alpha nor beta");
  EXPECT_EQ(mistake(kernel(std::string(kAbc) + ", global f32 [Q] partial"), problem),
            "dimension `Q` is none of M, N, K, G, KB, KP, NB, P, W, BATCH, LDA, LDB, LDC, LDR");
  EXPECT_EQ(mistake(kernel("global bf16 [M, K] a, global bf16 [M, N] c"), problem),
            "it has no tensor `b`, the problem has one");
  EXPECT_EQ(mistake(kernel(std::string(kAbc) + ", global bf16 [N] bias"), problem),
            "it has a tensor `bias`, the problem has none");
  EXPECT_EQ(mistake(kernel(kAbc, "  float twice = 2.0f;\n"), problem), "none");
}

TEST(RecipeTest, AProblemThatTheKernelIsNotFor) {
  Problem problem = dense(64, 64, 64);
  problem.c_spacing.row = 72;
  EXPECT_EQ(mistake(kernel(kAbc), problem),
            "it takes `c` without gaps, dimension 0 steps by 72 elements and not by 64");
  problem = dense(64, 64, 64);
  problem.b_along_k = false;
  EXPECT_EQ(mistake(kernel(kAbc), problem), "`b` is [N, K], the problem has [K, N]");
  problem = dense(64, 64, 64);
  problem.a = DType::kF16;
  EXPECT_EQ(mistake(kernel(kAbc), problem), "`a` is of bf16, the problem has f16");
  problem = dense(64, 64, 64);
  problem.epilogue.has_alpha = true;
  EXPECT_EQ(mistake(kernel(kAbc), problem), "it has no scalar `alpha`");
}

TEST(RecipeTest, AKernelWithoutGroupsOrWithOtherTiles) {
  Problem problem = dense(300, 64, 64);
  problem.groups = 2;
  EXPECT_EQ(mistake(kernel(kAbc), problem), "`b` is [N, K], the problem has [G, N, K]");
  const std::string abc = "global bf16 [M, K] a, global bf16 [G, N, K] b, global bf16 [M, N] c";
  EXPECT_EQ(mistake(kernel(abc), problem), "it has no tensor `group_of_tile`, the problem has one");
  EXPECT_EQ(mistake(kernel(abc + ", global s32 [cdiv(M, 128)] group_of_tile"), problem), "none");
  EXPECT_EQ(mistake(kernel(abc + ", global s32 [cdiv(M, 64)] group_of_tile"), problem),
            "`group_of_tile` is [cdiv(M, 64)], the problem has [cdiv(M, 128)]");
  EXPECT_EQ(mistake(kernel(abc + ", global s64 [cdiv(M, 128)] group_of_tile"), problem),
            "`group_of_tile` is of s64, the problem has s32");
  problem.grouping = Grouping::kFollowing;
  EXPECT_EQ(mistake(kernel(abc + ", global s32 [cdiv(M, 128)] group_of_tile"), problem),
            "it has a tensor `group_of_tile`, the problem has none");
  EXPECT_EQ(mistake(kernel(abc + ", global s32 [G] rows_of_group"), problem), "none");
  EXPECT_EQ(mistake(kernel(abc + ", global s64 [G] rows_of_group"), problem),
            "`rows_of_group` is of s64, the problem has s32");
  problem.grouping = Grouping::kAlongK;
  EXPECT_EQ(mistake(kernel(std::string(kAbc) + ", global s32 [G] rows_of_group"), problem),
            "`c` is [M, N], the problem has [G, M, N]");
  problem.grouping = Grouping::kFollowing;
  problem.epilogue.has_bias = true;
  EXPECT_EQ(mistake(kernel(abc + ", global bf16 [N] bias"), problem),
            "`bias` is [N], the problem has [G, N]");
}

TEST(RecipeTest, AlphaIsNotKnownToTheHostPart) {
  Problem problem = dense(64, 64, 64);
  problem.epilogue.has_alpha = true;
  const std::string params = std::string(kAbc) + ", float alpha";
  EXPECT_EQ(mistake(kernel(params, "  float twice = alpha * 2.0f;\n"), problem),
            "the host part computes with `alpha`");
}

TEST(RecipeTest, AMistakeInTheTextIsShownWithItsPlace) {
  const auto recipe =
      recipe_of("__co__ void gemm(global bf16 [M, K] a) { x = y; }", dense(8, 8, 8));
  ASSERT_FALSE(recipe);
  EXPECT_NE(recipe.error().reason.find("test.co:1:"), std::string::npos) << recipe.error().reason;
  const auto other = recipe_of("__co__ void product(global bf16 [M, K] a) {}", dense(8, 8, 8));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().reason, "it has no function `gemm`");
}

}  // namespace
}  // namespace kiln::gemm
