// Drops the variables that nothing reads any more: a program that is compiled without a window still works out where the
// window would begin.
//
//   %n = alloc initial=%0; set cell=%n value=%1; %2 = get cell=%n   =>   nothing, where %2 is used nowhere
//
// Runs last of what changes a kernel's operations, as other passes take readers away; plan-launches looks at what is left.
#pragma once

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::passes {

Checked<bool> drop_unread(ir::Module& module, Diagnostics& diags);

}  // namespace kiln::passes
