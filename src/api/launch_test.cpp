// kiln_prepare and kiln_launch over the driver of paper, whose memory is the host's: what a launch
// asks of the driver, and what is refused before it asks anything. Kernels are compiled by the real
// NVRTC; skipped without it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "api/test_support.h"
#include "gemm/fake_driver_test.h"
#include "kiln/kiln.h"

namespace {
thread_local int allocations_here = 0;  // of this thread, by the library
}

#ifdef KILN_COUNTS_MALLOC
// The linker sends calls of malloc from the library, and from operator new, here: it wraps them.
extern "C" void* __real_malloc(std::size_t bytes);
extern "C" void* __wrap_malloc(std::size_t bytes) {
  ++allocations_here;
  return __real_malloc(bytes);
}
#endif

namespace kiln::api {
namespace {

// The driver's view of a launch of this thread: each parameter's first 8 bytes.
struct Seen {
  std::string kernel;
  unsigned blocks = 0;
  void* stream = nullptr;
  std::array<std::uint64_t, 4> first = {};
};
thread_local std::array<Seen, 8> seen;
thread_local std::size_t seen_count;
thread_local std::size_t parameters_seen = 3;

void see(const FakeLaunch& launch) {
  Seen& one = seen[seen_count++ % seen.size()];
  one.blocks = launch.grid[0];
  one.stream = launch.stream;
  for (std::size_t i = 0; i < parameters_seen; ++i) {
    std::memcpy(&one.first[i], launch.parameters[i], sizeof one.first[i]);
  }
}

constexpr const char* kScale =
    R"(__co__ void scale(global f32 [N] x, f32 factor, global f32 [N] y) {
  parallel i by [N] : block {
    parallel t by [1] : thread { y.at(i) = x.at(i) * factor; }
  }
}
)";
constexpr const char* kChain = R"(__co__ auto chain(f32 [N] x) {
  f32 [N] sum {3.0f};
  s64 [N] count {4294967298};
  parallel i by [N] : block {
    parallel t by [1] : thread { sum.at(i) = sum.at(i) + x.at(i); count.at(i) = count.at(i); }
  }
  f32 [N] y;
  parallel i by [N] : block {
    parallel t by [1] : thread { y.at(i) = sum.at(i) * 2.0f; }
  }
  return y;
}
)";
constexpr const char* kFirst = R"(__co__ void first(global s32 [N] y, int count, int value) {
  parallel i by [count] : block {
    parallel t by [1] : thread { if (i < N) { y.at(i) = value; } }
  }
}
)";
constexpr const char* kGrow = R"(__co__ auto grow(f32 [N] x) {
  parallel i by [N] : block {
    parallel t by [1] : thread { x.at(i) = x.at(i) + 1.0f; }
  }
  return x;
}
)";

struct Free {
  void operator()(kiln_program* program) const { kiln_program_free(program); }
  void operator()(kiln_plan* plan) const { kiln_plan_free(plan); }
};
using Program = std::unique_ptr<kiln_program, Free>;
using Plan = std::unique_ptr<kiln_plan, Free>;

constexpr std::int64_t kShape[] = {8};

// Memory as a GPU's would be: at a multiple of 256 bytes.
struct alignas(256) Memory {
  float values[64] = {};
};

class LaunchTest : public FakeDriverTest {
 protected:
  LaunchTest() : FakeDriverTest(see) {}
  void prepare() override {
    seen_count = 0;
    parameters_seen = 3;
  }

  static Program compile(const char* source) {
    kiln_compile_options options = {};
    options.source = source;
    options.arch = "sm_90a";
    kiln_program* out = nullptr;
    EXPECT_EQ(kiln_compile(&options, &out), KILN_OK) << kiln_last_error();
    return Program(out);
  }

  // For arrays of 8 elements and these numbers.
  static Plan prepare(const char* source, const std::vector<kiln_array>& arrays,
                      const std::vector<kiln_scalar>& scalars = {},
                      kiln_status expected = KILN_OK) {
    const Program program = compile(source);
    kiln_call call = {};
    call.arrays = arrays.data();
    call.array_count = arrays.size();
    call.scalars = scalars.data();
    call.scalar_count = scalars.size();
    kiln_plan* out = nullptr;
    EXPECT_EQ(kiln_prepare(program.get(), &call, KILN_CURRENT_DEVICE, &out), expected)
        << kiln_last_error();
    return Plan(out);
  }

  static Plan scale() {
    return prepare(kScale, {{"x", nullptr, "f32", kShape, 1}, {"y", nullptr, "f32", kShape, 1}},
                   {{"factor", 1, 0, 1.0}});
  }

  static kiln_status refused(const Plan& plan, std::vector<kiln_value> values,
                             const char* because) {
    const kiln_status status = kiln_launch(plan.get(), values.data(), nullptr, 0, nullptr);
    EXPECT_TRUE(contains(kiln_last_error(), because)) << kiln_last_error();
    EXPECT_EQ(seen_count, 0U);
    return status;
  }
};

TEST_F(LaunchTest, ALaunchIsNothingElseAndHasTheNumbersOfTheCall) {
  const Plan plan = scale();
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(kiln_plan_device(plan.get()), 0);
  EXPECT_EQ(kiln_plan_workspace(plan.get()), 0U);
  EXPECT_EQ(kiln_plan_result(plan.get()), nullptr);
  Memory x;
  Memory y;
  int stream = 0;
  kiln_value values[] = {{.data = &x}, {.real = 2.5}, {.data = &y}};
  const int held = fake_->allocations;
  const int waits = fake_->synchronisations;
  allocations_here = 0;
  ASSERT_EQ(kiln_launch(plan.get(), values, nullptr, 0, &stream), KILN_OK) << kiln_last_error();
  values[1].real = -0.5;
  ASSERT_EQ(kiln_launch(plan.get(), values, nullptr, 0, &stream), KILN_OK) << kiln_last_error();
  EXPECT_EQ(allocations_here, 0);
  EXPECT_EQ(fake_->allocations, held);
  EXPECT_EQ(fake_->synchronisations, waits);
  ASSERT_EQ(seen_count, 2U);
  EXPECT_EQ(seen[0].blocks, 8U);
  EXPECT_EQ(seen[0].stream, &stream);
  EXPECT_EQ(fake_->contexts_held, 0);
  float factors[2] = {};
  for (int i = 0; i < 2; ++i) {
    const Seen& one = seen[static_cast<std::size_t>(i)];
    EXPECT_EQ(one.first[0], reinterpret_cast<std::uintptr_t>(&x));
    EXPECT_EQ(one.first[2], reinterpret_cast<std::uintptr_t>(&y));
    std::memcpy(&factors[i], &one.first[1], sizeof factors[i]);
  }
  EXPECT_EQ(factors[0], 2.5F);
  EXPECT_EQ(factors[1], -0.5F);
}

TEST_F(LaunchTest, AHostPartIsGivenUpAfterSoManySteps) {
  const Program program = compile(kChain);
  const kiln_array arrays[] = {{"x", nullptr, "f32", kShape, 1}};
  kiln_call call = {};
  call.arrays = arrays;
  call.array_count = 1;
  for (const std::uint64_t steps : {std::uint64_t{1}, std::uint64_t{1000000}, std::uint64_t{0}}) {
    call.steps_max = steps;
    kiln_plan* out = nullptr;
    const kiln_status status = kiln_prepare(program.get(), &call, KILN_CURRENT_DEVICE, &out);
    EXPECT_EQ(status, steps == 1 ? KILN_UNSUPPORTED : KILN_OK) << steps << kiln_last_error();
    kiln_plan_free(out);
  }
}

TEST_F(LaunchTest, BuffersOfTheHostPartLieInTheWorkspaceAndAreFilled) {
  const Plan plan = prepare(kChain, {{"x", nullptr, "f32", kShape, 1}});
  ASSERT_EQ(kiln_plan_workspace(plan.get()), 512U);
  const kiln_array* result = kiln_plan_result(plan.get());
  ASSERT_NE(result, nullptr);
  EXPECT_STREQ(result->name, "y");
  EXPECT_STREQ(result->dtype, "f32");
  ASSERT_EQ(result->rank, 1U);
  EXPECT_EQ(result->shape[0], 8);
  EXPECT_EQ(result->data, nullptr);
  Memory x;
  Memory y;
  Memory workspace[2];
  kiln_value values[] = {{.data = &x}, {.data = &y}};
  EXPECT_EQ(kiln_launch(plan.get(), values, nullptr, 0, nullptr), KILN_WORKSPACE);
  EXPECT_TRUE(contains(kiln_last_error(), "a workspace of 512 bytes")) << kiln_last_error();
  EXPECT_EQ(kiln_launch(plan.get(), values, workspace, 256, nullptr), KILN_WORKSPACE);
  EXPECT_EQ(seen_count, 0U);
  parameters_seen = 2;
  ASSERT_EQ(kiln_launch(plan.get(), values, workspace, sizeof workspace, nullptr), KILN_OK)
      << kiln_last_error();
  ASSERT_EQ(seen_count, 2U);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(workspace[0].values[i], 3.0F);
  std::int64_t count[8] = {};
  std::memcpy(count, workspace[1].values, sizeof count);
  for (const std::int64_t each : count) EXPECT_EQ(each, 4294967298);
  EXPECT_EQ(workspace[0].values[8], 0.0F);
  const auto at = [](const Memory& memory) { return reinterpret_cast<std::uintptr_t>(&memory); };
  const std::uint64_t used[] = {seen[1].first[0], seen[1].first[1]};
  EXPECT_EQ(used[0] + used[1], at(workspace[0]) + at(y));
}

TEST_F(LaunchTest, WhatIsPassedByValueAndWrittenIsACopy) {
  const Plan plan = prepare(kGrow, {{"x", nullptr, "f32", kShape, 1}});
  ASSERT_NE(kiln_plan_result(plan.get()), nullptr);
  Memory x;
  Memory out;
  x.values[3] = 7;
  kiln_value values[] = {{.data = &x}, {.data = &out}};
  parameters_seen = 1;
  ASSERT_EQ(kiln_launch(plan.get(), values, nullptr, 0, nullptr), KILN_OK) << kiln_last_error();
  EXPECT_EQ(out.values[3], 7);
  EXPECT_EQ(seen[0].first[0], reinterpret_cast<std::uintptr_t>(&out));
}

TEST_F(LaunchTest, NumbersThatDecideAreThePlans) {
  const Program program = compile(kFirst);
  const kiln_kernel* kernel = kiln_program_kernels(program.get(), nullptr);
  EXPECT_EQ(kernel->parameters[0].is_deciding, 0);
  EXPECT_EQ(kernel->parameters[1].is_deciding, 1);
  EXPECT_EQ(kernel->parameters[2].is_deciding, 0);
  const Plan plan =
      prepare(kFirst, {{"y", nullptr, "s32", kShape, 1}}, {{"count", 0, 5, 0}, {"value", 0, 1, 0}});
  Memory y;
  EXPECT_EQ(refused(plan, {{.data = &y}, {.integer = 6}, {.integer = 1}}, "`count` decides"),
            KILN_INVALID);
  EXPECT_EQ(refused(plan, {{.data = &y}, {.integer = 5}, {.integer = std::int64_t{1} << 33}},
                    "`value` is 8589934592, and s32 holds"),
            KILN_INVALID);
  kiln_value values[] = {{.data = &y}, {.integer = 5}, {.integer = -9}};
  ASSERT_EQ(kiln_launch(plan.get(), values, nullptr, 0, nullptr), KILN_OK) << kiln_last_error();
  EXPECT_EQ(seen[0].blocks, 5U);
}

TEST_F(LaunchTest, WhatDoesNotFitIsRefusedAndNothingIsLaunched) {
  const Plan plan = scale();
  Memory x[2];
  kiln_value one{.real = 1};
  EXPECT_EQ(refused(plan, {{.data = nullptr}, one, {.data = x}}, "`x` is null"), KILN_INVALID);
  EXPECT_EQ(refused(plan, {{.data = &x[0].values[1]}, one, {.data = x + 1}},
                    "`x` begins 4 bytes past a multiple of 16"),
            KILN_INVALID);
  EXPECT_EQ(refused(plan, {{.data = x}, one, {.data = &x[0].values[4]}},
                    "`y`, which the kernel writes, shares memory with `x`"),
            KILN_INVALID);
  EXPECT_EQ(kiln_launch(nullptr, &one, nullptr, 0, nullptr), KILN_INVALID);
  fake_->launch_status = 1;
  kiln_value values[] = {{.data = x}, one, {.data = x + 1}};
  EXPECT_EQ(kiln_launch(plan.get(), values, nullptr, 0, nullptr), KILN_DEVICE);
  EXPECT_TRUE(contains(kiln_last_error(), "CUDA_ERROR_OF_PAPER")) << kiln_last_error();
}

TEST_F(LaunchTest, ArgumentsThatDoNotFitAreDiagnostics) {
  constexpr std::int64_t kOther[] = {9};
  const Plan plan =
      prepare(kScale, {{"x", nullptr, "f32", kShape, 1}, {"y", nullptr, "f32", kOther, 1}},
              {{"factor", 1, 0, 1.0}}, KILN_INVALID);
  ASSERT_NE(plan, nullptr);
  std::size_t count = 0;
  const kiln_diagnostic* rows = kiln_plan_diagnostics(plan.get(), &count);
  ASSERT_EQ(count, 1U);
  EXPECT_STREQ(rows[0].id, "shape-conflict");
  EXPECT_EQ(kiln_launch(plan.get(), nullptr, nullptr, 0, nullptr), KILN_INVALID);
  constexpr std::int64_t kNone[] = {0};
  prepare(kScale, {{"x", nullptr, "f32", kNone, 1}, {"y", nullptr, "f32", kNone, 1}},
          {{"factor", 1, 0, 1.0}}, KILN_INVALID);
  const Plan missing =
      prepare(kScale, {{"x", nullptr, "f32", kShape, 1}}, {{"factor", 1, 0, 1.0}}, KILN_INVALID);
  EXPECT_TRUE(contains(kiln_last_error(), "`y`")) << kiln_last_error();
}

TEST_F(LaunchTest, ThreadsPrepareAndLaunchAtTheSameTime) {
  const Plan one = scale();
  const int before = fake_->launches;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const Plan own = scale();
      Memory memory[2];
      kiln_value values[] = {{.data = memory}, {.real = 1}, {.data = memory + 1}};
      for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(kiln_launch(one.get(), values, nullptr, 0, nullptr), KILN_OK);
        EXPECT_EQ(kiln_launch(own.get(), values, nullptr, 0, nullptr), KILN_OK);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fake_->launches, before + 800);
}

TEST_F(LaunchTest, ATextThatIsCompiledAgainIsLoadedOnce) {
  const Plan first = scale();
  const int modules = fake_->modules;
  const Plan second = scale();
  EXPECT_EQ(fake_->modules, modules);
}

}  // namespace
}  // namespace kiln::api
