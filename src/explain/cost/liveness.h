// Which register tiles and local variables a thread still needs, line by line.
//
//   s = mma ...                 s 64                     64 registers
//   p = exp2f(s - m)            s, then p: one is made
//                               of the other             64, not 128: s is not needed any more
//   w = bf16(p)                 w 32
//   mma acc, w, v_s             acc 64 and w 32          96
//
// A value is alive from where all of it is given a value to its last use; what a loop fills again in
// each trip is not carried around it. What an asynchronous product writes is alive until the wait
// for it, because somebody reads it behind that; what it reads is free once it is issued, as far as
// the registers of ptxas tell.
#pragma once

#include <vector>

#include "ir/module.h"

namespace kiln::explain {

// The fullest place of a region, and what is alive there.
struct FullestPlace {
  int registers = 0;
  ir::OpId at;  // the first such place; invalid when there is nothing anywhere
  std::vector<ir::ValueId> alive;
};

// `registers`: of a thread, by ValueId; 0 for what is not in registers. Regions that run beside the
// others (asynchronous `inthreads`) inside `body` do not count.
[[nodiscard]] FullestPlace fullest_place(const ir::Function& function, ir::RegionId body,
                                         const std::vector<int>& registers);

}  // namespace kiln::explain
