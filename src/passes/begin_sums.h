// Partial sums that begin with a product: where a tile that is scaled into another is filled with 0, and a
// product follows in any case, that one need not add to it.
//
//   fill frag=%part value=0                  fill frag=%part value=0 implied
//   for var=s upper=4 { mma c=%part }   =>   for var=s upper=4 { mma c=%part adds=s }
//   scale c=%c partial=%part                 scale c=%c partial=%part
//
// Where a sum is filled once, the kernel's compiler sees by itself that its registers are 0. But of partial sums
// that follow each other it makes the next one's zeros while the last one's products are on their way, in registers
// of their own: then there are too few.
//
// The fill stays where it was and says what the program means; it becomes no instruction. A loop that may make no trip,
// a branch, or anything else that is done with the tile in between leaves it an instruction.
//
// Runs behind skip-masks: waits and fences stand where the fill needs them, and nothing comes between a fill and its
// product any more.
#pragma once

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::passes {

Checked<bool> begin_sums(ir::Module& module, Diagnostics& diags);

}  // namespace kiln::passes
