// Decides how bytes move: vector widths and threads of every copy, ldmatrix or plain loads of every
// fragment, the runs of every store, and which dimensions need a guard.
//
//   copy src=%view dst=%tile   =>   way=gather grouped threads=32 widths=[16, 2] guarded=[0, 1]
//   copy src=%view dst=%end    =>   way=element threads=32 widths=[4] tile_guarded=[0]
//   load frag=%ma view=%v      =>   instruction=ldmatrix.x4 matrices=[0, 0, 8, 0, 0, 8, 8, 8]
//   copy src=%v dst=%t bulk    =>   way=bulk threads=128 box=[128, 64]
//
// The way of a copy is the best that both sides allow: cp.async to shared memory where the
// architecture has it (then the copy is a group, which waits count), else vectors through
// registers, else single elements. Vectors of 16 bytes are also cut out of two aligned ones where
// rows begin anywhere, except by a copy of 4-byte elements that something runs beside: that one has
// no registers for it.
//
// Inside an `inthreads` region what the block would do is done by the region's threads. A copy that
// permutes dimensions moves single elements. Bulk copies have no guards: the hardware clips boxes
// by limits that are known at the launch (passes/bulk_box.h says which boxes there are).
//
// A dimension is guarded unless the tile provably lies inside its base, for each side by itself. A
// copy with a guard on a shared or local side moves single elements: only limits of global memory
// cut vectors. Runs after assign-layouts
// (a swizzled row keeps 16 bytes together, no more) and before place-barriers (asynchronous copies
// need a wait, others do not). Establishes Form::kPlanned.
//
// Errors: tma-box-rank, tma-box-row, tma-box-panels, tma-box-start, tma-box-run,
// tma-extent-unknown.
#pragma once

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::passes {

// Whether each row of a view begins at a multiple of so many elements in memory, and is a multiple of as many
// long, as far as is known before the launch.
bool begin_at_multiples(const ir::Function& function, ir::ValueId view, std::int64_t elements);

Checked<bool> plan_copies(ir::Module& module, Diagnostics& diags);

}  // namespace kiln::passes
