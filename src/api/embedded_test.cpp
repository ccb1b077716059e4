// kiln/embedded.h over the driver of paper: what is compiled and kept when kernels that a program
// carries are called, and what is refused. Kernels are compiled by the real NVRTC; skipped without it.
#include "kiln/embedded.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "api/test_support.h"
#include "emit/cuda/emit.h"
#include "gemm/fake_driver_test.h"
#include "io/program.h"
#include "runtime/call.h"
#include "runtime/carried_code.h"

namespace kiln::api {
namespace {

const char* const kLines[] = {
    "__co__ void fill(global s32 [N] y, int count, s32 value) {\n",
    "  parallel i by [count] : block, t by 1 : thread { if (i < N) { y.at(i) = value + ADD; } }\n",
    "}\n",
    "__co__ f32 [2 * N] doubled(global f32 [N] x) {\n",
    "  f32 [N] between;\n",
    "  parallel i by [N] : block, t by 1 : thread between.at(i) = x.at(i) * 2.0f;\n",
    "  f32 [2 * N] y;\n",
    "  parallel i by [2 * N] : block, t by 1 : thread y.at(i) = between.at(i % N);\n",
    "  return y;\n",
    "}\n",
};
const char* const kDefines[] = {"ADD=1"};
const char* const kArchs[] = {"sm_80", "sm_90a"};
const char* const kOldArchs[] = {"sm_80"};

kiln_embedded embedded_for(const char* const* archs, std::size_t count) {
  return {"kernels.co", kLines, std::size(kLines), kDefines, 1, archs, count, nullptr, 0, nullptr};
}

std::atomic<int> launches_seen;
std::atomic<unsigned> blocks_seen;
void see(const FakeLaunch& launch) {
  ++launches_seen;
  blocks_seen = launch.grid[0];
}

struct alignas(256) Memory {
  float values[64] = {};
};

class EmbeddedTest : public FakeDriverTest {
 protected:
  EmbeddedTest() : FakeDriverTest(see) {}
  void prepare() override { launches_seen = 0; }

  static kiln_status fill(kiln_embedded& embedded, void* y, std::int64_t count,
                          std::int64_t n = 8) {
    const kiln_embedded_argument arguments[] = {
        kiln_tensor_argument(y, nullptr), kiln_integer_argument(count), kiln_integer_argument(3)};
    const kiln_embedded_call call = {"fill", arguments, 3, &n, 1, nullptr};
    return kiln_embedded_launch(&embedded, &call);
  }

  static kiln_status doubled(kiln_embedded& embedded, const std::int64_t* shape) {
    static Memory x;
    static Memory y;
    const kiln_embedded_argument arguments[] = {kiln_tensor_argument(&x, nullptr),
                                                kiln_tensor_argument(&y, shape)};
    const std::int64_t n = 4;
    const kiln_embedded_call call = {"doubled", arguments, 2, &n, 1, nullptr};
    return kiln_embedded_launch(&embedded, &call);
  }

  Memory memory_;
};

TEST_F(EmbeddedTest, AKernelIsPreparedOnceForItsShapesAndDecidingNumbers) {
  kiln_embedded embedded = embedded_for(kArchs, 2);
  const int modules = fake_->modules;
  ASSERT_EQ(fill(embedded, &memory_, 5), KILN_OK) << kiln_last_error();
  EXPECT_EQ(blocks_seen, 5U);
  ASSERT_EQ(fill(embedded, &memory_, 6), KILN_OK) << kiln_last_error();
  EXPECT_EQ(blocks_seen, 6U);
  ASSERT_EQ(fill(embedded, &memory_, 5), KILN_OK);
  EXPECT_EQ(blocks_seen, 5U);
  EXPECT_EQ(fake_->modules, modules + 1);
  EXPECT_EQ(launches_seen, 3);
}

TEST_F(EmbeddedTest, AWorkspaceIsTakenAndGivenBackOnTheStream) {
  kiln_embedded embedded = embedded_for(kArchs, 2);
  ASSERT_EQ(doubled(embedded, nullptr), KILN_OK) << kiln_last_error();
  const int held = fake_->allocations;
  const int waits = fake_->synchronisations;
  const std::int64_t shape[] = {8};
  ASSERT_EQ(doubled(embedded, shape), KILN_OK) << kiln_last_error();
  EXPECT_EQ(fake_->allocations, held + 1);
  EXPECT_EQ(fake_->synchronisations, waits);
  EXPECT_EQ(launches_seen, 4);
  EXPECT_EQ(fake_->contexts_held, 0);
  const std::int64_t other[] = {9};
  EXPECT_EQ(doubled(embedded, other), KILN_INVALID);
  EXPECT_TRUE(contains(kiln_last_error(), "returns a tensor of shape [8], and [9] is given"))
      << kiln_last_error();
  EXPECT_EQ(launches_seen, 4);
}

TEST_F(EmbeddedTest, WhatIsPreparedMayBeCaptured) {
  kiln_embedded embedded = embedded_for(kArchs, 2);
  fake_->capturing = true;
  EXPECT_EQ(fill(embedded, &memory_, 2), KILN_NOT_PREPARED);
  EXPECT_TRUE(contains(kiln_last_error(), "call it once before")) << kiln_last_error();
  fake_->capturing = false;
  EXPECT_EQ(fill(embedded, &memory_, 2), KILN_OK);
  fake_->capturing = true;
  EXPECT_EQ(fill(embedded, &memory_, 2), KILN_OK) << kiln_last_error();
  EXPECT_EQ(launches_seen, 2);
}

TEST_F(EmbeddedTest, WhatDoesNotFitIsRefused) {
  kiln_embedded embedded = embedded_for(kArchs, 2);
  EXPECT_EQ(fill(embedded, &memory_, 5, 0), KILN_INVALID);
  EXPECT_TRUE(contains(kiln_last_error(), "dimension N is 0")) << kiln_last_error();
  EXPECT_EQ(fill(embedded, nullptr, 5), KILN_INVALID);
  EXPECT_TRUE(contains(kiln_last_error(), "`y` is null")) << kiln_last_error();
  const kiln_embedded_call few = {"fill", nullptr, 0, nullptr, 0, nullptr};
  EXPECT_EQ(kiln_embedded_launch(&embedded, &few), KILN_INVALID);
  EXPECT_TRUE(contains(kiln_last_error(), "has 3 arguments and 1 dimensions")) << kiln_last_error();
  const kiln_embedded_call other = {"empty", nullptr, 0, nullptr, 0, nullptr};
  EXPECT_EQ(kiln_embedded_launch(&embedded, &other), KILN_INVALID);
  EXPECT_TRUE(contains(kiln_last_error(), "kernels.co has no kernel `empty`")) << kiln_last_error();
  EXPECT_EQ(launches_seen, 0);
}

TEST_F(EmbeddedTest, AnOlderArchitectureServesANewerGpu) {
  kiln_embedded embedded = embedded_for(kOldArchs, 1);
  EXPECT_EQ(fill(embedded, &memory_, 5), KILN_OK) << kiln_last_error();
  const char* const none[] = {"sm_100a"};
  kiln_embedded newer = embedded_for(none, 1);
  EXPECT_EQ(fill(newer, &memory_, 5), KILN_UNSUPPORTED);
  EXPECT_TRUE(contains(kiln_last_error(), "kernels.co is for sm_100a, the GPU is sm_90a"))
      << kiln_last_error();
}

// The key of `fill` for sm_90a with this define.
std::string key_of_fill(const char* define) {
  io::ProgramOptions how;
  how.file = "kernels.co";
  how.arch = "sm_90a";
  how.defines = {define};
  how.text = "";
  for (const char* line : kLines) *how.text += line;
  io::Program program;
  EXPECT_TRUE(io::compile(how, {.kernel = "fill"}, program).has_value());
  const std::string name = runtime::file_name_of(program.decided.functions.front());
  std::string text = emit::emit(program.decided, program.sources, {.file_name = name});
  return runtime::code_key(runtime::compile_request(std::move(text), *program.arch, name)).hex();
}

TEST_F(EmbeddedTest, MachineCodeIsLoadedAsItIsAndTheTextCompiledWhereTheDriverRefusesIt) {
  constexpr unsigned char kBytes[] = {0x55, 2, 3};
  constexpr int kElf = 0x7F;  // how a real one begins
  const struct {
    const char* define;
    int refused;
    int loaded;
  } rows[] = {{"ADD=7", 0, kBytes[0]}, {"ADD=8", 1, kElf}};
  for (const auto& row : rows) {
    const std::string key = key_of_fill(row.define);
    const kiln_machine_code code = {key.c_str(), kBytes, sizeof kBytes};
    kiln_embedded embedded = embedded_for(kArchs, 2);
    embedded.defines = &row.define;
    embedded.codes = &code;
    embedded.code_count = 1;
    fake_->modules_refused = row.refused;
    ASSERT_EQ(fill(embedded, &memory_, 5), KILN_OK) << kiln_last_error();
    EXPECT_EQ(fake_->modules_refused, 0);
    EXPECT_EQ(fake_->last_module, row.loaded);
  }
}

TEST_F(EmbeddedTest, ThreadsThatComeFirstAtOnceCompileOnce) {
  kiln_embedded embedded = embedded_for(kArchs, 2);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      Memory own;
      for (int i = 0; i < 50; ++i) EXPECT_EQ(fill(embedded, &own, 4), KILN_OK);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(launches_seen, 200);
}

TEST(EmbeddedCompile, IsTheWholeFileForTheArchitecture) {
  const kiln_embedded embedded = embedded_for(kArchs, 2);
  kiln_program* program = nullptr;
  ASSERT_EQ(kiln_embedded_compile(&embedded, nullptr, &program), KILN_OK) << kiln_last_error();
  EXPECT_STREQ(kiln_program_arch(program), "sm_80");
  std::size_t count = 0;
  EXPECT_NE(kiln_program_kernels(program, &count), nullptr);
  EXPECT_EQ(count, 2U);
  kiln_program_free(program);
  ASSERT_EQ(kiln_embedded_compile(&embedded, "sm_90a", &program), KILN_OK) << kiln_last_error();
  EXPECT_STREQ(kiln_program_arch(program), "sm_90a");
  kiln_program_free(program);
}

}  // namespace
}  // namespace kiln::api
