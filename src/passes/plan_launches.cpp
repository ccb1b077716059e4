#include "passes/plan_launches.h"

#include <algorithm>

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

// Threads whose registers change in number need to know how many there are at the start: what one
// block to a multiprocessor leaves them.
bool changes_registers(const ir::Function& function, const ir::Parallel& launch) {
  bool found = false;
  ir::walk(function, launch.body, [&](ir::OpId id) {
    found = found || function.ops[id].kind() == ir::OpKind::kRegisters;
  });
  return found;
}

std::vector<std::int64_t> bounds_of(const ir::Function& function, const ir::Parallel& launch) {
  if (launch.registers_max != 0) return {};
  const std::int64_t threads = launch.threads.constant().value_or(launch.threads_max);
  std::vector<std::int64_t> bounds = {launch.threads_bound != 0 ? launch.threads_bound : threads};
  const std::int64_t blocks = changes_registers(function, launch) ? 1 : launch.blocks_min;
  if (blocks != 0) bounds.push_back(blocks);
  return bounds;
}

// Whether the function goes on with a launch that takes no shared memory.
bool light_one_follows(const ir::Function& function, const ir::Parallel& launch) {
  const std::vector<ir::OpId> launches = ir::launches(function);
  const auto of = [&](ir::OpId id) -> const ir::Parallel& {
    return std::get<ir::Parallel>(function.ops[id].data);
  };
  const auto here = std::ranges::find_if(launches, [&](ir::OpId id) { return &of(id) == &launch; });
  if (here == launches.end() || here + 1 == launches.end()) return false;
  const ir::Parallel& next = of(*(here + 1));
  return next.shared_bytes == 0 && next.shared_more.is(0);
}

// Blocks of the next launch that came early would settle unevenly where two of this one's fit onto a
// multiprocessor; those without shared memory find room everywhere.
bool admits_next(const ir::Function& function, const target::Arch& arch,
                 const ir::Parallel& launch) {
  return 2 * launch.shared_bytes > arch.smem_per_sm || light_one_follows(function, launch);
}

void plan_launch(const ir::Function& function, const target::Arch& arch, ir::Parallel& launch) {
  launch.cluster_shape = cluster_shape(function, launch);
  launch.threads_max = launch.threads.constant() ? 0 : arch.threads_per_block_max;
  launch.bounds = bounds_of(function, launch);
  launch.opts_in = launch.shared_bytes > arch.smem_static_max || !launch.shared_more.is(0);
  launch.overlaps = arch.has(target::Feature::kGriddepcontrol) && !launch.cooperative;
  launch.admits_next = launch.overlaps && admits_next(function, arch, launch);
}

}  // namespace

Checked<bool> plan_launches(ir::Module& module, Diagnostics&) {
  for_each_launch(module, [&](ir::Function& function, ir::OpId launch) {
    plan_launch(function, *module.arch, std::get<ir::Parallel>(function.ops[launch].data));
  });
  return true;
}

}  // namespace kiln::passes
