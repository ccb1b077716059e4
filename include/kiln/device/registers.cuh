// How many registers each thread of a warpgroup has from here on: a multiple of 8 from 24 to 256
// (sm_90a). The kernel needs a cap, __launch_bounds__(threads, 1), for the others to come from.
//
//   kiln::fewer_registers<40>();    // all four warps, those that only start copies
//   kiln::more_registers<232>();    // those that multiply; waits until so many are free
//
// PTX ISA, "Miscellaneous Instructions: setmaxnreg".
#pragma once

namespace kiln {

template <int Count>
__device__ inline void more_registers() {
  static_assert(Count >= 24 && Count <= 256 && Count % 8 == 0, "no such number of registers");
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count));
}

template <int Count>
__device__ inline void fewer_registers() {
  static_assert(Count >= 24 && Count <= 256 && Count % 8 == 0, "no such number of registers");
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count));
}

}  // namespace kiln
