// Starts the copies of loops marked `[[pipeline(S)]]` S - 1 iterations ahead, into rings of S buffers.
//
//   for k in [n]              =>   copies of iterations 0 .. S-2 into buffers 0 .. S-2
//     copy x(k) => x_s             for k in [n - (S-1)]
//     use x_s                        wait for iteration k's copies
//                                    copy x(k + S-1) => the buffer that iteration k-1 has read
//                                    use buffer k % S
//                                  for k from max(n - (S-1), 0) to n
//                                    wait for iteration k's copies; use buffer k % S
//
// Copies by threads (`dma`) have a future and a name for each stage, and the names rotate; bulk ones (`tma`)
// meet at a row of S events. Both are what a program can say by itself (kiln ir --as co).
//
// A copy is started behind the wait of its iteration: what that wait has the threads meet for also says that
// the buffer is read. Reads beyond the last iteration give zeros, as all reads outside of a buffer do; a bulk
// copy beyond it is not started, for nobody would wait for its event.
//
// Runs first: it needs no decision, and what it makes is decided like what a program says. Without the
// attribute nothing changes. Without a number in it, the model of time chooses one (choose_stages.h).
//
// Errors: pipeline-no-copies, pipeline-dependence, pipeline-buffer, pipeline-loop, pipeline-memory.
#pragma once

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::passes {

Checked<bool> pipeline(ir::Module& module, Diagnostics& diags);

}  // namespace kiln::passes
