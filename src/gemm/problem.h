// A product of matrices to be computed, and what it is computed on.
//
//   C[m, n] = activation(alpha * sum over k of A[m, k] * B[n, k] + beta * C[m, n] + bias[n])
//             + residual[m, n]
//
//   Problem problem{.m = 4096, .n = 7168, .k = 2048, .a = bf16, .b = bf16, .c = bf16};
//   Operands operands{.a = ..., .b = ..., .c = ...};
//
// A problem is everything a kernel is chosen and compiled for; operands change with every call.
// Sums are in f32 (in s32 for integers). Matrices lie by rows unless a flag says otherwise.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "runtime/cuda_api.h"
#include "support/dtype.h"
#include "support/result.h"

namespace kiln::gemm {

// Elements of a sparse A that one word of metadata is for.
inline constexpr std::int64_t kMetadataWord = 32;

enum class Activation : std::uint8_t { kNone, kRelu, kGelu, kSilu };
// As defines and tables spell it: "none", "relu", "gelu", "silu".
[[nodiscard]] std::string_view name(Activation activation);

// What happens to a sum before it is stored.
struct Epilogue {
  bool has_alpha = false;     // alpha may differ from 1
  bool has_beta = false;      // beta may differ from 0: C is read
  bool has_bias = false;      // one element for each column of C, of C's type
  bool has_residual = false;  // a matrix like C, of C's type
  Activation activation = Activation::kNone;
  friend auto operator<=>(const Epilogue&, const Epilogue&) = default;
};

// So many rows of A are multiplied with the same group's B.
inline constexpr std::int64_t kGroupRows = 128;

// What says which rows belong to a group.
enum class Grouping : std::uint8_t {
  kByTile,     // a number of a group for each kGroupRows rows: group_of_tile
  kFollowing,  // numbers of rows, rows_of_group; each group begins with whole kGroupRows rows
  kApart,      // the same; each group has room for m / groups rows
  kAlongK,     // numbers of what each has of k, rows_of_group; C has groups, and A and B have none
};
// Elements of K, and columns of B, that have one scale factor together where a problem has them by blocks.
inline constexpr std::int64_t kScaleBlock = 128;
[[nodiscard]] constexpr std::int64_t scale_blocks(std::int64_t extent) {
  return (extent + kScaleBlock - 1) / kScaleBlock;
}

// Of one matrix; in elements.
struct Spacing {
  std::int64_t row = 0;  // from one row of memory to the next; 0: without gaps
  // From one product's matrix to the next one's, or from one group's B; 0: without gaps.
  std::int64_t batch = 0;
  friend auto operator<=>(const Spacing&, const Spacing&) = default;
};

struct Problem {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  DType a = DType::kBF16;
  DType b = DType::kBF16;
  DType c = DType::kBF16;
  // Along which index neighbours in memory lie: A is [m, k], else [k, m]; B is [n, k], else [k, n].
  bool a_along_k = true;
  bool b_along_k = true;
  // A and B have scale factors: f32 [cdiv(k, 128), m] and [cdiv(n, 128), cdiv(k, 128)].
  bool block_scales = false;
  // A is 2:4 sparse: what is kept of it, [m, k / 2], and metadata, u32 [m, k / 32] in the words of
  // kiln/sparse.h. Its spacing is that of what is kept.
  bool a_sparse = false;
  Spacing a_spacing = {};
  Spacing b_spacing = {};
  Spacing c_spacing = {};
  Spacing residual_spacing = {};
  std::int64_t batch = 1;
  // Not 0: B is [groups, n, k], the bias [groups, n] and B's scale factors have groups in front.
  // Which rows of A belong to which group is an operand; those of none are passed over.
  std::int64_t groups = 0;
  Grouping grouping = Grouping::kByTile;
  Epilogue epilogue = {};
  // Row i of C has the same bits for every m.
  bool batch_invariant = false;
  // Bytes; every operand's address is a multiple of it.
  int alignment = 16;
  friend auto operator<=>(const Problem&, const Problem&) = default;  // so that it can be a key
};

// The problem with every spacing written out, so that equal problems compare equal. Errors: an
// extent below 1 or beyond 2^31 - 1, a spacing smaller than what it spaces, an alignment that is no
// power of two, a sparse A that does not lie along k or whose k is no multiple of 32, groups of
// several products, groups apart whose room is no multiple of kGroupRows.
[[nodiscard]] Result<Problem> normalised(const Problem& problem);

// "bf16[512,256] * bf16[128,256] -> bf16[512,128]", for messages; with groups B is [8,128,256].
[[nodiscard]] std::string text(const Problem& problem);

// Addresses in device memory; of what the problem does not have, 0.
struct Operands {
  runtime::cuda::DevicePtr a = 0;  // of a sparse A what is kept
  runtime::cuda::DevicePtr b = 0;
  runtime::cuda::DevicePtr c = 0;  // read too when the problem has beta
  runtime::cuda::DevicePtr bias = 0;
  runtime::cuda::DevicePtr residual = 0;
  runtime::cuda::DevicePtr a_scale = 0;
  runtime::cuda::DevicePtr b_scale = 0;
  runtime::cuda::DevicePtr metadata = 0;       // of a sparse A
  runtime::cuda::DevicePtr group_of_tile = 0;  // s32 [cdiv(m, kGroupRows)]
  runtime::cuda::DevicePtr rows_of_group = 0;  // s32 [groups]
  double alpha = 1;
  double beta = 0;
};

}  // namespace kiln::gemm
