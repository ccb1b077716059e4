// Inserts the waits and barriers that the program's meaning implies.
//
//   copy lhs => a_s;  copy rhs => b_s;  load a_s      =>   copy, copy, copy_wait, barrier, load
//
// Collective statements (copy, load, store, Once) are ordered with everything that touches the same
// shared buffer; so is what stands on two sides of a `parallel` body. Element accesses of one
// thread level against each other are not: there the program says `sync.shared`. A barrier is
// placed as late as possible, directly in front of the operation that needs it, and one barrier
// serves all accesses before it, so the two copies above share theirs. Loops are gone through
// twice: what the end of the body leaves behind meets the beginning of the next trip.
//
// Runs last: it must see which copies are asynchronous. Establishes Form::kDecided.
#pragma once

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::passes {

Checked<bool> place_barriers(ir::Module& module, Diagnostics& diags);

}  // namespace kiln::passes
