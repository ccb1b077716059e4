// Barriers by level: the threads of the unit wait for each other and see each other's memory.
#pragma once

namespace kiln {

__device__ inline void barrier_block() { __syncthreads(); }

// A warp.
__device__ inline void barrier_group() { __syncwarp(); }

// So many lanes of a warp, from one on: the others run something else.
template <int First, int Lanes>
__device__ inline void barrier_lanes() {
  static_assert(First >= 0 && Lanes >= 1 && First + Lanes <= 32 && Lanes < 32, "no part of a warp");
  __syncwarp(((1u << Lanes) - 1) << First);
}

// Four consecutive warps. Barrier 0 is the block's; groups of four take 1 to 8.
__device__ inline void barrier_group4() {
  asm volatile("bar.sync %0, 128;" ::"r"(static_cast<int>(threadIdx.x) / 128 + 1) : "memory");
}

// So many threads, a multiple of 32, at one of the barriers 1 to 15. PTX ISA, "bar / barrier".
template <int Id, int Threads>
__device__ inline void barrier_threads() {
  static_assert(Id >= 1 && Id <= 15 && Threads >= 32 && Threads % 32 == 0, "no such barrier");
  asm volatile("bar.sync %0, %1;" ::"n"(Id), "n"(Threads) : "memory");
}

}  // namespace kiln
