// What every kernel of attention needs of the architecture and of its tensors.
#pragma once

#include <string>
#include <string_view>

#include "attention/problem.h"
#include "target/arch.h"

namespace kiln::attention {

// What of it is missing, in words; empty when nothing is.
[[nodiscard]] std::string missing(const target::Arch& arch);
// The same, and of kernels whose tensors are of 16 bits.
[[nodiscard]] std::string missing(const target::Arch& arch, DType dtype);

// A step of a tensor that bulk copies do not take, in words; empty when there is none. `outermost` is
// what its first dimension counts.
[[nodiscard]] std::string unaligned_step(std::string_view tensor, const Spacing& spacing,
                                         DType dtype, std::string_view outermost = "batches");

}  // namespace kiln::attention
