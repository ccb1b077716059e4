#include "passes/place_barriers.h"

#include "passes/for_each_launch.h"
#include "passes/placer.h"

namespace kiln::passes {

Checked<bool> place_barriers(ir::Module& module, Diagnostics& diags) {
  bool failed = false;
  for_each_launch(module, [&](ir::Function& function, ir::OpId launch) {
    const auto threads = std::get<ir::Parallel>(function.ops[launch].data).threads.constant();
    const bool one_warp = threads && *threads <= target::kWarpLanes;
    Placer placer(function, body_of(function, launch), one_warp);
    placer.run();
    for (const ir::OpId id : placer.impossible()) {
      failed = true;
      (void)diags
          .report<diag::CollectiveDivergent>(function.ops[id].span,
                                             "a barrier of the cluster in front of this", "block")
          .help(
              "let all threads write and read what blocks of the cluster share, and choose behind "
              "it")
          .emit();
    }
  });
  if (failed) return diags.failed();
  return true;
}

}  // namespace kiln::passes
