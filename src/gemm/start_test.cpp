// What a call of the library asks of the driver, with a driver of paper: nothing but launches, with
// the right addresses, whoever calls. Kernels are compiled by the real NVRTC; skipped without it.
#include <array>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "gemm/start_test_support.h"

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

namespace kiln::gemm {
namespace {

using StartTest = LaunchesTest;

TEST_F(StartTest, APreparedCallIsItsLaunch) {
  const kiln_gemm_problem problem = problem_of(kExtent, kExtent, kExtent);
  std::size_t bytes = 1;
  ASSERT_EQ(kiln_gemm_prepare(&problem, &bytes), KILN_OK) << kiln_last_error();
  ASSERT_EQ(bytes, 0U);
  int stream = 0;
  const kiln_gemm_operands operands = operands_at(1 << 20);
  ASSERT_EQ(kiln_gemm(&problem, &operands, nullptr, 0, &stream), KILN_OK) << kiln_last_error();
  ASSERT_EQ(seen_count, 1U);
  EXPECT_EQ(seen[0].launch.grid[0], 132U);
  EXPECT_EQ(seen[0].launch.stream, &stream);
  EXPECT_EQ(seen[0].first,
            (std::array<std::uintptr_t, 3>{1 << 20, (1 << 20) + 4096, (1 << 20) + 8192}));
  const int maps = fake_->maps;
  const int modules = fake_->modules;
  const int allocations = fake_->allocations;
#ifdef KILN_COUNTS_MALLOC
  EXPECT_GT(allocations_here, 0);  // preparing takes memory
#endif
  allocations_here = 0;
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(kiln_gemm(&problem, &operands, nullptr, 0, &stream), KILN_OK);
  }
  EXPECT_EQ(allocations_here, 0);
  EXPECT_EQ(fake_->maps, maps);  // those of before serve again
  const kiln_gemm_operands others = operands_at(1 << 22);
  EXPECT_EQ(kiln_gemm(&problem, &others, nullptr, 0, &stream), KILN_OK);
  EXPECT_EQ(allocations_here, 0);
  EXPECT_EQ(fake_->maps, maps + 3);
  EXPECT_EQ(seen_count, 7U);
  EXPECT_EQ(seen[6].first[2], (1U << 22) + 8192);
  EXPECT_EQ(fake_->modules, modules);
  EXPECT_EQ(fake_->allocations, allocations);
  EXPECT_EQ(fake_->synchronisations, 0);
}

TEST_F(StartTest, MoreOperandsThanMapsAreKeptFor) {
  const kiln_gemm_problem problem = problem_of(kExtent, kExtent, kExtent);
  for (int round = 0; round < 2; ++round) {
    for (std::uintptr_t i = 1; i <= 40; ++i) {
      const kiln_gemm_operands operands = operands_at(i << 20);
      seen_count = 0;
      ASSERT_EQ(kiln_gemm(&problem, &operands, nullptr, 0, nullptr), KILN_OK);
      EXPECT_EQ(seen[0].first[0], i << 20);
    }
  }
}

// Threads that have no context yet; each sees its own operands only.
TEST_F(StartTest, ThreadsDoNotSeeEachOther) {
  // Of types that no other test has: its kernel is not there yet.
  kiln_gemm_problem problem = problem_of(kExtent, kExtent, 1024);
  problem.type_a = problem.type_b = problem.type_c = KILN_F16;
  const int modules = fake_->modules;
  std::vector<std::thread> threads;
  for (std::uintptr_t thread = 1; thread <= 6; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uintptr_t i = 0; i < 300; ++i) {
        const std::uintptr_t base = (thread << 32) + (i % 5 << 20);
        const kiln_gemm_operands operands = operands_at(base);
        seen_count = 0;
        ASSERT_EQ(kiln_gemm(&problem, &operands, nullptr, 0, nullptr), KILN_OK)
            << kiln_last_error();
        ASSERT_EQ(seen_count, 1U);
        ASSERT_EQ(seen[0].first, (std::array<std::uintptr_t, 3>{base, base + 4096, base + 8192}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fake_->modules, modules + 1);
  EXPECT_EQ(fake_->contexts_held, 0);
}

TEST_F(StartTest, ProblemsWithEqualChoicesShareAKernel) {
  const kiln_gemm_problem one = problem_of(kExtent, kExtent, kExtent);
  const kiln_gemm_problem other = problem_of(kExtent, kExtent, 2 * kExtent);
  ASSERT_EQ(kiln_gemm_prepare(&one, nullptr), KILN_OK) << kiln_last_error();
  const int modules = fake_->modules;
  ASSERT_EQ(kiln_gemm_prepare(&other, nullptr), KILN_OK) << kiln_last_error();
  EXPECT_STREQ(kiln_gemm_kernel(&one, nullptr), kiln_gemm_kernel(&other, nullptr));
  EXPECT_EQ(fake_->modules, modules);
}

TEST_F(StartTest, AThreadKeepsItsContext) {
  const kiln_gemm_problem problem = problem_of(kExtent, kExtent, kExtent);
  const kiln_gemm_operands operands = operands_at(1 << 20);
  ASSERT_EQ(kiln_gemm_prepare(&problem, nullptr), KILN_OK) << kiln_last_error();
  auto* set = reinterpret_cast<int (*)(void*)>(dlsym(RTLD_DEFAULT, "cuCtxSetCurrent"));
  auto* get = reinterpret_cast<int (*)(void**)>(dlsym(RTLD_DEFAULT, "cuCtxGetCurrent"));
  if (set == nullptr) {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    set = reinterpret_cast<int (*)(void*)>(dlsym(library, "cuCtxSetCurrent"));
    get = reinterpret_cast<int (*)(void**)>(dlsym(library, "cuCtxGetCurrent"));
  }
  int other = 0;
  for (void* context : {static_cast<void*>(nullptr), static_cast<void*>(&other)}) {
    set(context);
    const int pushes = fake_->pushes;
    EXPECT_EQ(kiln_gemm(&problem, &operands, nullptr, 0, nullptr), KILN_OK);
    void* after = &after;
    get(&after);
    EXPECT_EQ(after, context);
    EXPECT_EQ(fake_->pushes, pushes + 1);
  }
  set(nullptr);
}

TEST_F(StartTest, AStreamThatIsCapturedCompilesNothing) {
  const kiln_gemm_problem problem = problem_of(kExtent, kExtent, 512);
  const kiln_gemm_operands operands = operands_at(1 << 20);
  const int modules = fake_->modules;
  fake_->capturing = true;
  EXPECT_EQ(kiln_gemm(&problem, &operands, nullptr, 0, nullptr), KILN_NOT_PREPARED);
  EXPECT_NE(std::string(kiln_last_error()).find("was not prepared"), std::string::npos);
  EXPECT_EQ(fake_->modules, modules);
  ASSERT_EQ(kiln_gemm_prepare(&problem, nullptr), KILN_OK);
  EXPECT_EQ(kiln_gemm(&problem, &operands, nullptr, 0, nullptr), KILN_OK);
  EXPECT_EQ(seen_count, 1U);
}

TEST_F(StartTest, ALaunchThatFailsIsTold) {
  const kiln_gemm_problem problem = problem_of(kExtent, kExtent, kExtent);
  const kiln_gemm_operands operands = operands_at(1 << 20);
  fake_->launch_status = 700;
  EXPECT_EQ(kiln_gemm(&problem, &operands, nullptr, 0, nullptr), KILN_DEVICE);
  EXPECT_NE(std::string(kiln_last_error()).find("CUDA_ERROR_OF_PAPER"), std::string::npos)
      << kiln_last_error();
}

TEST_F(StartTest, OperandsInOddPlacesAreAnotherProblem) {
  kiln_gemm_problem problem = problem_of(kExtent, kExtent, kExtent);
  const kiln_gemm_operands operands = operands_at((1 << 20) + 8);
  EXPECT_EQ(kiln_gemm(&problem, &operands, nullptr, 0, nullptr), KILN_WORKSPACE);
  EXPECT_EQ(seen_count, 0U);
  problem.alignment = 8;
  std::size_t bytes = 0;
  ASSERT_EQ(kiln_gemm_prepare(&problem, &bytes), KILN_OK) << kiln_last_error();
  EXPECT_EQ(bytes, 2U * kExtent * kExtent * 2);  // A and B are copied
  void* workspace = reinterpret_cast<void*>(1 << 30);
  problem.alignment = 16;
  EXPECT_EQ(kiln_gemm(&problem, &operands, workspace, bytes, nullptr), KILN_OK);
  EXPECT_EQ(seen_count, 2U);
}

TEST_F(StartTest, EachProductOfABatchHasItsPlaces) {
  kiln_gemm_problem problem = problem_of(kExtent, kExtent, kExtent);
  problem.batch = 3;
  problem.stride_b = kExtent * kExtent + 64;
  const kiln_gemm_operands operands = operands_at(1 << 20);
  ASSERT_EQ(kiln_gemm(&problem, &operands, nullptr, 0, nullptr), KILN_OK) << kiln_last_error();
  ASSERT_EQ(seen_count, 3U);
  for (std::uintptr_t i = 0; i < 3; ++i) {
    EXPECT_EQ(seen[i].first[0], (1 << 20) + i * kExtent * kExtent * 2);
    EXPECT_EQ(seen[i].first[1], (1 << 20) + 4096 + i * (kExtent * kExtent + 64) * 2);
  }
}

// The numbers of groups are read by the kernel alone.
TEST_F(StartTest, GroupsAreOneLaunchWithTheirNumbersAddress) {
  kiln_gemm_problem problem = problem_of(kExtent, kExtent, kExtent);
  problem.groups = 3;
  kiln_gemm_operands operands = operands_at(1 << 20);
  operands.group_of_tile = reinterpret_cast<const std::int32_t*>((1 << 20) + 12292);
  const void* given = nullptr;
  static const void** seen_there;
  seen_there = &given;
  fake_->on_launch = [](const FakeLaunch& launch) {
    see(launch);
    std::memcpy(seen_there, launch.parameters[3], sizeof *seen_there);
  };
  ASSERT_EQ(kiln_gemm(&problem, &operands, nullptr, 0, nullptr), KILN_OK) << kiln_last_error();
  ASSERT_EQ(seen_count, 1U);
  EXPECT_EQ(seen[0].first,
            (std::array<std::uintptr_t, 3>{1 << 20, (1 << 20) + 4096, (1 << 20) + 8192}));
  EXPECT_EQ(given, operands.group_of_tile);
  EXPECT_NE(std::string(kiln_gemm_kernel(&problem, nullptr)).find("gemm_grouped_sm90"),
            std::string::npos);
}

// Few rows and a long K: parts go to the workspace, and a second launch adds them up.
TEST_F(StartTest, PartsGoThroughTheWorkspace) {
  const kiln_gemm_problem problem = problem_of(16, 2112, 7168);
  std::size_t bytes = 0;
  ASSERT_EQ(kiln_gemm_workspace(&problem, &bytes), KILN_OK) << kiln_last_error();
  ASSERT_NE(std::string(kiln_gemm_kernel(&problem, nullptr)).find("SPLITS="), std::string::npos);
  ASSERT_GE(bytes, 2U * 16 * 2112 * 4);
  const kiln_gemm_operands operands = operands_at(1 << 20);
  auto* workspace = reinterpret_cast<void*>(std::uintptr_t{1} << 24);
  EXPECT_EQ(kiln_gemm(&problem, &operands, nullptr, bytes, nullptr), KILN_WORKSPACE);
  EXPECT_EQ(kiln_gemm(&problem, &operands, workspace, bytes - 1, nullptr), KILN_WORKSPACE);
  EXPECT_EQ(seen_count, 0U);
  ASSERT_EQ(kiln_gemm(&problem, &operands, workspace, bytes, nullptr), KILN_OK);
  ASSERT_EQ(seen_count, 2U);
  // The first sees the workspace through its third map; the second has c and the workspace.
  EXPECT_EQ(seen[0].first[2], std::uintptr_t{1} << 24);
  EXPECT_EQ(seen[1].first[0], (1U << 20) + 8192);
  EXPECT_EQ(seen[1].first[1], std::uintptr_t{1} << 24);
}

}  // namespace
}  // namespace kiln::gemm
