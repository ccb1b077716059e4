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
// Part of place-barriers, which must see the regions and how many threads they have.
//
// Errors: registers-pool, registers-order.
#pragma once

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::passes {

// False after an error.
bool check_registers(const ir::Module& module, const ir::Function& function, ir::OpId launch,
                     Diagnostics& diags);

}  // namespace kiln::passes
