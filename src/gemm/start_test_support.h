// For tests of kiln/gemm.h over the driver of paper: problems, operands that nobody reads, and the
// launches as the driver saw them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gemm/fake_driver_test.h"
#ifndef KILN_GEMM_C_ONLY
#define KILN_GEMM_C_ONLY
#endif
#include "kiln/gemm.h"

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

class LaunchesTest : public FakeDriverTest {
 protected:
  LaunchesTest() : FakeDriverTest(see) {}
  void prepare() override { seen_count = 0; }
};

}  // namespace kiln::gemm
