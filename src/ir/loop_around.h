// Which loop an operation runs in, and how long loops are at least: for runs that do not end.
#pragma once

#include "ir/module.h"

namespace kiln::ir {

// The innermost loop without a count around the operation, else the outermost one with a count; the
// operation itself when it is in none.
[[nodiscard]] OpId loop_around(const Function& function, OpId op);

// How many trips the loops of a region make at least, each time that threads go through it: those
// that stand under no condition and have constant bounds. At most UINT64_MAX.
//
//   foreach j in [100] { foreach k in [50] ...; }       5000
//   foreach j in [N] ...;  if (t < 3) { foreach ... }   0
[[nodiscard]] std::uint64_t least_trips(const Function& function, RegionId region);

}  // namespace kiln::ir
