// A shape to explain a kernel with when the user gives none: a few full tiles along each dimension.
//
//   grid [cdiv(M, 64), cdiv(N, 64)], a loop over cdiv(K, 32)   =>   M=256 N=256 K=128
#pragma once

#include <cstdint>
#include <vector>

#include "ir/module.h"

namespace kiln::explain {

// A value for every dimension and integer parameter, by VarId (0 for other variables): four times
// the least common multiple of what the function divides a dimension by (once where four times are
// over 16384; divisors over 65536 do not count), 256 for a dimension that nothing divides, 1 for a
// parameter. Entry checks may still refuse it.
[[nodiscard]] std::vector<std::int64_t> full_tiles(const ir::Function& function);

}  // namespace kiln::explain
