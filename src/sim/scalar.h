// Scalar arithmetic as a GPU does it: each operation is rounded to its type, integers wrap.
//
//   apply(kAdd, f16, 2048, 1) == 2048       ties go to even
//   apply(kMul, u8, 200, 2)   == 144
#pragma once

#include <optional>

#include "sim/program.h"

namespace kiln::sim {

// Of two operands of one type. Nothing: an integer division by zero.
[[nodiscard]] std::optional<Scalar> apply(ir::BinaryKind kind, DType type, Scalar left,
                                          Scalar right);
[[nodiscard]] Scalar apply(ir::UnaryKind kind, DType type, Scalar operand);
// Floats to integers truncate and saturate, integers to integers wrap.
[[nodiscard]] Scalar convert(DType from, DType to, Scalar value);
// The integer as the type holds it: wrap(kU8, 400) == 144.
[[nodiscard]] std::int64_t wrap(DType type, std::int64_t value);
[[nodiscard]] double as_number(DType type, Scalar value);

}  // namespace kiln::sim
