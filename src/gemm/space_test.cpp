// Spaces of the kernels' defines: the ways that were measured to be fastest on an H200 are among
// the first, and what the front end would refuse is not offered.
#include "gemm/space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "gemm/program.h"
#include "gemm/sample_test_support.h"

namespace kiln::gemm {
namespace {

const target::Arch& hopper() { return *target::find_arch("sm_90a"); }

std::vector<Variant> variants_of(const Problem& problem) {
  const auto whole = normalised(problem);
  EXPECT_TRUE(whole) << whole.error().text();
  return variants(*whole, hopper(), 132);
}

bool has(const Variant& variant, const std::string& name, const std::string& value) {
  for (const auto& [each, of] : variant.defines) {
    if (each == name) return of == value;
  }
  return false;
}

// Whether one of the first 24 is of this kernel and has these defines, among others.
bool keeps(const Problem& problem, const std::string& kernel, const Defines& wanted) {
  const std::vector<Variant> all = variants_of(problem);
  for (std::size_t i = 0; i < std::min<std::size_t>(24, all.size()); ++i) {
    bool same = all[i].row->name == kernel;
    for (const auto& [name, value] : wanted) same = same && has(all[i], name, value);
    if (same) return true;
  }
  return false;
}

TEST(Space, KernelsSayWhatMayBeTried) {
  const std::span<const int> parts = tuned_values("gemm_sm90", "PARTS");
  EXPECT_EQ(std::vector<int>(parts.begin(), parts.end()), (std::vector<int>{1, 2}));
  EXPECT_FALSE(tuned_values("gemm_skinny_sm90", "SPLITS").empty());
  EXPECT_TRUE(tuned_values("gemm_sm90", "BLOCKS").empty());
  EXPECT_TRUE(tuned_values("gemm_sm91", "PARTS").empty());
}

// The tilings of a row are points of the space that its kernel declares; what the kernel says nothing of is no
// one's to try.
TEST(Space, TilingsAreAmongWhatKernelsSay) {
  for (const KernelRow& row : kernel_rows()) {
    for (const Tiling& tiling : row.tilings) {
      for (const auto& [name, value] : tiling_defines(tiling)) {
        const std::span<const int> values = tuned_values(row.name, name);
        const bool declared =
            values.empty() || std::ranges::find(values, std::stoi(value)) != values.end();
        EXPECT_TRUE(declared) << row.name << ": " << name << "=" << value;
      }
    }
  }
}

TEST(Space, MeasuredWinnersAreAmongTheFirst) {
  for (const auto& [cube, group] : {std::pair{4096, "16"}, {8192, "11"}, {16384, "16"}}) {
    EXPECT_TRUE(keeps({.m = cube, .n = cube, .k = cube}, "gemm_sm90",
                      {{"TILE_N", "256"}, {"WARPGROUPS", "2"}, {"STAGES", "3"}, {"GROUP", group}}))
        << cube << " " << group;
  }
  const Defines three_176 = {{"WARPGROUPS", "3"}, {"TILE_N", "176"}};
  EXPECT_TRUE(keeps({.m = 4096, .n = 2112, .k = 7168}, "gemm_sm90", three_176));
  const Defines three_160 = {{"WARPGROUPS", "3"}, {"TILE_N", "160"}};
  EXPECT_TRUE(keeps({.m = 4000, .n = 4000, .k = 4000}, "gemm_sm90", three_160));
  for (const std::int64_t k : {2048, 16384}) {
    EXPECT_TRUE(keeps({.m = 512, .n = 7168, .k = k}, "gemm_sm90", {{"TILE_N", "224"}})) << k;
  }
  EXPECT_TRUE(keeps({.m = 1024, .n = 1024, .k = 1024}, "gemm_skinny_sm90",
                    {{"TILE_M", "64"}, {"WARPGROUPS", "2"}, {"PANELS", "2"}, {"STAGES", "4"}}));
  for (const char* width : {"96", "192"}) {
    EXPECT_TRUE(keeps({.m = 128, .n = 24576, .k = 1536}, "gemm_sm90", {{"TILE_N", width}}))
        << width;
  }
}

// A result in one part when K is short; two stages in flight when one wave of small tiles has them all.
TEST(Space, WaysRoundAnIdleMatrixUnitAreAmongTheFirst) {
  EXPECT_TRUE(keeps({.m = 4096, .n = 24576, .k = 1536}, "gemm_sm90",
                    {{"TILE_N", "256"}, {"PARTS", "1"}, {"STAGES", "3"}}));
  EXPECT_TRUE(keeps({.m = 512, .n = 2112, .k = 7168}, "gemm_skinny_sm90",
                    {{"TILE_M", "128"}, {"IN_FLIGHT", "2"}, {"PANELS", "1"}}));
}

TEST(Space, WinnersOfFewRowsAreAmongTheFirst) {
  const Defines tile = {{"TILE_M", "16"}, {"WARPGROUPS", "1"}, {"PANELS", "2"}};
  for (const auto& [n, k] : {std::pair{7168, 2048}, {4096, 7168}, {24576, 1536}, {8192, 28672}}) {
    for (const char* stages : {"3", "5"}) {
      Defines wanted = tile;
      wanted.emplace_back("STAGES", stages);
      EXPECT_TRUE(keeps({.m = 16, .n = n, .k = k}, "gemm_skinny_sm90", wanted))
          << n << " " << stages;
    }
  }
  Defines split = tile;
  split.emplace_back("SPLITS", "4");
  EXPECT_TRUE(keeps({.m = 16, .n = 2112, .k = 7168}, "gemm_skinny_sm90", split));
}

// Each a problem with a space of another form: few rows, many, 8-bit types, scales, sums in f32,
// groups.
std::vector<Problem> problems() {
  Problem fp8{.m = 4096, .n = 7168, .k = 16384, .a = DType::kE4M3, .b = DType::kE4M3};
  Problem scaled = fp8;
  scaled.block_scales = true;
  Problem wide{.m = 512, .n = 4096, .k = 4096};
  wide.c = DType::kF32;
  return {{.m = 8192, .n = 8192, .k = 8192},
          {.m = 16, .n = 2112, .k = 7168},
          {.m = 128, .n = 128, .k = 8192},
          {.m = 2048, .n = 64, .k = 4096},
          fp8,
          scaled,
          wide,
          {.m = 4096, .n = 2112, .k = 7168, .groups = 16}};
}

TEST(Space, WhatIsOfferedCompiles) {
  Sample sample;
  for (const Problem& problem : problems()) {
    const Problem whole = *normalised(problem);
    const std::vector<Variant> all = variants_of(problem);
    ASSERT_FALSE(all.empty()) << text(whole);
    for (std::size_t i = 0; i < all.size(); i += 1 + i / 24) {
      if (!sample.has_next()) continue;
      const Choice choice = choice_of(all[i], whole, 132);
      const auto program = compile(choice, hopper());
      EXPECT_TRUE(program) << program.error().text();
    }
  }
}

// One stage more is more than shared memory holds, or than a tile has steps.
TEST(Space, RingsAreAsDeepAsTheyCanBe) {
  const Problem problem = *normalised({.m = 8192, .n = 8192, .k = 8192});
  Sample sample;
  for (const Variant& variant : variants_of(problem)) {
    if (variant.row->name != "gemm_sm90" || variant.cut.stages == 12 || !sample.has_next())
      continue;
    Variant deeper = variant;
    for (auto& [name, value] : deeper.defines) {
      if (name == "STAGES") value = std::to_string(variant.cut.stages + 1);
    }
    EXPECT_FALSE(compile(choice_of(deeper, problem, 132), hopper()))
        << text(choice_of(deeper, problem, 132));
  }
}

TEST(Space, NothingComesTwice) {
  for (const Problem& problem : problems()) {
    std::set<std::string> seen;
    double last = 0;
    for (const Variant& variant : variants_of(problem)) {
      EXPECT_TRUE(seen.insert(text({std::string(variant.row->name), variant.defines})).second);
      EXPECT_GE(variant.seconds, last);
      last = variant.seconds;
    }
  }
}

TEST(Space, DefinesSayHowATileIsCut) {
  for (const Problem& problem : problems()) {
    for (const Variant& variant : variants_of(problem)) {
      const auto tile = tile_of(*variant.row, problem, variant.defines);
      ASSERT_TRUE(tile) << variant.row->name;
      EXPECT_EQ(tile->m, variant.cut.m);
      EXPECT_EQ(tile->n, variant.cut.n);
    }
  }
  const Problem bytes{.m = 1, .n = 1, .k = 1, .a = DType::kE4M3, .b = DType::kE4M3};
  for (const KernelRow& row : kernel_rows()) {
    for (const Tiling& tiling : row.tilings) {
      if (!fits(tiling, bytes)) continue;
      const auto tile = tile_of(row, bytes, tiling_defines(tiling));
      ASSERT_TRUE(tile) << row.name << " " << tiling.defines;
      EXPECT_EQ(tile->m, tiling.m);
      EXPECT_EQ(tile->n, tiling.n);
    }
  }
  EXPECT_FALSE(tile_of(*kernel_row("gemm_sm90"), bytes, {{"WARPGROUPS", "2"}}));
}

// Four rows of tiles lie in one group, however large that may be.
TEST(Space, GroupsThatMakeNoDifferenceAreOne) {
  std::set<std::string> groups;
  for (const Variant& variant : variants_of({.m = 256, .n = 8192, .k = 4096})) {
    for (const auto& [name, value] : variant.defines) {
      if (name == "GROUP") groups.insert(value);
    }
  }
  EXPECT_EQ(groups, std::set<std::string>{"4"});
}

TEST(Space, OnlyKernelsThatServeTheProblem) {
  Problem scaled{.m = 4096, .n = 4096, .k = 4096, .a = DType::kE4M3, .b = DType::kE4M3};
  scaled.block_scales = true;
  for (const Variant& variant : variants_of(scaled)) {
    EXPECT_EQ(variant.row->name, "gemm_block_scaled_sm90");
  }
  std::set<std::string_view> kernels;
  for (const Variant& variant : variants_of({.m = 255, .n = 255, .k = 255})) {
    kernels.insert(variant.row->name);
  }
  EXPECT_EQ(kernels, (std::set<std::string_view>{"gemm_ragged_sm90", "gemm_sm80"}));
}

}  // namespace
}  // namespace kiln::gemm
