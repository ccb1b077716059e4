// Types, numbers and index expressions as C++.
//
//   type_name(DType::kF16) == "kiln::f16"
//   literal(DType::kF32, 2) == "2.0f"
//   spell(16*block_m + mod(floordiv(lane, 8), 2)) == "16 * block_m + lane / 8 % 2"
#pragma once

#include <functional>
#include <string>

#include "ir/expr.h"
#include "support/dtype.h"

namespace kiln::emit {

// How tightly an expression's outermost operator binds; C++'s order.
enum class Binding : std::uint8_t {
  kTernary,
  kLogicalOr,
  kLogicalAnd,
  kBitOr,
  kBitXor,
  kBitAnd,
  kEquality,
  kRelation,
  kShift,
  kSum,
  kProduct,
  kUnary,
  kPrimary,
};

struct Spelled {
  std::string text;
  Binding binding = Binding::kPrimary;
};

// The text, in brackets when its operator binds less tightly than `least`.
[[nodiscard]] std::string bracketed(const Spelled& spelled, Binding least);

[[nodiscard]] std::string type_name(DType dtype);
// `value`, rounded to the type, as an expression of that type.
[[nodiscard]] Spelled literal(DType dtype, double value);
// A C string literal with this content.
[[nodiscard]] std::string quoted(std::string_view text);

// What the spelling of an index expression needs to know of its variables.
struct VarFacts {
  std::function<std::string(ir::VarId)> name;
  std::function<bool(ir::VarId)> never_negative;
};
[[nodiscard]] bool never_negative(const ir::Expr& expr, const VarFacts& vars);
// Every number in it is an int: of int variables, C++ computes it in int, else in 64 bits.
[[nodiscard]] bool has_int_numbers(const ir::Expr& expr);
// Division is C's where it rounds down anyway, else kiln::floor_div and kiln::mod.
[[nodiscard]] Spelled spell(const ir::Expr& expr, const VarFacts& vars);

}  // namespace kiln::emit
