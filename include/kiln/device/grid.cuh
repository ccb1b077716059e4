// Grids whose blocks are all there at once, by a cooperative launch.
//
//   kiln::barrier_grid();      // all threads of all blocks; what they wrote is seen behind it
//
// Threads of a block are numbered along x. The blocks of one launch meet here: two launches of a
// module's kernels must not run at the same time.
#pragma once

namespace kiln {

// Its top bit changes when all blocks have come; the others are 0 between barriers.
static __device__ unsigned grid_arrivals = 0;

__device__ inline void barrier_grid() {
  constexpr unsigned kTop = 0x80000000U;
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned blocks = gridDim.x * gridDim.y * gridDim.z;
    const bool first = (blockIdx.x | blockIdx.y | blockIdx.z) == 0;
    __threadfence();
    const unsigned before = atomicAdd(&grid_arrivals, first ? kTop - (blocks - 1) : 1U);
    unsigned now = before;
    while (((before ^ now) & kTop) == 0) {
      asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(now) : "l"(&grid_arrivals) : "memory");
    }
    __threadfence();
  }
  __syncthreads();
}

}  // namespace kiln
