// Attention to be computed, and what it is computed on (kiln/attention.h has the formula).
//
//   Problem problem{.queries = 4096, .keys = 4096, .heads = 16, .key_heads = 4, .depth = 128};
//   Operands operands{.q = ..., .k = ..., .v = ..., .o = ..., .lse = ..., .scale = 0.088F};
//
// A problem is everything a kernel is chosen and compiled for; operands change with every call.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/cuda_api.h"
#include "support/dtype.h"
#include "support/result.h"

namespace kiln::attention {

// Of a tensor [batch, rows, heads, depth]; in elements. 0: without gaps.
struct Spacing {
  std::int64_t batch = 0;
  std::int64_t row = 0;
  std::int64_t head = 0;
  friend auto operator<=>(const Spacing&, const Spacing&) = default;
};

struct Problem {
  DType dtype = DType::kBF16;  // of q, k, v and, unless it has 8 bits, o
  std::int64_t batch = 1;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t heads = 0;
  std::int64_t key_heads = 0;
  std::int64_t depth = 0;
  bool causal = false;
  std::int64_t value_depth = 0;  // of v and o; 0: as depth
  std::int64_t left = -1;        // a query sees so many keys in front of its own; -1: all
  std::int64_t right = -1;       // behind it
  float soft_cap = 0;            // scores stay below it; 0: they may be any
  // Where it is above 0 so many sequences of any lengths lie one behind the other: the batch is 1 then, and
  // queries and keys count the rows of all.
  std::int64_t sequences = 0;
  bool balanced =
      false;  // blocks may take work as they come to be free, for which they need a workspace
  Spacing q = {};
  Spacing k = {};
  Spacing v = {};
  Spacing o = {};
  bool backward = false;  // the gradients: o is given, and these are as well
  Spacing dout = {};
  Spacing dq = {};
  Spacing dk = {};
  Spacing dv = {};
  bool any_order = false;  // of the gradients: dq may be added up in any order
  friend auto operator<=>(const Problem&, const Problem&) = default;  // so that it can be a key
};

// A tensor of the problem.
struct Part {
  const char* name;  // "q"
  std::int64_t rows;
  std::int64_t heads;
  std::int64_t depth;
  const Spacing& spacing;
  bool written;
  DType dtype;
};
// Whether elements of q, k and v have 8 bits.
[[nodiscard]] inline bool has_8_bits(const Problem& problem) {
  return problem.dtype == DType::kE4M3;
}
// Of o.
[[nodiscard]] inline DType result_type(const Problem& problem) {
  return has_8_bits(problem) ? DType::kBF16 : problem.dtype;
}

// q, k, v and o, then dout, dq, dk and dv, of which a problem that is not backward has none.
inline constexpr std::size_t kPartsOfForward = 4;
[[nodiscard]] std::array<Part, 8> parts_of(const Problem& problem);

// The problem with every spacing written out, and without the bounds of a window that hide no key, so
// that equal problems compare equal. Errors: an extent below 1 or beyond 2^31 - 1, heads that key_heads
// do not divide, a bound below -1, one where there are more than 2^30 queries and keys, a soft cap
// that is none, a spacing below 0, a tensor that is written and whose rows lie over each other, one of
// more than 2^40 elements, sequences beside a batch, more of them than can be counted.
[[nodiscard]] Result<Problem> normalised(const Problem& problem);

// "bf16 q[2,4096,16,128] k[2,4096,4,128], causal, 512 keys to the left", for messages.
[[nodiscard]] std::string text(const Problem& problem);

// Addresses in device memory.
struct Operands {
  runtime::cuda::DevicePtr q = 0;
  runtime::cuda::DevicePtr k = 0;
  runtime::cuda::DevicePtr v = 0;
  runtime::cuda::DevicePtr o = 0;
  runtime::cuda::DevicePtr lse = 0;
  runtime::cuda::DevicePtr dout = 0;
  runtime::cuda::DevicePtr dq = 0;
  runtime::cuda::DevicePtr dk = 0;
  runtime::cuda::DevicePtr dv = 0;
  runtime::cuda::DevicePtr cu_seqlens_q = 0;
  runtime::cuda::DevicePtr cu_seqlens_k = 0;
  // Of tensors of 8 bits, [batch, key_heads] of f32; 0: all are 1.
  runtime::cuda::DevicePtr q_scale = 0;
  runtime::cuda::DevicePtr k_scale = 0;
  runtime::cuda::DevicePtr v_scale = 0;
  float scale = 1;
};

}  // namespace kiln::attention
