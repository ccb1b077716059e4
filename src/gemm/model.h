// A static estimate of a kernel's time, for problems that nobody measured: a roofline of the matrix
// units, the second-level cache and memory, with whole waves of tiles.
//
//   4096 x 4096 x 4096, tiles of 128 x 256, 132 multiprocessors:
//     512 tiles, 4 waves; a tile takes 4096 / 64 steps of 1024 cycles, and 2500 to begin and end
//
// It ranks tilings; it is no prediction.
#pragma once

#include "gemm/kernel_row.h"

namespace kiln::gemm {

// Of the memory's rate on paper, what a kernel that only moves reaches.
inline constexpr double kMemoryShare = 0.85;

// A tiling, how many blocks share a tile's K, and how the kernel does it.
struct Cut {
  Tiling tiling;
  int splits = 1;
  std::int64_t copied_bytes = 0;  // of the operands, before
  double peak_fraction = 1;       // of the matrix units' rate that the kernel's instructions reach
  int step_cycles = 0;            // at least
};

// A kernel's row, one of its tilings and the number of parts of K, for a problem.
[[nodiscard]] Cut cut_of(const KernelRow& row, const Tiling& tiling, int splits,
                         const Problem& problem);

// Whether every part of K has a step of its own.
[[nodiscard]] bool splits_evenly(const Problem& problem, const Tiling& tiling, int splits);

// Seconds of the problem cut this way. The problem is normalised.
[[nodiscard]] double modelled_seconds(const Problem& problem, const Cut& cut,
                                      const target::Arch& arch, int multiprocessors);

}  // namespace kiln::gemm
