#include "runtime/nvrtc.h"

#include <gtest/gtest.h>

#include <map>

#include "emit/cuda/samples_for_test.h"
#include "runtime/library.h"
#include "runtime/run.h"

namespace kiln::runtime {
namespace {

// What begins with a later architecture is compiled for that and those after it.
const std::map<std::string, target::Features> kNeeds = {
    {"bulk_pipeline.kir", {target::Feature::kTma}},
    {"cluster_multicast.kir", {target::Feature::kTma, target::Feature::kCluster}}};

class NvrtcTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto found = find_nvrtc();
    if (!found) GTEST_SKIP() << "not tested: " << found.error().text();
  }
};

TEST_P(NvrtcTest, SamplesCompileForEveryArch) {
  for (const target::Arch& arch : target::all_archs()) {
    Sources sources;
    const std::string name = GetParam();
    const auto needs = kNeeds.find(name);
    if (needs != kNeeds.end() && !arch.has(needs->second)) continue;
    const ir::Module module = emit::load_sample(KILN_EMIT_TESTDATA "/" + name, arch, sources);
    const Result<Cubin> cubin = compile_to_cubin_only(module, sources);
    ASSERT_TRUE(cubin) << cubin.error().text();
    EXPECT_TRUE(
        cubin->bytes.starts_with("\x7f"
                                 "ELF"))
        << arch.name;
    EXPECT_EQ(cubin->log, "") << arch.name;
    EXPECT_NE(cubin->version, "");
  }
}

INSTANTIATE_TEST_SUITE_P(Samples, NvrtcTest,
                         testing::Values("one_warp.kir", "scalars.kir", "memories.kir",
                                         "producer_consumer.kir", "bulk_pipeline.kir",
                                         "cluster_multicast.kir"));

TEST(NvrtcErrorTest, TheLogIsTheReason) {
  if (const auto found = find_nvrtc(); !found) {
    GTEST_SKIP() << "not tested: " << found.error().text();
  }
  const auto cubin = compile(compile_request("#line 12 \"a.co\"\nint f() { return nothing; }\n",
                                             *target::find_arch("sm_80"), "a.cu"));
  ASSERT_FALSE(cubin);
  EXPECT_EQ(cubin.error().subject, "a.cu");
  EXPECT_NE(cubin.error().reason.find("a.co(12)"), std::string::npos) << cubin.error().reason;
  EXPECT_NE(cubin.error().reason.find("\"nothing\" is undefined"), std::string::npos);
}

// What a program's own CUDA includes is found where the toolkit has it.
TEST(NvrtcErrorTest, HeadersOfTheToolkitAreFound) {
  if (!find_nvrtc() || file_state("/usr/local/cuda/include/cuda_fp16.h").empty()) {
    GTEST_SKIP() << "not tested: there is no toolkit";
  }
  const std::string text =
      "\n#include <cuda_fp16.h>\nextern \"C\" __global__ void k(__half* x) { *x = __float2half(1); "
      "}\n";
  const auto cubin = compile(compile_request(text, *target::find_arch("sm_80"), "a.cu"));
  EXPECT_TRUE(cubin) << cubin.error().text();
}

}  // namespace
}  // namespace kiln::runtime
