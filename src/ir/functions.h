// Functions of one number and of two, by the rows of kiln/device/function.def; and the operations on
// two scalars, by those of binary.def.
//
//   info(UnaryKind::kLog).value(1) == 0      info(UnaryKind::kLog).least == 0
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "ir/op.h"

namespace kiln::ir {

// How a function goes over the numbers that it has a value for: what bounds its values between the
// ends of an interval.
enum class Course : std::uint8_t {
  kMonotonic,   // it rises or falls all the way, or stays: the values at the ends
  kEven,        // of -x the same as of x, and rising from 0 on
  kWave,        // between -1 and 1, and nowhere steeper than 1
  kTangent,     // the tangent: it rises between poles that lie pi apart
  kReciprocal,  // it falls on both sides of 0, where it has a pole
};

// One row; function.def says what the columns mean.
struct FunctionInfo {
  UnaryKind kind;
  std::string_view name;
  std::string_view spelling;
  double (*value)(double x);
  double least;
  double most;
  Course course;
  double f32_ulps;
  double f32_zero;
  double f64_ulps;
};

// One row of a function of two numbers; its value is value_of(kind, x, y).
struct FunctionOfTwoInfo {
  BinaryKind kind;
  std::string_view name;
  std::string_view spelling;
  double f32_ulps;
  double f64_ulps;
};

// All of them, in the order of UnaryKind and of BinaryKind.
[[nodiscard]] std::span<const FunctionInfo> all_functions();
[[nodiscard]] std::span<const FunctionOfTwoInfo> all_functions_of_two();

// `function` must be one (is_function).
[[nodiscard]] const FunctionInfo& info(UnaryKind function);
// `function` must be one: of BinaryClass::kFunction.
[[nodiscard]] const FunctionOfTwoInfo& info(BinaryKind function);

// Whether it is a function whose values are all numbers of their type, so that nothing is rounded.
[[nodiscard]] inline bool is_exact(UnaryKind kind) {
  return is_function(kind) && info(kind).f32_ulps < 0;
}

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
  kFunction,    // f32 or f64, within the ulps of the row in function.def
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

// Of two floats, as a GPU has it (PTX ISA, "max"): what is no number is passed over, and -0 is less
// than 0.
[[nodiscard]] double larger_of(double a, double b);
[[nodiscard]] double smaller_of(double a, double b);

// a * b + c of numbers of f64, f32, f16 or bf16, rounded once.
[[nodiscard]] double fused(DType dtype, double a, double b, double c);

// What an atomic operation makes of the old content and the value; nothing where the value replaces
// it (by the rows of target/atomic.def).
[[nodiscard]] std::optional<BinaryKind> combines(target::Atomic kind);

// Of two floats, not rounded; bools are 0 and 1. No number where the operation is of none.
[[nodiscard]] double value_of(BinaryKind kind, double a, double b);

}  // namespace kiln::ir
