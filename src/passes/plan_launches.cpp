#include "passes/plan_launches.h"

#include "passes/for_each_launch.h"

namespace kiln::passes {

namespace {

// Blocks of the launch's clusters by axis of the grid; axes without clusters have one.
std::vector<std::int64_t> cluster_shape(const ir::Function& function, const ir::Parallel& launch) {
  if (launch.cluster.empty()) return {};
  std::vector<std::int64_t> shape;
  for (const ir::VarId var : launch.cluster) {
    shape.push_back(function.vars[var].extent.constant().value_or(1));
  }
  shape.resize(launch.vars.size(), 1);
  return shape;
}

void plan_launch(const ir::Function& function, const target::Arch& arch, ir::Parallel& launch) {
  launch.cluster_shape = cluster_shape(function, launch);
  launch.threads_max = launch.threads.constant() ? 0 : arch.threads_per_block_max;
  launch.opts_in = launch.shared_bytes > arch.smem_static_max;
  launch.overlaps = arch.has(target::Feature::kGriddepcontrol);
  launch.admits_next = launch.overlaps && 2 * launch.shared_bytes > arch.smem_per_sm;
}

}  // namespace

Checked<bool> plan_launches(ir::Module& module, Diagnostics&) {
  for_each_launch(module, [&](ir::Function& function, ir::OpId launch) {
    plan_launch(function, *module.arch, std::get<ir::Parallel>(function.ops[launch].data));
  });
  return true;
}

}  // namespace kiln::passes
