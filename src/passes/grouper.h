// Puts a fence before and a commit behind each run of asynchronous products, where nothing else
// stands between them.
#pragma once

#include "ir/module.h"

namespace kiln::passes {

// Nothing is committed where the program does it by itself.
void group_products(ir::Function& function, ir::RegionId body);

}  // namespace kiln::passes
