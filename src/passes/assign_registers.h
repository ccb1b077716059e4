// Gives every register tile that no instruction names the layout of its registers.
//
//   %p = alloc : frag<tile, f32, 64x128>   =>   alloc registers="((4,8,4),(2,2,16)):((128,1,16),(64,8,512))"
//
// A tile that meets an accumulator element by element has the accumulator's layout, so that each
// lane has all of an element's operands; rows and columns that are made of a tile, or go with it,
// stand in every lane that has a part of theirs. What goes to an operand of `mma` has the operand's
// layout if nothing else wants it otherwise. A tile that meets none of these is spread over the
// threads of its unit, in runs as long as a vector of memory. Where they cannot share it evenly it is
// padded, if that leaves them less to hold; what lies beyond the tile's edge then is left out, or
// counts as what changes nothing, as each operation says (Touch::beyond).
//
//   %x : frag<tile, f32, 1x1023>, a block of 32   =>   alloc registers="(32,32):(1,32)" padded=[1, 1024]
//
// Where two layouts meet, the tile is converted: a Convert where the lanes hold what they need
// already, or lanes of a quad hold it for each other (ir::quad_moves), else through shared memory (a
// Store and a Load, which later passes order like any other). A row whose parts lie in several warps is reduced in each warp first, then from shared
// memory. Runs after select-atoms, which decides the accumulators' registers, and before
// assign-layouts, which places the buffers that are added here.
//
// Errors: tile-layout, tile-registers, tile-divergent.
#pragma once

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::passes {

Checked<bool> assign_registers(ir::Module& module, Diagnostics& diags);

}  // namespace kiln::passes
