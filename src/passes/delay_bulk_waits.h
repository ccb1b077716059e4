// Lets bulk copies to global memory run on while the threads go on: the wait that sema put right
// behind such a copy moves down to where somebody may touch what the copy reads.
//
//   copy bulk %c_s => %c; bulk_wait; ...; barrier; store => %c_s
//   =>
//   copy bulk %c_s => %c; ...; bulk_wait; barrier; store => %c_s
//
// That is in front of the next barrier (it is what tells other threads), of a write to the same
// buffer, of a trigger when other regions use the buffer, and at the end of the region or the
// kernel, whose shared memory must last. A loop takes the wait along to its next trip. Waits that
// the program wrote stay where they are, and so do those of tensors that the kernel reads or writes
// otherwise as well: these wait until the bytes have landed, for reading frees the shared tile and
// shows nobody what was written.
//
// Runs after place-barriers, in front of whose barriers it waits. Before number-barriers, which
// drops barriers that one thread has no use for: a wait stands there all the same.
#pragma once

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::passes {

Checked<bool> delay_bulk_waits(ir::Module& module, Diagnostics& diags);

}  // namespace kiln::passes
