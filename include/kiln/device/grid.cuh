// Grids whose blocks are all there at once, by a cooperative launch.
//
//   kiln::barrier_grid();      // all threads of all blocks; what they wrote is seen behind it
//
//   static __device__ unsigned ready[2];    // events that all blocks share: arrivals of each slot
//   kiln::grid_events_clear<2>(ready);      // and a barrier_grid() behind it, before their first use
//   kiln::grid_event_arrive(ready + 1);     // this thread has finished what it did before
//   kiln::grid_event_wait(ready + 1, 256);  // until so many have; what they wrote is seen behind it
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

template <int Slots>
__device__ inline void grid_events_clear(unsigned* events) {
  if ((blockIdx.x | blockIdx.y | blockIdx.z) != 0) return;
  for (int slot = static_cast<int>(threadIdx.x); slot < Slots; slot += blockDim.x) events[slot] = 0;
}

// PTX ISA, "red", "Memory Consistency Model: release and acquire patterns".
__device__ inline void grid_event_arrive(unsigned* event) {
  asm volatile("red.release.gpu.add.u32 [%0], 1;" ::"l"(event) : "memory");
}

// This thread's warp has: one arrival for its 32 threads.
__device__ inline void grid_event_arrive_warp(unsigned* event) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) grid_event_arrive(event);
}

// Numbers of arrivals go around at 2^32.
__device__ inline void grid_event_wait(const unsigned* event, unsigned arrivals) {
  unsigned now;
  do {
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(now) : "l"(event) : "memory");
  } while (static_cast<int>(now - arrivals) < 0);
}

}  // namespace kiln
