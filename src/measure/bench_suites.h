// What `kiln bench SUITE` measures of products of matrices: one table.
//
//   dense    f16 and bf16, cubes from 1024 to 16384
//   llm      bf16, the layers of a language model, few rows of activations to many
//   small    bf16, few tiles: not enough to give every multiprocessor one
//   fp8      f8_e4m3 with one scale for each tensor, and one problem with scales of blocks
//   sparse   f16, A is 2:4 sparse
//   ragged   bf16, prime extents: nothing divides, no row begins at 16 bytes
//   block-scaled   f8_e4m3 with scales of blocks, few rows to many
//   grouped        groups that follow each other, and some with much more room than rows; f8_e4m3
//                  with scales of blocks, with one for each tensor, and bf16
//
//   cases_of("sparse")[0]    8192 x 8192 x 8192, f16 * f16 -> f16, a_sparse
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gemm/problem.h"
#include "io/console.h"
#include "support/dtype.h"

namespace kiln::measure {

// The types of a suite's problem, and what it has besides the sum of products.
struct SuiteTypes {
  DType ab = DType::kF16;
  DType c = DType::kF16;
  bool tensor_scales = false;  // one factor for all of A, one for all of B: alpha
  bool block_scales = false;   // f32: one for 1 x 128 of A, one for 128 x 128 of B
  bool sparse = false;         // of each four neighbours in a row of A two are zero
};

[[nodiscard]] constexpr gemm::Problem suite_problem(std::int64_t m, std::int64_t n, std::int64_t k,
                                                    const SuiteTypes& types) {
  gemm::Problem out{.m = m, .n = n, .k = k, .a = types.ab, .b = types.ab, .c = types.c};
  out.epilogue.has_alpha = types.tensor_scales;
  out.block_scales = types.block_scales;
  out.a_sparse = types.sparse;
  return out;
}

// In the order in which they are measured and shown.
[[nodiscard]] std::span<const std::string_view> suite_names();
// Their names as text: "dense, llm, small".
[[nodiscard]] std::string suite_list();
[[nodiscard]] bool is_suite(std::string_view name);
// Those that the library is tuned by, which are not those with groups: its table has none.
[[nodiscard]] std::span<const std::string_view> tuned_suite_names();
[[nodiscard]] std::string tuned_suite_list();
[[nodiscard]] bool is_tuned_suite(std::string_view name);

// In order; `suite` is one of suite_names() (KILN_CHECK).
[[nodiscard]] std::vector<gemm::Problem> cases_of(std::string_view suite);

// Rows that each group of a suite's problem has; 0 without groups.
[[nodiscard]] std::int64_t rows_of_each(const gemm::Problem& problem);
// Rows of C that are computed: m, or those that groups have.
[[nodiscard]] std::int64_t counted_rows(const gemm::Problem& problem);
// What one group computes, as a product by itself; without groups the problem.
[[nodiscard]] gemm::Problem of_one_group(const gemm::Problem& problem);

// "M=16,N=7168,K=2048", and with groups ",G=4".
[[nodiscard]] std::string shape_of(const gemm::Problem& problem);
// "f16 * f16 -> f16", and what it has besides: ", 2:4 sparse".
[[nodiscard]] std::string types_of(const gemm::Problem& problem);
// Writes a note about one problem to `err`, behind whatever progress is shown.
void show_note(io::Console& console, const gemm::Problem& problem, const std::string& text);

}  // namespace kiln::measure
