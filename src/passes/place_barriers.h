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
// Asynchronous products read shared memory after their statement. Before a barrier that lets others
// overwrite what they read, and before anything that touches their registers, stands a wait; memory
// written by threads goes through a proxy fence, and a barrier, before they read it. Neighbouring
// products are issued together, between one fence and one commit:
//
//   for k { mma }; copy => a_s     =>   mma_fence, for k { mma }, mma_commit, mma_wait, barrier,
//   copy
//
// What a loop or an `if` does to registers of products from before it waits once, in front of it.
// Products issued under an `if` that only part of the block enters are waited for inside it, as a
// barrier can not stand there.
//
// A program that waits by itself (`mma.wait`, futures) gets no waits for products.
//
// Runs last: it must see which copies are asynchronous. Establishes Form::kDecided.
#pragma once

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::passes {

Checked<bool> place_barriers(ir::Module& module, Diagnostics& diags);

}  // namespace kiln::passes
