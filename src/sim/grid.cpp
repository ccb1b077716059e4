#include "sim/grid.h"

#include <algorithm>

namespace kiln::sim {

GridPlan plan_grid(const ir::Function& function, const ir::Parallel& data,
                   const std::vector<std::int64_t>& vars, bool representative) {
  Grid grid = {1, 1, 1};
  KILN_CHECK(data.vars.size() <= grid.size(), "{} axes", data.vars.size());
  for (std::size_t axis = 0; axis < data.vars.size(); ++axis) {
    const std::int64_t extent = function.vars[data.vars[axis]].extent.evaluate(vars);
    grid[axis] = std::max<std::int64_t>(extent, 0);
  }
  Grid cluster = {1, 1, 1};
  Grid clusters = grid;
  for (std::size_t axis = 0; axis < data.cluster_shape.size(); ++axis) {
    cluster[axis] = data.cluster_shape[axis];
    clusters[axis] = grid[axis] / cluster[axis];  // an entry check says that it divides
  }
  if (data.cooperative) {
    cluster = grid;
    clusters = {1, 1, 1};
  }
  GridPlan out{.data = data,
               .grid = grid,
               .cluster = cluster,
               .ranks = {},
               .clusters = Blocks(clusters, representative)};
  for (std::int64_t rank = 0; rank < cluster[0] * cluster[1] * cluster[2]; ++rank) {
    out.ranks.push_back(
        {rank % cluster[0], rank / cluster[0] % cluster[1], rank / (cluster[0] * cluster[1])});
  }
  return out;
}

ChosenBlock start_cluster(Machine& machine, const Warp& host, const GridPlan& plan,
                          std::int64_t i) {
  // Each cluster has random numbers of its own, whoever runs it.
  constexpr std::uint64_t kApart = 0xd1342543de82ef95ULL;
  machine.random_state = plan.random_state + kApart * static_cast<std::uint64_t>(i);
  const ChosenBlock chosen = plan.clusters[i];
  machine.block_numbers.clear();
  for (const Grid& rank : plan.ranks) {
    const auto at = [&](std::size_t axis) {
      return chosen.at[axis] * plan.cluster[axis] + rank[axis];
    };
    machine.block_numbers.push_back((at(2) * plan.grid[1] + at(1)) * plan.grid[0] + at(0));
  }
  start_block(machine, host);
  for (Warp& warp : machine.warps) {
    const Grid& rank = plan.ranks[warp.block];
    for (std::size_t axis = 0; axis < plan.data.vars.size(); ++axis) {
      std::fill_n(&warp.var(plan.data.vars[axis].index, 0), kLanes,
                  chosen.at[axis] * plan.cluster[axis] + rank[axis]);
    }
    for (std::size_t axis = 0; axis < plan.data.cluster.size(); ++axis) {
      std::fill_n(&warp.var(plan.data.cluster[axis].index, 0), kLanes, rank[axis]);
    }
  }
  return chosen;
}

Clock latest_clock(const Machine& machine) {
  Clock latest = machine.era->block_start;
  for (const Clock clock : machine.clocks) latest = std::max(latest, clock);
  return latest;
}

}  // namespace kiln::sim
