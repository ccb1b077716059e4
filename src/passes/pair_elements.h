// Decides which applies compute two elements of f16 or bf16 at once, by packed arithmetic: one
// instruction for the two of a register, rounded as two would be.
//
//   apply frag=%p { %1 = element frag=%b; %2 = binary kind=sub left=%1 ...; set_element ... }
//   =>
//   apply frag=%p pairs { ... }
//
// Elements of f32 that are rounded to such a tile, or to one of an 8-bit float, go in pairs too.
//
// Runs after assign-registers, which says how elements lie in registers; nothing after it asks.
#pragma once

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::passes {

Checked<bool> pair_elements(ir::Module& module, Diagnostics& diags);

}  // namespace kiln::passes
