// Barriers inside `inthreads` regions: each region that needs one gets a named barrier, 1 to 15;
// those of threads of one warp are the warp's.
//
//   inthreads first=128 threads=128 body={ barrier level=block }
//     =>   inthreads first=128 threads=128 barrier=1 body={ barrier level=block id=1 threads=128 }
//   inthreads first=0 threads=32 body={ barrier level=block }     =>   { barrier level=group }
//
// Runs after place-barriers and delay-bulk-waits: until then a region's barriers are the block's,
// and those of one thread, which are dropped here, still say where waits belong.
//
// Errors: named-barrier-count, named-barrier-threads.
#pragma once

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::passes {

Checked<bool> number_barriers(ir::Module& module, Diagnostics& diags);

}  // namespace kiln::passes
