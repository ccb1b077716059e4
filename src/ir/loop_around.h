// Which loop an operation runs in, for messages about runs that do not end.
#pragma once

#include "ir/module.h"

namespace kiln::ir {

// The innermost loop without a count around the operation, else the outermost one with a count; the
// operation itself when it is in none.
[[nodiscard]] OpId loop_around(const Function& function, OpId op);

}  // namespace kiln::ir
