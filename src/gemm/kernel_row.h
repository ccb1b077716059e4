// The kernels there are: one row each. What a kernel can do and how it may be varied is data; a new
// kernel is a file in kernels/ and a row here.
//
//   gemm_sm90: 16-bit floats of one type, both operands along k, tiles of 128 rows
#pragma once

#include <span>
#include <string_view>

#include "gemm/choice.h"

namespace kiln::gemm {

// Element types that a kernel takes together, and what its define DTYPE is for them.
struct TypeRow {
  DType a;
  DType b;
  DType c;
  std::string_view define;
};

// How C is cut. Defines TILE_M, TILE_N, TILE_K, STAGES and SPLITS.
struct Tiling {
  int m = 0;
  int n = 0;
  int k = 0;
  int stages = 0;
  int splits = 1;  // of K: that many blocks add up one tile
};

struct KernelRow {
  std::string_view name;
  int min_arch;                    // capability
  std::span<const TypeRow> types;  // any of them
  std::span<const Tiling> tilings;
  bool along_k;         // both operands lie along k; else any
  int alignment;        // bytes: addresses and rows are multiples of it
  bool any_spacing;     // rows may have gaps
  bool takes_epilogue;  // alpha, beta, bias, residual and activation, each by a define
  bool block_scales;    // exactly these problems
  bool persistent;      // define BLOCKS: as many blocks as multiprocessors
};

[[nodiscard]] std::span<const KernelRow> kernel_rows();

// The row of this name, or null.
[[nodiscard]] const KernelRow* kernel_row(std::string_view name);

// Nothing when the kernel computes the problem on the architecture, else what it lacks: "rows of A
// begin at multiples of 2 bytes, it needs 16".
[[nodiscard]] std::string lacks(const KernelRow& row, const Problem& problem,
                                const target::Arch& arch);

// The defines that follow from the problem: DTYPE; BLOCKS; A_ALONG_K and B_ALONG_K, 0 or 1, of a
// kernel that takes both; of what the epilogue has, ALPHA, BETA, BIAS, RESIDUAL, RELU, GELU and
// SILU.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> problem_defines(
    const KernelRow& row, const Problem& problem, int multiprocessors);

}  // namespace kiln::gemm
