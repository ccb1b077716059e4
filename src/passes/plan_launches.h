// Decides how each kernel is launched.
//
//   parallel level=block vars=[m, n] threads=384 cluster=[r] shared_bytes=196608     r < 2
//     =>   cluster_shape=[2, 1] bounds=[384] opts_in overlaps admits_next
//
// The compiler of a kernel is told the bounds that the program states, else the threads of a block;
// and of a kernel that changes its threads' registers that one block fits a multiprocessor.
//
// A launch overlaps those before it where the architecture lets a kernel begin early: it waits for
// them by itself, once it has set up what needs nothing of theirs. It admits the next one while it
// still works where a block has a multiprocessor to itself: early blocks of the next launch would
// else crowd onto some multiprocessors, beside blocks of this one. So it does where the function goes
// on with a launch without shared memory, whose blocks find room beside any others.
//
// Runs last: it is about kernels from outside, and no other pass asks for it. Needs the block's
// shared memory, of assign-layouts. Establishes Form::kDecided.
#pragma once

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::passes {

Checked<bool> plan_launches(ir::Module& module, Diagnostics& diags);

}  // namespace kiln::passes
