// Which `inthreads` regions one thread can run alone.
//
//   inthreads { for k { event_wait; copy bulk; trigger arrival=elected } }     =>   single
//   inthreads { event_wait; load; mma; trigger arrival=warp }                        all of them
//
// Registers that the whole region sets at its beginning become a region of their own in front.
// The region's only effects are waits for events, bulk copies and elected triggers: those are the
// business of its first thread anyway. The other threads then do not wait, so nothing that they do
// behind the region may need what it waited for.
#pragma once

#include <compare>

#include "ir/module.h"

namespace kiln::passes {

// Consecutive threads of the block; 0 threads: a number known only at the launch.
struct ThreadSet {
  std::int64_t first = 0;
  std::int64_t threads = 0;
  friend auto operator<=>(const ThreadSet&, const ThreadSet&) = default;
};

// Whether the region does nothing but wait for events, start bulk copies and trigger, after setting
// registers perhaps: then one thread can arrive for all of them, however the triggers stand now.
[[nodiscard]] bool only_moves_data(ir::Function& function, const ir::Inthreads& region);

// Sets Inthreads::single in a launch whose triggers know how they arrive.
void plan_single_regions(ir::Function& function, ir::OpId launch);

}  // namespace kiln::passes
