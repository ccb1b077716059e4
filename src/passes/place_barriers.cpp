#include "passes/place_barriers.h"

#include "passes/for_each_launch.h"
#include "passes/placer.h"

namespace kiln::passes {

Checked<bool> place_barriers(ir::Module& module, Diagnostics&) {
  for_each_launch(module, [&](ir::Function& function, ir::OpId launch) {
    const auto threads = std::get<ir::Parallel>(function.ops[launch].data).threads.constant();
    const bool one_warp = threads && *threads <= target::kWarpLanes;
    Placer(function, body_of(function, launch), one_warp).run();
  });
  return true;
}

}  // namespace kiln::passes
