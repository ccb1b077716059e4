// Functions of one number, by the rows of kiln/device/function.def; and the operations on two
// scalars, by those of binary.def.
//
//   info(UnaryKind::kLog).value(1) == 0      info(UnaryKind::kLog).least == 0
#pragma once

#include <span>
#include <string_view>

#include "ir/op.h"

namespace kiln::ir {

// One row; function.def says what the columns mean.
struct FunctionInfo {
  UnaryKind kind;
  std::string_view name;
  std::string_view spelling;
  double (*value)(double x);
  double least;
  double most;
  double f32_ulps;
  double f64_ulps;
};

// All of them, in the order of UnaryKind.
[[nodiscard]] std::span<const FunctionInfo> all_functions();

// `function` must be one (is_function).
[[nodiscard]] const FunctionInfo& info(UnaryKind function);

// How far an implementation in the type itself may be off, in units of its last place: the largest
// of those that the CUDA C++ Programming Guide lists for these functions, rounded up.
inline constexpr double kFunctionUlps = 4;

// `function` must be one (is_function). Outside of its domain the value is no number.
[[nodiscard]] double value_of(UnaryKind function, double x);

// What the operands of a binary operation are, of one type always, and its result.
enum class BinaryClass : std::uint8_t {
  kArithmetic,  // numbers; a float is rounded to their type, an integer wraps
  kBits,        // integers
  kExtremum,    // numbers; the result is one of them
  kComparison,  // any; the result is a bool
  kLogical,     // bools, both of which are evaluated
};

[[nodiscard]] constexpr BinaryClass class_of(BinaryKind kind) {
  constexpr BinaryClass kRows[] = {
#define KILN_BINARY(Name, name, text, binding, category, ...) BinaryClass::category,
#include "ir/binary.def"
#undef KILN_BINARY
  };
  return kRows[static_cast<std::size_t>(kind)];
}
[[nodiscard]] constexpr bool is_comparison(BinaryKind kind) {
  return class_of(kind) == BinaryClass::kComparison;
}
[[nodiscard]] constexpr bool is_logical(BinaryKind kind) {
  return class_of(kind) == BinaryClass::kLogical;
}

// Of two floats, not rounded; bools are 0 and 1. No number where the operation is of none.
[[nodiscard]] double value_of(BinaryKind kind, double a, double b);

}  // namespace kiln::ir
