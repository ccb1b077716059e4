#include "measure/bench_suite.h"
#include "backends/device.h"

#include <gtest/gtest.h>

#include <sstream>

#include "driver/commands.h"
#include "gemm/choice.h"
#include "measure/bench_sets.h"

namespace kiln::measure {
namespace {

std::size_t kept(const BenchOptions& options) {
  Diagnostics diags;
  const auto cases = chosen_cases(options, diags);
  EXPECT_EQ(cases.has_value(), !diags.has_errors());
  return cases ? cases->size() : 0;
}

TEST(BenchSuite, OnlyAndShapeKeepProblems) {
  EXPECT_EQ(kept({.program = {.file = "llm"}}), 30U);
  EXPECT_EQ(kept({.program = {.file = "llm"}, .only = "K=28672 bf16"}), 5U);
  EXPECT_EQ(kept({.program = {.file = "llm"}, .shapes = {"M=16"}}), 6U);
  EXPECT_EQ(kept({.program = {.file = "llm"}, .shapes = {"M=16,N=7168", "M=64"}}), 2U + 6U);
  EXPECT_EQ(kept({.program = {.file = "llm"}, .shapes = {"M=16"}, .only = "N=7168,"}), 2U);
  EXPECT_EQ(kept({.program = {.file = "llm"}, .shapes = {"M=1"}}), 0U);
  EXPECT_EQ(kept({.program = {.file = "dense"}, .only = " f16"}), 6U);
  EXPECT_EQ(kept({.program = {.file = "dense"}, .shapes = {"M"}}), 0U);
}

TEST(BenchSuite, ProblemsAreTheLibrarys) {
  const auto with = [](const SuiteTypes& types) { return suite_problem(64, 128, 256, types); };
  const gemm::Problem plain = with({.ab = DType::kBF16, .c = DType::kF32});
  EXPECT_EQ(gemm::text(plain), "bf16[64,256] * bf16[128,256] -> f32[64,128]");
  EXPECT_FALSE(plain.epilogue.has_alpha);
  EXPECT_EQ(scale_of(plain), 1);

  const gemm::Problem scaled = with({.tensor_scales = true});
  EXPECT_TRUE(scaled.epilogue.has_alpha);
  EXPECT_EQ(scale_of(scaled), kTensorScale);
  const gemm::Problem by_blocks = with({.block_scales = true});
  EXPECT_TRUE(by_blocks.block_scales);
  EXPECT_FALSE(by_blocks.epilogue.has_alpha);
  EXPECT_EQ(scale_of(by_blocks), 1);
  const gemm::Problem sparse = with({.sparse = true});
  EXPECT_TRUE(sparse.a_sparse);
  EXPECT_FALSE(sparse.block_scales);
}

TEST(BenchSuite, TheLibraryHasKernels) {
  for (const char* suite :
       {"dense", "llm", "small", "sparse", "ragged", "block-scaled", "grouped"}) {
    for (const gemm::Problem& problem : cases_of(suite)) {
      const auto choice = gemm::choose(problem, *target::find_arch("sm_90a"), 132);
      EXPECT_TRUE(choice.has_value()) << shape_of(problem) << ": " << choice.error().text();
    }
  }
}

TEST(BenchSuite, WithoutAGpuItExitsWithThree) {
  if (backends::device_arch() != nullptr) GTEST_SKIP() << "not tested: this machine has a GPU";
  std::ostringstream out;
  std::ostringstream err;
  io::Console console{.out = out, .err = err};
  EXPECT_EQ(driver::bench({.program = {.file = "dense"}}, console), io::Exit::kEnvironment);
  EXPECT_NE(err.str().find("error: no GPU that kiln can use"), std::string::npos) << err.str();
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace kiln::measure
