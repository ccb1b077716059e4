// The functions among the unary operations, by the rows of kiln/device/function.def.
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

}  // namespace kiln::ir
