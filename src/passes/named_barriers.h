// Barriers inside `inthreads` regions: each region that needs one gets a named barrier, 1 to 15;
// those of threads of one warp are the warp's.
#pragma once

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::passes {

Checked<bool> number_barriers(ir::Function& function, ir::RegionId body, Diagnostics& diags);

}  // namespace kiln::passes
