// What `kiln bench SUITE` measures: one table.
//
//   dense    f16 and bf16, cubes from 1024 to 16384
//   llm      bf16, the layers of a language model, few rows of activations to many
//   small    bf16, few tiles: not enough to give every multiprocessor one
//   fp8      f8_e4m3 with one scale for each tensor, and one problem with scales of blocks
//   sparse   f16, A is 2:4 sparse
//   ragged   bf16, prime extents: nothing divides, no row begins at 16 bytes
//
//   cases_of("sparse")[0]    {.m = 8192, .n = 8192, .k = 8192, .ab = f16, .c = f16, .form =
//   kSparse}
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/dtype.h"

namespace kiln::measure {

// What C[m, n] = sum over k of A[m, k] * B[n, k] has besides.
enum class SuiteForm : std::uint8_t {
  kPlain,
  kTensorScales,  // one factor for all of A, one for all of B
  kBlockScales,   // f32: one for 1 x 128 of A, one for 128 x 128 of B
  kSparse,        // of each four neighbours in a row of A two are zero
};

struct SuiteCase {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  DType ab = DType::kF16;
  DType c = DType::kF16;
  SuiteForm form = SuiteForm::kPlain;

  friend bool operator==(const SuiteCase&, const SuiteCase&) = default;
};

// In the order in which they are measured and shown.
[[nodiscard]] std::span<const std::string_view> suite_names();
[[nodiscard]] bool is_suite(std::string_view name);

// In order; `suite` is one of suite_names() (KILN_CHECK).
[[nodiscard]] std::vector<SuiteCase> cases_of(std::string_view suite);

[[nodiscard]] std::string shape_of(const SuiteCase& problem);  // "M=16,N=7168,K=2048"
// "f16 * f16 -> f16", and what it has besides: ", 2:4 sparse".
[[nodiscard]] std::string types_of(const SuiteCase& problem);

}  // namespace kiln::measure
