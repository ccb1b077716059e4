// What may be tried for a problem: of every kernel the defines that may vary, and between which
// values. Data beside the kernels' rows (kernel_row.h), and a model (model.h) that says what is
// most promising: the first is taken where nobody tuned, and a tuner tries the first few.
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
#include "gemm/model.h"

namespace kiln::gemm {

// A kernel with these values of what may vary, and what the model knows of it.
struct Variant {
  const KernelRow* row = nullptr;
  Defines defines = {};  // sorted; without those that follow from the problem
  Cut cut = {};
  double seconds = 0;  // by the model
};

// All that the kernels which serve the problem offer, the most promising first; such as differ in
// nothing that matters for this problem come once. Those of a batch-invariant problem do not depend
// on m. The problem is normalised.
[[nodiscard]] std::vector<Variant> variants(const Problem& problem, const target::Arch& arch,
                                            int multiprocessors);

// The first of them, or nothing where no kernel serves the problem.
[[nodiscard]] std::optional<Variant> best_variant(const Problem& problem, const target::Arch& arch,
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
