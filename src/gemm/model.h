// A static estimate of a kernel's time: whole waves of tiles, each bounded by the matrix units, by
// the second-level cache or by what a warpgroup waits for, and memory below all.
//
//   4096 x 4096 x 4096, tiles of 128 x 256, 132 multiprocessors:
//     512 tiles, 4 waves; a tile takes 4096 / 64 steps of 1024 cycles at least
//
// It ranks ways to cut one problem, for choose() and for a tuner; it is no prediction.
#pragma once

#include "gemm/kernel_row.h"

namespace kiln::gemm {

// Of a tile of one operand, what a warpgroup multiplies at once.
inline constexpr int kWarpgroupRows = 64;

// How a kernel cuts C and K, and what bounds it.
struct Cut {
  int m = 0;  // of a tile
  int n = 0;
  int k_bytes = 0;  // of a stage
  int warpgroups = 1;
  int bands = 1;      // of rows that each warpgroup multiplies, one after the other
  int tiles = 1;      // that a block works on at once: its warpgroups share them out
  int splits = 1;     // blocks that share a tile's K; their sums are added up by a further launch
  int sharers = 1;    // blocks of a cluster, beneath each other, that load their tile of B together
  int a_sharers = 1;  // beside each other, that load their tile of A together
  int in_flight = 1;  // stages whose products a warpgroup has on their way
  int parts = 1;      // in which a warpgroup's part of C passes through shared memory
  int stages = 0;     // of a ring; 0: loads are not waited for
  int blocks = 1;     // that a multiprocessor holds
  int group = 0;      // rows of tiles that are taken together, column by column; 0: all
  bool stays = false;             // a block loads for its next tile while a result leaves
  std::int64_t copied_bytes = 0;  // of the operands, before
  double peak_fraction = 1;       // of the matrix units' rate that the kernel's instructions reach
  int step_cycles = 0;            // at least
};

// A kernel's row and one of its tilings, for a problem.
[[nodiscard]] Cut cut_of(const KernelRow& row, const Tiling& tiling, const Problem& problem);

// Whether every part of K has a step of its own.
[[nodiscard]] bool splits_evenly(const Problem& problem, int k_bytes, int splits);

// Seconds of the problem cut this way. The problem is normalised.
[[nodiscard]] double modelled_seconds(const Problem& problem, const Cut& cut,
                                      const target::Arch& arch, int multiprocessors);

}  // namespace kiln::gemm
