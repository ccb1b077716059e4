#include "passes/place_barriers.h"

#include "passes/check_registers.h"
#include "passes/copy_groups.h"
#include "passes/delay_bulk_waits.h"
#include "passes/grouper.h"
#include "passes/named_barriers.h"
#include "passes/placer.h"

namespace kiln::passes {

namespace {

// `mma.commit` alone promises that all operands have been read; only `mma.wait` says otherwise.
void spell_out_commits(ir::Function& function, ir::RegionId body) {
  bool stated_waits = false;
  std::vector<ir::OpId> commits;
  ir::walk(function, body, [&](ir::OpId id) {
    const auto* wait = std::get_if<ir::MmaWait>(&function.ops[id].data);
    stated_waits = stated_waits || (wait != nullptr && wait->stated);
    if (function.ops[id].kind() == ir::OpKind::kMmaCommit) commits.push_back(id);
  });
  if (stated_waits) return;
  for (const ir::OpId id : commits) function.ops[id].data = ir::MmaWait{};
}

}  // namespace

Checked<bool> place_barriers(ir::Module& module, Diagnostics& diags) {
  bool failed = false;
  for (ir::Function& function : module.functions) {
    for (const ir::OpId launch : ir::launches(function)) {
      const auto& parallel = std::get<ir::Parallel>(function.ops[launch].data);
      const auto threads = parallel.threads.constant();
      const bool one_warp = threads && *threads <= target::kWarpLanes;
      const ir::RegionId body = parallel.body;
      failed = !check_registers(module, function, launch, diags) || failed;
      spell_out_commits(function, body);
      Placer(function, body, one_warp).run();
      delay_bulk_waits(function, body);
      count_copies(function, body);
      failed = !number_barriers(function, body, diags) || failed;
      group_products(function, body);
    }
  }
  if (failed) return diags.failed();
  return true;
}

}  // namespace kiln::passes
