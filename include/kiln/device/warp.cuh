// Warps as a whole. Numbers that are the same in all lanes, and branches on them, let the compiler
// keep what follows in uniform registers, where the matrix unit and the copy engine want it.
//
//   if (kiln::warp_index() >= 4) { ... }       the second warpgroup
//   if (kiln::elect()) { bulk_load(...); }     one lane of the warp
#pragma once

namespace kiln {

// The number of this warp in its block; all lanes must call it.
__device__ inline int warp_index() {
  return __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);
}

// True in one lane, always the same; all lanes of the warp must call it. PTX ISA, "elect.sync".
__device__ inline bool elect() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  return threadIdx.x % 32 == 0;
#else
  unsigned elected = 0;
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }"
               : "=r"(elected));
  return elected != 0;
#endif
}

}  // namespace kiln
