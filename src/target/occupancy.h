// How many blocks of a kernel an SM holds at once, and what keeps it from holding more.
//
//   occupancy(sm_80, {.threads = 256, .shared_bytes = 49152, .registers = 64})
//     threads          2048 / 256                            8 blocks
//     shared memory    167936 / (49152 + 1024)               3
//     registers        65536 / 2048 a warp = 32 warps        4
//     blocks                                                 32
//                                                     =>     3 blocks, 24 of 64 warps, by shared memory
//
// The rules are those of CUDA's occupancy calculator: registers are given to whole warps, in units,
// out of the quarter of the SM that the warp lives in; shared memory in units, and some of it is
// reserved for each block.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "target/arch.h"

namespace kiln::target {

// What one block asks for.
struct BlockNeeds {
  std::int64_t threads = 1;
  std::int64_t shared_bytes = 0;
  int registers = 0;  // of one thread
};

enum class Resource : std::uint8_t { kThreads, kSharedMemory, kRegisters, kBlocks };
inline constexpr std::array kResources = {Resource::kThreads, Resource::kSharedMemory,
                                          Resource::kRegisters, Resource::kBlocks};
[[nodiscard]] std::string_view name(Resource resource);  // "shared memory"

struct Occupancy {
  std::array<std::int64_t, kResources.size()> limits = {};  // blocks, by Resource
  std::int64_t blocks = 0;                                  // the least of them; 0: cannot run
  std::int64_t warps = 0;
  std::int64_t warps_max = 0;
  std::vector<Resource> limited_by;   // all that allow no more than `blocks`
  std::int64_t shared_bytes_max = 0;  // that a block may ask for

  [[nodiscard]] std::int64_t limit(Resource resource) const {
    return limits[static_cast<std::size_t>(resource)];
  }
};

[[nodiscard]] Occupancy occupancy(const Arch& arch, const BlockNeeds& needs);

}  // namespace kiln::target
