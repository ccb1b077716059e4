// Barriers by level: the threads of the unit wait for each other and see each other's memory.
#pragma once

namespace kiln {

__device__ inline void barrier_block() { __syncthreads(); }

// A warp.
__device__ inline void barrier_group() { __syncwarp(); }

// Four consecutive warps. Barrier 0 is the block's; groups of four take 1 to 8.
__device__ inline void barrier_group4() {
  asm volatile("bar.sync %0, 128;" ::"r"(static_cast<int>(threadIdx.x) / 128 + 1) : "memory");
}

}  // namespace kiln
