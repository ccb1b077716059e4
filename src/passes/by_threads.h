// A kernel in two forms: one whose copies the hardware makes, for shapes that it can, and one whose threads make them.
// Part of specialise.
#pragma once

#include <vector>

#include "ir/module.h"
#include "passes/bulk_instead.h"

namespace kiln::passes {

// Puts the launch under the conditions, and beside it the same kernel without a producer for everything else: its
// loops are pipelines of the kernel's own threads where they can be, else plain.
void or_by_threads(ir::Function& function, ir::OpId launch,
                   const std::vector<RowCondition>& conditions);

}  // namespace kiln::passes
