// Says what a program means that commits its products and nowhere waits for them: the language
// promises that behind `mma.commit` all operands have been read, which the hardware promises only
// behind a wait.
//
//   mma; mma_commit                       =>   mma; mma_wait
//   mma; mma_commit; mma_wait pending=1   =>   the same: this program waits by itself
//
// Runs before place-barriers, which must see every wait that the program has; after plan-events,
// with the other steps that decide who waits for what. Needs nothing of the passes but that
// select-atoms has dropped the commits of synchronous products.
#pragma once

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::passes {

Checked<bool> spell_commits(ir::Module& module, Diagnostics& diags);

}  // namespace kiln::passes
