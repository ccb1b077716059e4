// What a function makes of numbers that are known to within an error: how far its values there may
// lie from its value in the middle.
//
//   spread_of(exp,   {0, 0.1})      ==  exp(0.1) - 1        the ends bound what is monotonic
//   spread_of(floor, {2.5, 0.1})    ==  0                   on this step all the way
//   spread_of(floor, {3, 0.1})      ==  1                   2 or 3: nobody can say
//   spread_of(sin,   {1e6, 100})    ==  1 + |sin(1e6)|      no further than from -1 to 1
//   spread_of(tan,   {1.5, 0.1})    ==  infinity            a pole lies between
#pragma once

#include "ir/functions.h"
#include "reference/number.h"

namespace kiln::reference {

// Not a number or infinite where the values are not bounded, or there may be none.
[[nodiscard]] double spread_of(const ir::FunctionInfo& row, const Number& operand);
// Of a function of two numbers (ir::BinaryClass::kFunction).
[[nodiscard]] double spread_of(ir::BinaryKind function, const Number& left, const Number& right);

}  // namespace kiln::reference
