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
  const SuiteCase plain{64, 128, 256, DType::kBF16, DType::kBF16, SuiteForm::kPlain};
  const gemm::Problem problem = problem_of(plain);
  EXPECT_EQ(gemm::text(problem), "bf16[64,256] * bf16[128,256] -> bf16[64,128]");
  EXPECT_FALSE(problem.epilogue.has_alpha);
  EXPECT_EQ(product_of(plain).scale, 1);

  SuiteCase scaled = plain;
  scaled.form = SuiteForm::kTensorScales;
  EXPECT_TRUE(problem_of(scaled).epilogue.has_alpha);
  EXPECT_EQ(product_of(scaled).scale, kTensorScale);
  scaled.form = SuiteForm::kBlockScales;
  EXPECT_TRUE(problem_of(scaled).block_scales);
  EXPECT_FALSE(problem_of(scaled).epilogue.has_alpha);
  scaled.form = SuiteForm::kSparse;
  EXPECT_TRUE(problem_of(scaled).a_sparse);
  EXPECT_FALSE(problem_of(scaled).block_scales);
}

TEST(BenchSuite, TheLibraryHasKernels) {
  for (const char* suite : {"dense", "llm", "small", "sparse", "ragged"}) {
    for (const SuiteCase& problem : cases_of(suite)) {
      const auto choice = gemm::choose(problem_of(problem), *target::find_arch("sm_90a"), 132);
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
