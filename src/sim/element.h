// One element of memory and a register.
#pragma once

#include "sim/program.h"

namespace kiln::sim {

[[nodiscard]] Scalar load_scalar(DType dtype, const std::byte* at);
void store_scalar(DType dtype, std::byte* at, Scalar value);

}  // namespace kiln::sim
