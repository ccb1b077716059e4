// When a block does what: a model of time over what the simulator saw it do (sim/trace.h).
//
//   Timeline t = time_block(*find_arch("sm_90a"), trace, 0.25);
//   t.entries[1]    a bulk load: the warp is at it from `begin` to `end`,
//                   its bytes are on their way from `started` to `done`
//   t.entries[3]    a wait: `end - begin` cycles, released by entry `released_by`
//
// The order of what depends on what is counted, the cycles are not: they are those of kCosts and of
// the architecture's row. One block has an SM for itself; a cluster's blocks have one each. It is
// no prediction: it shows which waits a program's structure makes necessary when loads take long
// and products take their time.
#pragma once

#include <string>
#include <vector>

#include "sim/trace.h"
#include "target/arch.h"

namespace kiln::explain {

// Cycles of the SM's clock. A model: orders of magnitude that published measurements of these parts
// agree on, the same for all architectures.
struct Costs {
  // A load from global memory that misses the second-level cache takes 450 to 700 cycles.
  std::int64_t global_latency = 600;
  // What a warp's shared memory access, arrival, wait that need not wait, or barrier takes: 20
  // to 35.
  std::int64_t shared_latency = 30;
  // Between two instructions of one warp that do not depend on each other.
  std::int64_t issue = 4;
  // The second-level cache's bandwidth for each SM, in bytes: 5120 a cycle for 108 SMs of an A100
  // (its whitepaper).
  double l2_bytes_per_cycle = 5120.0 / 108;
};
inline constexpr Costs kCosts;

inline constexpr std::uint32_t kWarpgroupWarps = target::kWarpgroupLanes / target::kWarpLanes;

struct Timed {
  std::int64_t begin = 0;  // the warp is at it
  std::int64_t ready = 0;  // what it needs of earlier loads is there; a wait: `begin`
  std::int64_t end = 0;    // the warp goes on
  // What goes on without the warp: bytes on their way, products on the tensor cores. Equal:
  // nothing.
  std::int64_t started = 0;
  std::int64_t done = 0;
  std::uint32_t released_by = sim::TraceEntry::kNone;  // a wait: the last that it waited for
};

struct Timeline {
  std::vector<Timed> entries;  // as the trace's
  std::int64_t cycles = 0;     // until all is done
};

// `dram_share`: of the bytes that blocks ask of global memory, those that come from DRAM, 0 to 1.
[[nodiscard]] Timeline time_block(const target::Arch& arch, const sim::BlockTrace& trace,
                                  double dram_share);

// Cycles that the SM's memory path is busy with one byte.
[[nodiscard]] double cycles_per_byte(const target::Arch& arch, double dram_share);

}  // namespace kiln::explain
