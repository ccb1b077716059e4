// bench_kernels.cuh and bench_problem.cuh as C++: its kernels run thread by thread. For tests
// alone; include it once in a program.
//
//   launch({.blocks = 4, .threads = 32}, [&] { kiln_check(product, c, part, &report); });
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>

#define KILN_BENCH_KERNEL inline void
#define KILN_BENCH_CODE [[maybe_unused]] static

namespace kiln::bench {

struct Triple {
  unsigned x = 1;
};
inline Triple blockIdx{0};
inline Triple threadIdx{0};
inline Triple blockDim{1};
inline Triple gridDim{1};

using std::erf;
using std::exp;
using std::fabs;

KILN_BENCH_CODE float as_float(unsigned bits) { return std::bit_cast<float>(bits); }
KILN_BENCH_CODE unsigned as_bits(float value) { return std::bit_cast<unsigned>(value); }
KILN_BENCH_CODE double as_double(long long bits) { return std::bit_cast<double>(bits); }
KILN_BENCH_CODE unsigned long long as_bits(double value) {
  return std::bit_cast<unsigned long long>(value);
}

KILN_BENCH_CODE void atomicAdd(unsigned long long* to, unsigned long long value) { *to += value; }
KILN_BENCH_CODE void atomicMin(unsigned long long* to, unsigned long long value) {
  if (value < *to) *to = value;
}
KILN_BENCH_CODE void atomicMax(unsigned long long* to, unsigned long long value) {
  if (value > *to) *to = value;
}

struct Grid {
  unsigned blocks = 1;
  unsigned threads = 1;
};

template <class Kernel>
void launch(Grid grid, Kernel&& kernel) {
  gridDim.x = grid.blocks;
  blockDim.x = grid.threads;
  for (blockIdx.x = 0; blockIdx.x < grid.blocks; ++blockIdx.x) {
    for (threadIdx.x = 0; threadIdx.x < grid.threads; ++threadIdx.x) kernel();
  }
}

}  // namespace kiln::bench

#include "measure/bench_problem.cuh"
