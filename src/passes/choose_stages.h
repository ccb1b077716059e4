// How many stages a marked loop gets that does not say it. Part of marked_loops.
//
//   64 x 64 x 64, f16, one warpgroup: an iteration multiplies for 128 cycles and copies 16 KiB in 350,
//   which are under way for 900: blocks of 2 stages leave the SM waiting, those of 3 do not  -> 3
//
// The model of time in short (docs/time-model.md): an SM holds as many blocks as shared memory and threads allow; a
// stage's copy comes back when it has been under way and all blocks' copies in front of it have been served; an SM
// multiplies and copies no faster than it can.
#pragma once

#include "ir/module.h"

namespace kiln::passes {

// What one iteration of the loop takes of an SM, and of a block's shared memory.
struct LoopCosts {
  std::int64_t stage_bytes = 0;  // of each stage
  std::int64_t other_bytes = 0;  // beside the stages
  std::int64_t threads = 0;      // of a block
  double multiplied = 0;         // cycles of all tensor cores
  int registers = 0;             // of a thread
  bool alone = false;            // a block has all registers of the SM
  bool bulk = false;             // copies by the hardware
  bool producer = false;
};

// Of the body at `loop`; what only the launch knows counts as once.
[[nodiscard]] double cycles_multiplied(const target::Arch& arch, const ir::Function& function,
                                       ir::OpId loop);

// Between 2 and `fit`: the least with which an iteration takes no more than a fiftieth longer than with any other.
[[nodiscard]] std::int64_t stages_worth_having(const target::Arch& arch, const LoopCosts& costs,
                                               std::int64_t fit);

}  // namespace kiln::passes
