// Checks that `setmaxnreg` (ir::Registers) moves a block's registers between its warpgroups in a
// way that can come true: a warpgroup that asks for more waits until others have given as much
// away.
//
//   A block of 384 threads starts with 168 registers a thread: 64,512 for its three warpgroups.
//   40, 232 and 232 a thread      =>  64,512: what the first gives away the others get
//   240, 240 and 240 a thread     =>  92,160: the last would wait for ever
//
// So the counts of all warpgroups together are no more than the block started with, and a warpgroup
// gives away only what it has, and takes only more than it has. A warpgroup that changes its count
// several times is in the sum with its least one, as the others may have the rest in turn; where
// they do not, the simulator finds the deadlock.
//
// Changes nothing. Runs after plan-events, which finds the regions that a single thread runs (they
// need no registers of their own), and before the steps that decide who waits: what is refused here
// would wait for ever.
//
// Errors: registers-pool, registers-order.
#pragma once

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::passes {

Checked<bool> check_registers(ir::Module& module, Diagnostics& diags);

}  // namespace kiln::passes
