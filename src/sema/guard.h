// What the conditions around a statement say of integers. Internal to this folder.
//
//   if (w < 2) trigger full[w];      // w is at most 1 here, whatever number of warps there is
#pragma once

#include <cstdint>
#include <optional>

#include "sema/state.h"

namespace kiln::sema {

// Remembers that the condition holds, or does not, where the program stands: comparisons of integers,
// and such that `&&` or `||` join. Who calls it makes `sema.guards` shorter again behind the branch.
void learn(Sema& sema, ir::ValueId condition, bool holds);

// The largest value that the expression takes in a thread that comes here, as far as is known, where that is
// `extent` or more; none where it has no known bound, or nobody comes.
[[nodiscard]] std::optional<std::int64_t> too_large_here(const Sema& sema, const ir::Expr& expr,
                                                         std::int64_t extent);

}  // namespace kiln::sema
