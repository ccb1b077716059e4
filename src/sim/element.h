// One element of memory and a register.
#pragma once

#include <optional>

#include "sim/access.h"
#include "sim/program.h"

namespace kiln::sim {

[[nodiscard]] Scalar load_scalar(DType dtype, const std::byte* at);
void store_scalar(DType dtype, std::byte* at, Scalar value);

// The address of the element that the lane accesses; reported and nothing where it is outside.
[[nodiscard]] std::optional<std::int64_t> address_of(const Touch& touch, const ElementPlan& plan);

}  // namespace kiln::sim
