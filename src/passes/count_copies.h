// Counts asynchronous copies (cp.async). Each copy is a group; a wait can only say how many of the
// youngest may still be on their way.
//
//   %f = future; copy future=%f; copy; future_wait %f   =>   copy; copy; copy_wait pending=1
//
// For each name whose copy may be on its way, the least number of younger groups on any path to
// here is known: waiting until no more than so many are left waits for the copy, whatever happened.
// Loops are followed until nothing changes; `exchange` swaps two names.
//
// Runs after place-barriers: it turns into counts the waits which that pass marks, and those that
// the program wrote. Futures and exchanges go, as nothing asks for names any more.
#pragma once

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::passes {

Checked<bool> count_copies(ir::Module& module, Diagnostics& diags);

}  // namespace kiln::passes
