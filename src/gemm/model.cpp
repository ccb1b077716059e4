#include "gemm/model.h"

#include <algorithm>

#include "support/integer.h"

namespace kiln::gemm {

namespace {

// Round figures, near those of an H200. They have to rank tilings, not to time them.
constexpr double kCacheBytesPerCycle = 48;  // from the second-level cache, of one multiprocessor
constexpr double kTileCycles = 2500;        // the ring fills, the tile of C leaves
constexpr double kLaunchCycles = 3000;      // a further launch: adds partial tiles up, or copies

double bytes_of(DType dtype, std::int64_t elements) {
  return static_cast<double>(size_bytes(dtype)) * static_cast<double>(elements);
}

// Multiply-adds of one multiprocessor in a cycle: the row is for 16-bit elements, and the rate
// doubles when they halve, or when half of them is zero.
double rate(const Problem& problem, const target::Arch& arch) {
  const int elements = problem.a_sparse ? 4 : 2;
  return static_cast<double>(arch.mma_macs_per_sm_cycle) * elements / size_bytes(problem.a);
}

// So many rows of A; without metadata.
double bytes_of_a(const Problem& problem, std::int64_t rows, std::int64_t depth) {
  return bytes_of(problem.a, rows * depth) / (problem.a_sparse ? 2 : 1);
}

// Elements along K of a stage.
std::int64_t stage(const Problem& problem, const Tiling& tiling) {
  return tiling.k_bytes / size_bytes(problem.a);
}

// Rows beyond the last are multiplied, but not loaded.
double tile_cycles(const Problem& problem, const Cut& cut, const target::Arch& arch) {
  const Tiling& tiling = cut.tiling;
  const std::int64_t depth = stage(problem, tiling);
  const std::int64_t steps = ceil_div(ceil_div(problem.k, depth), cut.splits);
  const double products = static_cast<double>(tiling.m) * tiling.n * static_cast<double>(depth) /
                          (rate(problem, arch) * cut.peak_fraction);
  const std::int64_t a_rows = std::min<std::int64_t>(tiling.m, problem.m);
  const std::int64_t b_rows = std::min<std::int64_t>(tiling.n, problem.n);
  const double bytes = bytes_of_a(problem, a_rows, depth) + bytes_of(problem.b, b_rows * depth);
  const double loads = bytes / kCacheBytesPerCycle;
  const double step = std::max({products, loads, static_cast<double>(cut.step_cycles)});
  return static_cast<double>(steps) * step + kTileCycles;
}

// All matrices of B that the product may meet.
std::int64_t elements_of_b(const Problem& problem) {
  const std::int64_t most = std::min(problem.groups, ceil_div(problem.m, kGroupRows));
  return std::max<std::int64_t>(1, most) * problem.n * problem.k;
}

// Each operand once, and partial tiles there and back.
double memory_seconds(const Problem& problem, const Cut& cut, const target::Arch& arch) {
  const double partial = cut.splits > 1 ? 2.0 * cut.splits : 0;
  const double bytes = bytes_of_a(problem, problem.m, problem.k) +
                       bytes_of(problem.b, elements_of_b(problem)) +
                       bytes_of(problem.c, problem.m * problem.n) +
                       partial * bytes_of(DType::kF32, problem.m * problem.n);
  return static_cast<double>(problem.batch) * bytes / (arch.dram_gb_per_s * 1e9 * kMemoryShare);
}

// There and to the place with aligned rows.
double copy_seconds(const Cut& cut, const target::Arch& arch) {
  if (cut.copied_bytes == 0) return 0;
  return kLaunchCycles / (arch.clock_ghz * 1e9) +
         2.0 * static_cast<double>(cut.copied_bytes) / (arch.dram_gb_per_s * 1e9 * kMemoryShare);
}

}  // namespace

Cut cut_of(const KernelRow& row, const Tiling& tiling, int splits, const Problem& problem) {
  return {.tiling = tiling,
          .splits = splits,
          .copied_bytes = copied_bytes(row, problem),
          .peak_fraction = row.peak_fraction,
          .step_cycles = step_cycles(row, problem)};
}

bool splits_evenly(const Problem& problem, const Tiling& tiling, int splits) {
  const std::int64_t steps = ceil_div(problem.k, stage(problem, tiling));
  return (splits - 1) * ceil_div(steps, splits) < steps;
}

double modelled_seconds(const Problem& problem, const Cut& cut, const target::Arch& arch,
                        int multiprocessors) {
  const std::int64_t tiles = problem.batch * cut.splits * ceil_div(problem.m, cut.tiling.m) *
                             ceil_div(problem.n, cut.tiling.n);
  const auto waves = static_cast<double>(ceil_div(tiles, multiprocessors));
  const double cycles =
      waves * tile_cycles(problem, cut, arch) + (cut.splits > 1 ? kLaunchCycles : 0);
  const double product =
      std::max(cycles / (arch.clock_ghz * 1e9), memory_seconds(problem, cut, arch));
  return product + copy_seconds(cut, arch);
}

}  // namespace kiln::gemm
