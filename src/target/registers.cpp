#include "target/registers.h"

#include <algorithm>

namespace kiln::target {

int registers_at_start(const Arch& arch, std::int64_t threads) {
  const std::int64_t warps = (threads + kWarpLanes - 1) / kWarpLanes;
  const auto share = static_cast<int>(arch.registers_per_block_max / (warps * kWarpLanes));
  const int unit = arch.registers_unit / kWarpLanes;
  return std::min(arch.registers_per_thread_max, share / unit * unit);
}

int registers_beside(const Arch& arch, std::int64_t threads, std::int64_t blocks) {
  constexpr std::int64_t kStep = 8;  // of what ptxas gives a thread
  const std::int64_t warps = (threads + kWarpLanes - 1) / kWarpLanes;
  const std::int64_t share = arch.registers_per_sm / (blocks * warps * kWarpLanes);
  return static_cast<int>(share / kStep * kStep);
}

}  // namespace kiln::target
