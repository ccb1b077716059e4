// How many registers the threads of a block have: at its start, and when warpgroups share them out
// anew (`setmaxnreg`).
//
//   registers_at_start(sm_90a, 384)    168: 65,536 shared by 12 warps, in units of 8
//   384 * 168 = 64,512                 the pool: one warpgroup goes down to 40, two go up to 232
//
// PTX ISA, "setmaxnreg": the instruction that takes more waits until the block's pool has them, and
// the one that gives some away fills that pool; both need a kernel with a register limit.
#pragma once

#include <cstdint>

#include "target/arch.h"

namespace kiln::target {

// A register of a thread.
inline constexpr int kRegisterBytes = 4;

// What `setmaxnreg` takes.
struct RegisterCounts {
  std::int64_t least;
  std::int64_t most;
  std::int64_t step;
};
inline constexpr RegisterCounts kRegisterCounts = {.least = 24, .most = 256, .step = 8};

// The most that __launch_bounds__ leaves each thread of a block of which one fits the
// multiprocessor.
[[nodiscard]] int registers_at_start(const Arch& arch, std::int64_t threads);

// The most that each thread may have where so many blocks are to fit the multiprocessor.
[[nodiscard]] int registers_beside(const Arch& arch, std::int64_t threads, std::int64_t blocks);

}  // namespace kiln::target
