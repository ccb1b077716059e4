// For tests of kiln/gemm.h over the driver of paper: problems, operands that nobody reads, and the
// launches as the driver saw them.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gemm/fake_cuda.h"
#ifndef KILN_GEMM_C_ONLY
#define KILN_GEMM_C_ONLY
#endif
#include "kiln/gemm.h"
#include "runtime/nvrtc.h"

namespace kiln::gemm {

// The launches of the calling thread, with the addresses in their first parameters.
struct Seen {
  FakeLaunch launch;
  std::array<std::uintptr_t, 3> first;
};
inline thread_local std::array<Seen, 8> seen;
inline thread_local std::size_t seen_count;

inline void see(const FakeLaunch& launch) {
  Seen& one = seen[seen_count++ % seen.size()];
  one.launch = launch;
  for (std::size_t i = 0; i < one.first.size(); ++i) {
    std::memcpy(&one.first[i], launch.parameters[i], sizeof one.first[i]);
  }
}

inline kiln_gemm_problem problem_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  kiln_gemm_problem problem = {};
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.type_a = problem.type_b = problem.type_c = KILN_BF16;
  return problem;
}

// Operands at addresses that nobody reads: a, b and c are base, base + 4096 and base + 8192.
inline kiln_gemm_operands operands_at(std::uintptr_t base) {
  kiln_gemm_operands operands = {};
  operands.a = reinterpret_cast<const void*>(base);
  operands.b = reinterpret_cast<const void*>(base + 4096);
  operands.c = reinterpret_cast<void*>(base + 8192);
  return operands;
}

// C of full tiles: one launch without workspace, whose first three parameters are maps.
constexpr std::int64_t kExtent = 2176;

// Opens the driver of paper. Kernels are compiled by the real NVRTC; skipped without it.
class FakeDriverTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto found = runtime::find_nvrtc(); !found) GTEST_SKIP() << found.error().text();
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    void* symbol = dlsym(library, "fake_cuda");
    ASSERT_NE(symbol, nullptr) << "the driver is a real one";
    fake_ = reinterpret_cast<FakeCuda* (*)()>(symbol)();
    fake_->on_launch = see;
    fake_->capturing = false;
    fake_->launch_status = 0;
    seen_count = 0;
  }
  FakeCuda* fake_ = nullptr;
};

}  // namespace kiln::gemm
