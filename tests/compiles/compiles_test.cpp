#include "compiles/compiles.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "support/format.h"

namespace kiln::compiles {
namespace {

const target::Arch& hopper() { return *target::find_arch("sm_90a"); }

class Compiles : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto missing = unavailable()) GTEST_SKIP() << "not tested: " << *missing;
  }
};

constexpr const char* kFine =
    "#include \"kiln/device/types.cuh\"\n"
    "extern \"C\" __global__ void k(kiln::f16* x) { x[threadIdx.x] = kiln::f16(1.0f); }\n";

TEST_F(Compiles, ATextWithDeviceHeadersAtEveryDepth) {
  for (const Depth depth : {Depth::kFrontEnd, Depth::kPtx, Depth::kMachineCode}) {
    EXPECT_EQ(errors(kFine, hopper(), depth), std::nullopt) << static_cast<int>(depth);
  }
}

TEST_F(Compiles, TheFrontEndFindsNamesAndAssertionsOfTemplates) {
  const auto unknown = errors("__global__ void k(int* x) { x[0] = nobody; }", hopper());
  ASSERT_TRUE(unknown.has_value());
  EXPECT_NE(unknown->find("kernel.cu(1)"), std::string::npos) << *unknown;
  EXPECT_NE(unknown->find("nobody"), std::string::npos) << *unknown;
  const auto asserted = errors(
      "template <int N> __device__ void f() { static_assert(N > 3, \"too small\"); }\n"
      "__global__ void k() { f<2>(); }",
      hopper());
  ASSERT_TRUE(asserted.has_value());
  EXPECT_NE(asserted->find("too small"), std::string::npos) << *asserted;
}

TEST_F(Compiles, OnlyMachineCodeLooksAtAssembly) {
  const std::string text = "__global__ void k() { asm volatile(\"no.such.instruction;\"); }";
  EXPECT_EQ(errors(text, hopper(), Depth::kFrontEnd), std::nullopt);
  EXPECT_EQ(errors(text, hopper(), Depth::kPtx), std::nullopt);
  EXPECT_NE(errors(text, hopper(), Depth::kMachineCode), std::nullopt);
}

TEST_F(Compiles, SeveralThreadsAtOnceGetTheirOwnAnswers) {
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([t, &wrong] {
      for (int i = 0; i < 5; ++i) {
        const std::string name = format("nobody_{}_{}", t, i);
        const auto said = errors("__global__ void k(int* x) { x[0] = " + name + "; }", hopper());
        const bool mine = said && said->find("\"" + name + "\"") != std::string::npos;
        if (!mine || errors(kFine, hopper())) ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

}  // namespace
}  // namespace kiln::compiles
