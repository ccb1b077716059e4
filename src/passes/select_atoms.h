// Chooses the hardware instruction of every `mma`, and with it the register layout of its
// fragments.
//
//   mma c=%mc a=%ma b=%mb          (16x16x16 of f16 into f16)
//     =>  mma c=%mc a=%ma b=%mb atom=m16n8k16.f16.f16 repeats=[1, 2, 1]
//
// A request that the instruction serves with A and B exchanged (8x32x16) is turned around here, so
// that nothing later has to know:
//
//   mma c=%mc a=%ma b=%mb, apply frag=%mc row=i col=j, store frag=%mc
//     =>  mma c=%mc a=%mb b=%ma, apply frag=%mc row=j col=i, store frag=%mc transposed
//                                                               %mc is 32x8 from now on
//
// `mma.commit` and `mma.wait` disappear where all products are synchronous.
//
// Runs first: every later decision (shared layouts, ldmatrix, barriers) follows from what the
// matrix unit wants. Sema has already refused tiles that no instruction serves. Establishes
// Form::kAtoms.
#pragma once

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::passes {

Checked<bool> select_atoms(ir::Module& module, Diagnostics& diags);

}  // namespace kiln::passes
