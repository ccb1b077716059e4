// Gives every shared buffer its swizzle and its address.
//
//   %a = alloc : view<f16, shared, [16, 16]>   =>   alloc offset=0 swizzle=32
//
// A buffer that the matrix unit reads or writes gets the widest swizzle its rows allow, so that the
// eight rows of a matrix lie in different banks; the program's own `.swiz` comes first. A buffer
// that a warpgroup reads in place must have one that every tile read can be described with
// (target/descriptor.h). One that bulk copies touch gets a swizzle with which they have boxes
// (passes/bulk_box.h), if there is one. Buffers do not share memory yet. Behind them stand the
// events, 8 bytes a slot. Runs after select-atoms (it asks which
// buffers feed the matrix unit) and before plan-copies (vector widths depend on the layout).
// Establishes Form::kLaidOut.
//
// Errors: shared-memory-limit, mma-tile-unaddressable, mma-swizzle-unaddressable.
#pragma once

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::passes {

Checked<bool> assign_layouts(ir::Module& module, Diagnostics& diags);

}  // namespace kiln::passes
