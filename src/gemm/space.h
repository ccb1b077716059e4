// What a tuner may try for a problem: of every kernel the defines that may vary, and between which
// values. Data beside the kernels' rows (kernel_row.h), and a model that says where to look first.
//
//   variants({.m = 4096, .n = 2112, .k = 7168}, *find_arch("sm_90a"), 132)
//     =>  gemm_sm90 {GROUP 8, STAGES 4, TILE_N 176, WARPGROUPS 3}, ...: two full waves of tiles
//
// STAGES is not varied freely: a ring is as deep as shared memory holds for so many blocks on a
// multiprocessor.
#pragma once

#include <optional>
#include <vector>

#include "gemm/kernel_row.h"

namespace kiln::gemm {

// A kernel with these values of what may vary, and what the model knows of it.
struct Variant {
  const KernelRow* row = nullptr;
  Defines defines = {};  // sorted; without those that follow from the problem
  int m = 0;             // of a tile
  int n = 0;
  int k_bytes = 0;  // of a stage
  int warpgroups = 0;
  int bands = 1;   // of rows that each warpgroup multiplies, one after the other
  int slices = 1;  // of a tile's K, each with warpgroups and a ring of its own
  int splits = 1;
  int parts = 1;  // in which a warpgroup's part of C passes through shared memory
  int stages = 0;
  int blocks = 1;      // that a multiprocessor holds
  double seconds = 0;  // by the model
};

// All that the kernels which serve the problem offer, the most promising first; such as differ in
// nothing that matters for this problem come once. The problem is normalised.
[[nodiscard]] std::vector<Variant> variants(const Problem& problem, const target::Arch& arch,
                                            int multiprocessors);

// A tile of C, in elements.
struct TileShape {
  int m = 0;
  int n = 0;
};

// How a kernel with these defines cuts C; nothing when they do not say.
[[nodiscard]] std::optional<TileShape> tile_of(const KernelRow& row, const Problem& problem,
                                               const Defines& defines);

// As compile() and Plan::prepare() take it: with what follows from the problem.
[[nodiscard]] Choice choice_of(const Variant& variant, const Problem& problem, int multiprocessors);

}  // namespace kiln::gemm
