// Rows and columns of register tiles made into one number, with what is known of it.
#pragma once

#include <span>

#include "ir/op.h"
#include "reference/number.h"

namespace kiln::reference {

// What a correct machine makes of the numbers, which have type `source`, in any order (ir::Reduce).
// A comparison that the numbers' errors leave open widens the result's.
[[nodiscard]] Number reduce(ir::ReduceKind kind, DType source, DType result,
                            std::span<const Number> numbers);

}  // namespace kiln::reference
