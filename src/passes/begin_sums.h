// Sums that begin with a product: where a tile is filled with 0, and a product follows in any case, that one need
// not add to it.
//
//   fill frag=%s value=0                  fill frag=%s value=0 implied
//   for var=i upper=4 { mma c=%s }   =>   for var=i upper=4 { mma c=%s adds=i }
//
// Mostly the kernel's compiler sees by itself that registers are 0. But while other products are on their way it makes a
// sum's zeros in registers of their own, of which there are too few, or waits for those products first. So it is
// done for sums whose products begin behind others that nobody has waited for, and for partial sums, which are scaled into
// another one. (Done for all sums it costs attention of depth 128 1 % in the mean on H200, others nothing.)
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
