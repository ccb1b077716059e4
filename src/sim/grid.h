// The blocks of a launch, ready to run in any order.
#pragma once

#include "ir/module.h"
#include "sim/blocks.h"
#include "sim/machine.h"

namespace kiln::sim {

struct GridPlan {
  const ir::Parallel& data;
  Grid grid = {1, 1, 1};     // blocks
  Grid cluster = {1, 1, 1};  // blocks of a cluster, which run together
  std::vector<Grid> ranks;   // the places of the cluster's blocks in it, x fastest
  Blocks clusters;
  std::uint64_t random_state = 0;  // of schedules: each cluster's own begins there

  [[nodiscard]] std::int64_t blocks() const { return grid[0] * grid[1] * grid[2]; }
};

// The grid of the launch with the host's values of variables.
[[nodiscard]] GridPlan plan_grid(const ir::Function& function, const ir::Parallel& data,
                                 const std::vector<std::int64_t>& vars, bool representative);

// Where cluster number `i` of the plan begins.
[[nodiscard]] ChosenBlock start_cluster(Machine& machine, const Warp& host, const GridPlan& plan,
                                        std::int64_t i);

// The latest clock that anything of the machine's last block has.
[[nodiscard]] Clock latest_clock(const Machine& machine);

}  // namespace kiln::sim
