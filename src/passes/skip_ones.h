// Leaves out products of a tile with factors that are all 1.
//
//   alpha = grown ? __exp2f(..) : 1.0f;  sum = sum * alpha;     =>     apply frag=%sum ones=%alpha { .. }
//
// Attention takes its sums to a new largest score with a factor for each row, and as soon as a few tiles have been seen most
// rows have no new one. A program that then says 1 means that there is nothing to do. So where a tile is multiplied with
// factors of its rows, fewer than it has elements, of which some are chosen to be 1, each warp asks at run time whether its
// lanes hold others. The product with 1 has the bits of the other factor, so the question decides nothing but time.
//
// Runs behind assign-registers, whose registers it counts; nothing after it asks.
#pragma once

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::passes {

Checked<bool> skip_ones(ir::Module& module, Diagnostics& diags);

}  // namespace kiln::passes
