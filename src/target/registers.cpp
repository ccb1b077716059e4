#include "target/registers.h"

#include <algorithm>

namespace kiln::target {

int registers_at_start(const Arch& arch, std::int64_t threads) {
  const std::int64_t warps = (threads + arch.warp_size - 1) / arch.warp_size;
  const auto share = static_cast<int>(arch.registers_per_block_max / (warps * arch.warp_size));
  const int unit = arch.registers_unit / arch.warp_size;
  return std::min(arch.registers_per_thread_max, share / unit * unit);
}

}  // namespace kiln::target
