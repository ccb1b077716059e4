// Checks what warpgroups give away and take of a block's registers.
//
//   384 threads start with 168 each: 64,512.  40, 232, 232  =>  64,512, which goes
//                                             240, 240, 240  =>  92,160, and the last waits for
//                                             ever
//
// A warpgroup takes no more than the others leave of what the block got, gives away only what it
// has, and takes only more than it has. Where one changes its count several times the least of them
// counts for the sum, since the others may have it in turn: what goes wrong then is a deadlock in
// the simulator.
//
// Changes nothing. Runs after plan-events, whose regions of a single thread need no registers of
// their own, and first of the steps that decide who waits: what it refuses would wait for ever.
//
// Errors: registers-pool, registers-order.
#pragma once

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::passes {

Checked<bool> check_registers(ir::Module& module, Diagnostics& diags);

}  // namespace kiln::passes
