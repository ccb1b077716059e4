// One SM and the blocks that it holds, cycle by cycle of a model: when all of them are done.
//
//   SmRun run = run_sm(steps, {.resident = 5, .blocks = 31, ...});
//   run.cycles       until the last of 31 blocks has ended, 5 at a time
//   run.busy.tensor  of them the tensor cores had work
//
// Each warp takes its steps in order; a step waits for what it needs, then for its turn at each part of the SM that
// it takes. Parts serve in the order of asking. Blocks of a cluster have an SM each.
#pragma once

#include "explain/time/steps.h"

namespace kiln::explain {

// What a block finds: rates in the SM's cycles.
struct SmShare {
  std::int64_t resident = 1;  // blocks (clusters) at a time
  std::int64_t blocks = 1;    // in all, one behind the other
  double read_bytes_per_cycle = 64;
  double written_bytes_per_cycle = 64;
  double dram_bytes_per_cycle = 16;
  double read_from_dram = 0;   // of what is read, 0 to 1
  double written_to_dram = 1;  // of what is written
  double latency_of_dram = 0;  // of the waits for what is read, those that are as long as DRAM's
  target::Timing timing;
  int lanes_issue = target::kIssuesPerCycle;
};

// Cycles that a part was at work: of four alike, the mean.
struct Busy {
  double tensor = 0;
  double issue = 0;
  double shared = 0;
  double read = 0;
  double written = 0;
  double dram = 0;
  std::array<double, target::kUnits.size()> units = {};
};

// Cycles that warps wait, all together, by what for.
struct Waiting {
  double loads = 0;     // what they have loaded themselves, or copied through registers
  double copies = 0;    // asynchronous copies, and events that copies complete
  double events = 0;    // events that warps complete
  double products = 0;  // their products
  double barriers = 0;
  double stores = 0;

  [[nodiscard]] double sum() const {
    return loads + copies + events + products + barriers + stores;
  }
};

struct SmRun {
  double cycles = 0;
  Busy busy;
  Waiting waiting;
  double warps = 0;          // cycles of all warps, waiting or not
  std::vector<double> ends;  // of each block that was run, in order
};

[[nodiscard]] SmRun run_sm(const BlockSteps& steps, const SmShare& share);

}  // namespace kiln::explain
