// The kernels there are: one row each. What a kernel can do and how it may be varied is data; a new
// kernel is a file in kernels/ and a row here.
//
//   gemm_sparse_sm90: a sparse A of 16 or 8 bits; tiles of 256 x 192 with STAGES=4, ...
//
// How most kernels are varied is a space (space.h); the others have a few tilings here.
#pragma once

#include <span>
#include <string_view>

#include "gemm/choice.h"

namespace kiln::gemm {

// Types that a kernel takes: A and B of one, C of any in the list. `sum` is the define ACC.
struct TypeRow {
  DType ab;
  DType sum;
  std::span<const DType> c;
  target::Features needs = {};  // besides what the kernel needs
};

// One way to cut C, and the defines for it: "TILE_N=256 STAGES=4".
struct Tiling {
  int m = 0;
  int n = 0;
  int k_bytes = 0;  // of a stage, along K
  std::string_view defines = {};
  int c_bytes_max = 4;   // of C's elements: larger ones do not fit into shared memory
  int ab_bytes_min = 1;  // of A's: for these alone are the tiles so large, or fit
  int ab_bytes_max = 8;
  int bands = 1;  // of its rows, with scale factors: a group of rows may end with any of them
};

constexpr int kAnyBytes = -1;

enum class Takes : std::uint8_t { kNever, kAlways, kToo };
enum class GroupsOf : std::uint8_t { kNone, kRows, kK };

struct KernelRow {
  std::string_view name;
  target::Features needs;                // of the architecture
  std::span<const TypeRow> types;        // any of them
  std::span<const Tiling> tilings = {};  // of a kernel without a space of its own (space.h)
  int alignment = 1;                     // bytes: addresses and rows are multiples of it
  bool pads = false;         // or not: is for exactly these problems, told by the define PAD_A for
                             // A, PAD_B and PAD_C, 0 or 1; copies such an A and B first
  double peak_fraction = 1;  // of the matrix units' rate, which its instructions reach
  int unaligned_cycles = 0;  // a step takes so long where elements are loaded one by one
  int m_unit = 1;            // m is a multiple of it
  int k_unit = 1;            // and k of this
  int transposable_bytes =
      0;                  // operands whose elements have so many bytes may lie along m or n too,
                          // by A_ALONG_K=0 and B_ALONG_K=0; without groups
  bool epilogue = false;  // takes alpha, beta, bias, residual and activations, each by a define
  Takes block_scales = Takes::kNever;  // where it takes others too, by the define SCALED
  bool a_sparse = false;               // is for exactly these problems
  GroupsOf groups = GroupsOf::kNone;   // and for these; BY_ROWS and APART say what tells them
  bool persistent = false;             // define BLOCKS: as many blocks as multiprocessors
};

// Whether such a tile of the problem fits into shared memory, its rows are of one group, and its
// columns have one of B's scale factors.
[[nodiscard]] bool fits(const Tiling& tiling, const Problem& problem);

[[nodiscard]] std::span<const KernelRow> kernel_rows();

// The row of this name, or null.
[[nodiscard]] const KernelRow* kernel_row(std::string_view name);

// Nothing when the kernel computes the problem on the architecture; else what it lacks: "A steps by
// 510 bytes, it needs multiples of 16".
[[nodiscard]] std::string lacks(const KernelRow& row, const Problem& problem,
                                const target::Arch& arch);

// The defines that follow from the problem: DTYPE, OUT and ACC; BLOCKS; A_ALONG_K and B_ALONG_K, 0
// where the operand lies the other way; of groups BY_ROWS, APART and SCALED; of what the epilogue
// has, ALPHA, BETA, BIAS, RESIDUAL, RELU, GELU and SILU.
[[nodiscard]] Defines problem_defines(const KernelRow& row, const Problem& problem,
                                      int multiprocessors);

// Cycles that a step of the kernel takes at least: those of loads that it waits for.
[[nodiscard]] int step_cycles(const KernelRow& row, const Problem& problem);

// Bytes of A and B that the kernel copies before it multiplies.
[[nodiscard]] std::int64_t copied_bytes(const KernelRow& row, const Problem& problem);

// Those of a tiling.
[[nodiscard]] Defines tiling_defines(const Tiling& tiling);

}  // namespace kiln::gemm
