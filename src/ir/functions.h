// The values of the functions among the unary operations, in fp64.
#pragma once

#include "ir/op.h"

namespace kiln::ir {

// How far an implementation in the type itself may be off, in units of its last place: the largest
// of those that the CUDA C++ Programming Guide lists for these functions, rounded up.
inline constexpr double kFunctionUlps = 4;

// `function` must be one (is_function). Outside of its domain the value is no number.
[[nodiscard]] double value_of(UnaryKind function, double x);

}  // namespace kiln::ir
