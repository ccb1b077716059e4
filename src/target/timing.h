// How long things take on an architecture's reference part: one row each, for predictions of time.
//
//   timing_of(*find_arch("sm_90a")).global_latency      cycles from a load to its value
//
// Cycles are those of the SM's clock. Every figure is documented or measured, and its row says which.
#pragma once

#include "target/arch.h"

namespace kiln::target {

// Bytes that the first-level cache looks up at a time.
inline constexpr std::int64_t kLineBytes = 128;

struct Timing {
  std::string_view arch;

  // --- the clock
  double clock_max_ghz;  // where power does not limit it
  double power_watts;    // the limit
  double idle_watts;     // of a part that does nothing but hold its clock
  // At the highest clock: tensor cores that never stand still, DRAM at full bandwidth, all that the cache can give.
  double tensor_watts;
  double memory_watts;
  double cache_watts;
  double clock_exponent;  // the clock falls as the watts left to what is wanted, to this power

  // --- memory
  double l2_bytes_per_cycle;      // from the second-level cache to one SM
  double l2_all_bytes_per_cycle;  // to all of them
  double store_bytes_per_cycle;   // from one SM
  double dram_efficiency;         // of Arch::dram_gb_per_s, that streams reach
  int l2_latency;                 // of a load that finds its bytes in the second-level cache
  int dram_latency;               // of one that does not
  double fresh_later;  // of what blocks of a later wave wait for, what no earlier one has asked for
  int async_latency;   // more, of a copy by `cp.async`
  int bulk_latency;    // more, of a copy by tensor map
  int shared_latency;
  double line_cycles;        // of the path to memory, for each line that a request touches
  double async_line_cycles;  // of a request of `cp.async`
  double async_cycles;       // and for each such request: three empty loads stand in front of it
  int fence_latency;  // between what threads write and what the hardware's copies and products read

  // --- a warp
  double issue_gap;      // between two of its instructions, on average
  double copy_slots;     // instructions around a copy by threads: where it begins, how wide it is
  double request_slots;  // around each of its accesses: addresses, conditions
  double access_slots;   // around each other access to global memory
  double step_slots;     // around anything else that it does or waits for
  int shuffle_latency;
  int quotient_latency;  // beyond its instructions: the next one waits for its branch

  // --- matrices
  double mma_efficiency;  // of the tensor cores' rate, by `mma.sync`
  int mma_latency;        // until its result can be added to
  int product_latency;    // of a warpgroup's instruction beyond the cycles it is multiplied in

  // --- meeting
  int barrier_latency;
  int event_latency;  // an arrival or a landing, until who waits goes on

  // --- beginning
  int block_cycles;       // from when an SM has room for a block to its first instruction
  double launch_seconds;  // between a kernel's end and the next one's first block
};

[[nodiscard]] const Timing& timing_of(const Arch& arch);

}  // namespace kiln::target
