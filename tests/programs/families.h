// The families of programs. Each adds one launch to the function, and parameters for it.
#pragma once

#include "programs/gen.h"

namespace kiln::programs {

// One to three launches of families that the architecture serves.
void draw_family(Gen& gen);
// One launch of units that compute with register tiles.
void draw_tile_family(Gen& gen);

void add_elementwise(Gen& gen);   // each thread computes elements
void add_copies(Gen& gen);        // tiles through shared and local memory, by every view
void add_block(Gen& gen);         // threads that meet in shared memory: sums, scans, stencils
void add_futures(Gen& gen);       // asynchronous copies whose names change places
void add_events(Gen& gen);        // regions that meet at events, rings of buffers
void add_extra(Gen& gen);         // the host part, tuples, tiles in turn, and what else there is
void add_product(Gen& gen);       // products of warps
void add_wide_product(Gen& gen);  // products of warpgroups, alone and behind a producer (sm_90a)

}  // namespace kiln::programs
