// What a launch reads from DRAM, by which tiles its blocks work on at the same time.
//
//   132 blocks at once, tiles of 128 x 256 of a product, K = 4096, 16-bit numbers, 64 rows of tiles
//     in the grid's order      64 rows and 3 columns of tiles:  70 MB, none of which the next 132 find again
//     [[order(columns, 8)]]    17 rows and 8 columns:           33 MB, and the 8 columns are there for the next
//
// Where a copy reads depends on the block, and in a persistent kernel on the round. What it reads there, through all
// inner loops, is a panel. Blocks that run at once go through their panels in step and each comes from DRAM once. A turn
// later it is still in the second-level cache if what the turns since have read, each panel once, fits.
#pragma once

#include "explain/cost/cost.h"

namespace kiln::explain {

// Bytes of all executions. Reads at places that memory says, or a variable of the program, are left out.
[[nodiscard]] double bytes_from_dram(const ir::Function& function, const ir::Arguments& arguments,
                                     const LaunchCost& launch, const sim::Outcome& outcome,
                                     const target::Arch& arch);

}  // namespace kiln::explain
