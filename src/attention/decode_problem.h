// Attention of few queries over a cache, and what it is computed on (kiln/attention_decode.h has the
// formula).
//
//   DecodeProblem problem{.batch = 64, .heads = 32, .key_heads = 8, .depth = 128,
//                         .page_size = 64, .pages = 4096, .pages_of_sequence = 128};
//
// Its kernel is chosen and compiled for a problem; operands change with every call.
#pragma once

#include "attention/problem.h"

namespace kiln::attention {

struct DecodeProblem {
  DType dtype = DType::kBF16;
  bool causal = false;
  std::int64_t batch = 1;
  std::int64_t queries = 1;
  std::int64_t heads = 0;
  std::int64_t key_heads = 0;
  std::int64_t depth = 0;
  std::int64_t keys = 0;       // of a sequence; with pages as many as its pages hold
  std::int64_t page_size = 0;  // 0: without pages
  std::int64_t pages = 0;
  std::int64_t pages_of_sequence = 0;
  Spacing k = {};
  Spacing v = {};
  friend auto operator<=>(const DecodeProblem&, const DecodeProblem&) = default;
};

[[nodiscard]] inline bool paged(const DecodeProblem& problem) { return problem.page_size != 0; }
// Of k and v, [pages, rows, key_heads, depth]: what a sequence has without pages is one.
[[nodiscard]] std::int64_t pages_of_cache(const DecodeProblem& problem);
[[nodiscard]] std::int64_t rows_of_page(const DecodeProblem& problem);

// The problem with `keys` and both spacings written out. Errors: an extent below 1 or beyond 2^31 - 1,
// heads that key_heads do not divide, a spacing below 0, a tensor of more than 2^40 elements, pages
// beside keys, a table without pages.
[[nodiscard]] Result<DecodeProblem> normalised(const DecodeProblem& problem);

// "bf16 q[64,1,32,128] k[4096,64,8,128], 128 pages each, causal", for messages.
[[nodiscard]] std::string text(const DecodeProblem& problem);

// Addresses in device memory.
struct DecodeOperands {
  runtime::cuda::DevicePtr q = 0;
  runtime::cuda::DevicePtr k = 0;
  runtime::cuda::DevicePtr v = 0;
  runtime::cuda::DevicePtr lengths = 0;
  runtime::cuda::DevicePtr page_table = 0;
  runtime::cuda::DevicePtr o = 0;
  runtime::cuda::DevicePtr lse = 0;
  float scale = 1;
};

}  // namespace kiln::attention
