// Numbers that a program writes, against the range of the type they are to have.
//
//   u8 x = 300;   error[literal-range]: `300` is outside the range of u8, 0 to 255
//
// `__to<u8>(300)` converts instead, as docs/numbers.md says.
#pragma once

#include "sema/operand.h"
#include "sema/state.h"

namespace kiln::sema {

// The value of a constant; nothing of what is known only when the program runs.
[[nodiscard]] std::optional<double> literal_number(const Operand& operand);

// Whether it is `-9223372036854775808`: the least s64, though no s64 holds what stands behind the
// sign.
[[nodiscard]] bool is_least_index(Sema& sema, const ast::UnaryExpr& unary);

// Whether it is an integer from 2^63 on, written out: a u64, and no index, which is signed.
[[nodiscard]] bool is_beyond_indices(const Sema& sema, const Operand& operand);

// "0 to 255"
[[nodiscard]] std::string range_text(DType dtype);

// Whether a constant, rounded to a float's precision, is a number of the type. Fractions of it are
// not looked at, and whatever is no constant is.
[[nodiscard]] bool is_in_range(DType dtype, const Operand& operand);

// Reports a constant that is_in_range says no to; true without a report.
[[nodiscard]] bool check_literal(Sema& sema, const Operand& operand, DType dtype);

}  // namespace kiln::sema
