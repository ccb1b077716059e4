// What sema could not prove of extents and counts, and asks for where it can be known.
//
//   x.chunkat(i, _)      // i < c, c a parameter:            c divides M is checked at the call
//   x.chunkat(i, _)      // i < n, n read by the kernel:     assert M % n == 0
#pragma once

#include "sema/state.h"

namespace kiln::sema {

// Checked at entry where both sides are known at the launch, once for a place; else asserted there.
void require(Sema& sema, ir::EntryCheck check);

}  // namespace kiln::sema
