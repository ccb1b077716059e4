#include "gemm/model.h"

#include <algorithm>

namespace kiln::gemm {

namespace {

// Measured on an H200 by varying tiles of the dense kernel; other parts are near enough to rank by.
constexpr double kCacheBytesPerCycle = 48;  // from the second-level cache, of one multiprocessor
constexpr double kTileCycles = 2500;        // the ring fills, the tile of C leaves
constexpr double kSplitCycles = 3000;       // a further launch that adds partial tiles up
constexpr double kMemoryShare = 0.85;       // of the memory's rate on paper

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

double bytes_of(DType dtype, std::int64_t elements) {
  return static_cast<double>(size_bytes(dtype)) * static_cast<double>(elements);
}

// Multiply-adds of one multiprocessor in a cycle: the row is for 16-bit elements, and the rate
// doubles when they halve.
double rate(const Problem& problem, const target::Arch& arch) {
  return static_cast<double>(arch.mma_macs_per_sm_cycle) * 2 / size_bytes(problem.a);
}

double tile_cycles(const Problem& problem, const Tiling& tiling, const target::Arch& arch) {
  const std::int64_t steps = ceil_div(ceil_div(problem.k, tiling.splits), tiling.k);
  const double products = static_cast<double>(tiling.m) * tiling.n * tiling.k / rate(problem, arch);
  const double loads = (bytes_of(problem.a, tiling.m) + bytes_of(problem.b, tiling.n)) * tiling.k /
                       kCacheBytesPerCycle;
  return static_cast<double>(steps) * std::max(products, loads) + kTileCycles;
}

// Each operand once, and partial tiles there and back.
double memory_seconds(const Problem& problem, const Tiling& tiling, const target::Arch& arch) {
  const double partial = tiling.splits > 1 ? 2.0 * tiling.splits : 0;
  const double bytes = bytes_of(problem.a, problem.m * problem.k) +
                       bytes_of(problem.b, problem.n * problem.k) +
                       bytes_of(problem.c, problem.m * problem.n) +
                       partial * bytes_of(DType::kF32, problem.m * problem.n);
  return static_cast<double>(problem.batch) * bytes / (arch.dram_gb_per_s * 1e9 * kMemoryShare);
}

}  // namespace

double modelled_seconds(const Problem& problem, const Tiling& tiling, const target::Arch& arch,
                        int multiprocessors) {
  const std::int64_t tiles =
      problem.batch * tiling.splits * ceil_div(problem.m, tiling.m) * ceil_div(problem.n, tiling.n);
  const auto waves = static_cast<double>(ceil_div(tiles, multiprocessors));
  const double cycles =
      waves * tile_cycles(problem, tiling, arch) + (tiling.splits > 1 ? kSplitCycles : 0);
  return std::max(cycles / (arch.clock_ghz * 1e9), memory_seconds(problem, tiling, arch));
}

}  // namespace kiln::gemm
