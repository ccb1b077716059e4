// Inserts the waits and barriers that the program's meaning implies.
//
//   copy lhs => a_s;  copy rhs => b_s;  load a_s      =>   copy, copy, copy_wait, barrier, load
//
// A collective statement (copy, load, store, Once) is ordered with everything that touches the same
// shared buffer, and so are accesses inside and outside of the body of a `parallel`. Element
// accesses of threads inside one such body are not: there the program says `sync.shared`. A barrier
// is placed as late as possible, directly in front of the operation that needs it, and one barrier
// serves all accesses before it, so the two copies above share theirs. The pass goes through a loop
// twice, so that accesses at the end of its body meet those at the beginning of the next trip.
//
// Asynchronous products read shared memory after their statement. Before a barrier that lets others
// overwrite what they read, and before anything that touches their registers, stands a wait; memory
// written by threads goes through a proxy fence, and a barrier, before they read it:
//
//   for k { mma }; copy => a_s     =>   for k { mma }, mma_wait, barrier, copy
//
// Where a loop or an `if` touches registers of products that were issued before it, one wait stands
// in front of it, none inside. Products issued under an `if` that only part of the block enters are
// waited for inside it, as a barrier can not stand there.
//
// A program that waits by itself (`mma.wait`, futures) gets no waits for products.
//
// An `inthreads` region is a program of its own: barriers inside are its threads' (a named barrier,
// the warp's, or none for one thread). One barrier in front of neighbouring regions orders what the
// block did before; behind asynchronous ones the block meets before it does anything together.
// What regions do to each other is ordered by events, so in front of a trigger stands what would
// stand in front of a barrier: waits for products and copies, and the fence. Waiting for an event
// needs nothing.
//
//   copy => b[s]; trigger full[s]     =>   copy, copy_wait, proxy_fence, trigger
//
// Copies with a name (futures) are waited for where the program says. A wait or a barrier that this
// pass places has no number yet: count-copies says for how many copies it waits, and
// number-barriers at which barrier a region's threads meet.
//
// Runs after plan-copies, which says which copies are asynchronous, plan-events, which says who
// arrives at events, and spell-commits, which says where the program waits by itself. Before all
// passes that change the waits it places.
#pragma once

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::passes {

Checked<bool> place_barriers(ir::Module& module, Diagnostics& diags);

// Refuses what would have to wait where nobody can: a warp that reads shared memory which it, or others, wrote together
// since all have met, under a condition that is not the same for all.
//
//   if (w == 1) {
//     frag.store t, s;
//     u = frag.load s;     needs a barrier in front, and only one warp is there
//   }
Checked<bool> check_meetings(ir::Module& module, Diagnostics& diags);

}  // namespace kiln::passes
