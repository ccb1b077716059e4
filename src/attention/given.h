// What the problems of kiln/attention.h and kiln/attention_decode.h have in common, as a caller gives it.
#pragma once

#ifndef KILN_GEMM_C_ONLY
#define KILN_GEMM_C_ONLY  // the name of the C++ function is that of a namespace here
#endif

#include <cmath>
#include <string>
#include <string_view>

#include "attention/problem.h"
#include "gemm/library.h"
#include "kiln/attention.h"
#include "support/format.h"

namespace kiln::attention {

inline Unexpected<gemm::Failure> not_attention(std::string reason) {
  return gemm::failed(gemm::FailureKind::kInvalid, Error{"not attention", {}, std::move(reason)});
}

inline Result<DType, gemm::Failure> dtype_of(std::int32_t type) {
  if (type == KILN_BF16) return DType::kBF16;
  if (type == KILN_F16) return DType::kF16;
  if (type == KILN_E4M3) return DType::kE4M3;
  return not_attention(format(
      "type {} of its tensors: KILN_BF16, {}, KILN_F16, {}, and KILN_E4M3, {}, are possible", type,
      static_cast<int>(KILN_BF16), static_cast<int>(KILN_F16), static_cast<int>(KILN_E4M3)));
}

inline Result<bool, gemm::Failure> flag_of(std::string_view name, std::int32_t value) {
  if (value == 0 || value == 1) return value != 0;
  return not_attention(format("{} is {}, 0 and 1 are possible", name, value));
}

inline Spacing spacing_of(const kiln_attention_spacing& given) {
  return {given.batch, given.row, given.head};
}

// 0: the usual one.
inline float scale_of(float given, std::int64_t depth) {
  return given != 0 ? given : static_cast<float>(1 / std::sqrt(static_cast<double>(depth)));
}

}  // namespace kiln::attention
