// Which indices of the `parallel`s inside of a block a thread has.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/module.h"

namespace kiln::coverage {

// Sets the indices, by VarId, that the thread of the block has in the parallels of `nest`, which
// stand in each other, outermost first.
void set_unit_indices(const ir::Function& function, const std::vector<ir::OpId>& nest,
                      std::int64_t block_threads, std::int64_t thread,
                      std::vector<std::int64_t>& values);

}  // namespace kiln::coverage
