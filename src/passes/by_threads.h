// A kernel in several forms: copies that the hardware makes, for shapes that it can, and copies of threads. Part of
// specialise.
#pragma once

#include <string_view>
#include <vector>

#include "ir/module.h"
#include "passes/bulk_instead.h"

namespace kiln::passes {

// Puts the launch under the conditions, and beside it the same kernel without a producer for everything else: its
// loops are pipelines of the kernel's own threads where they can be, else plain.
void or_by_threads(ir::Function& function, ir::OpId launch,
                   const std::vector<RowCondition>& conditions);

// Puts the launch under the conditions, and beside it the same once more, whose name ends with `suffix`. The other
// launch.
[[nodiscard]] ir::OpId or_else(ir::Function& function, ir::OpId launch,
                               const std::vector<RowCondition>& conditions,
                               std::string_view suffix);

}  // namespace kiln::passes
