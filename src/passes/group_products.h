// Puts a fence before and a commit behind each run of asynchronous products, where nothing else
// stands between them: they are issued together, as one group.
//
//   for k { mma }; mma_wait   =>   mma_fence; for k { mma }; mma_commit; mma_wait
//
// Nothing is committed where the program does it by itself. A wait that it states names the last tile that rows or
// columns were made into since: that is computed in front of the wait, which the kernel's compiler would move up.
//
// Runs after place-barriers and the passes that move and drop its waits: whatever of those is left
// between two products ends a run.
#pragma once

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::passes {

Checked<bool> group_products(ir::Module& module, Diagnostics& diags);

}  // namespace kiln::passes
