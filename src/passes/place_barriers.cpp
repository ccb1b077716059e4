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
    for (const auto& [id, barrier] : placer.impossible()) {
      failed = true;
      const auto report = [&] {
        return diags
            .report<diag::CollectiveDivergent>(function.ops[id].span,
                                               barrier.of_cluster
                                                   ? "a barrier of the cluster in front of this"
                                                   : "a barrier in front of this",
                                               "block")
            .help("let all threads write and read what {} share, and choose behind it",
                  barrier.of_cluster ? "blocks of the cluster" : "threads of the block");
      };
      if (!barrier.where.valid()) {
        (void)report().emit();
        continue;
      }
      (void)report().label(barrier.where, "this differs between the threads of a block").emit();
    }
  });
  if (failed) return diags.failed();
  return true;
}

}  // namespace kiln::passes
