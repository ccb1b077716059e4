// What one block did in schedule 0, in the order of execution: the input of a model of time.
//
//   entries[0]  warp 0  event-wait  slot 3, phase 0      slot 3 is empty[0], which starts ready
//   entries[1]  warp 0  bulk-load   8192 bytes
//   entries[2]  warp 0  trigger
//   entries[3]  warp 4  event-wait  slot 0, phase 1      full[0], once its first phase is complete
//   arrivals    {1, slot 0, phase 0}, {2, slot 0, phase 0}
//
// Nothing in it depends on time. The order of the entries is one in which everything can happen:
// each comes behind what it waits for, but for a barrier, whose warps meet.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/module.h"
#include "target/mma.h"

namespace kiln::sim {

enum class TraceKind : std::uint8_t {
  kMma,          // matrix instructions of one warp
  kProduct,      // asynchronous matrix instructions: go on after the entry
  kProductWait,  // until no product below `group` is in flight
  kLoad,         // a fragment from memory
  kStore,        // a fragment to memory
  kElement,      // single elements
  kCopy,         // through registers
  kAsyncCopy,    // `cp.async`: goes on after the entry
  kCopyWait,     // until no asynchronous copy below `group` is in flight
  kBulkLoad,     // goes on after the entry
  kBulkStore,    // goes on after the entry
  kBulkWait,     // until no bulk store below `group` is in flight
  kTrigger,
  kEventWait,  // until `phase` phases of the slot are complete
  kBarrier,    // until all entries of `meeting` are there
};

struct TraceEntry {
  static constexpr std::uint32_t kNone = UINT32_MAX;
  TraceKind kind = TraceKind::kElement;
  ir::OpId op;
  std::uint32_t warp = 0;             // of the cluster
  const target::Mma* atom = nullptr;  // kMma, kProduct
  std::int64_t issues = 0;            // of the atom
  // kProduct, kAsyncCopy, kBulkStore: the number among the warp's; waits: those below are awaited.
  std::int64_t group = 0;
  std::int64_t bytes_read = 0;  // of global memory
  std::int64_t bytes_written = 0;
  std::int64_t wavefronts = 0;  // of shared memory
  std::int64_t requests = 0;    // of either memory
  std::int64_t sectors = 0;     // of global memory, 32 bytes each
  std::int64_t lines = 0;       // and 128 bytes each; bulk copies have none
  std::uint32_t slot = kNone;   // of the block's events; kBulkLoad: kNone without an event
  std::int64_t phase = 0;
  std::uint32_t meeting = kNone;  // none: a barrier of the warp alone, or one never released
  // kLoad, kElement: what it loads is in registers only, so that the warp goes on until it needs it.
  bool loads = false;
  // The last earlier loads of the warp from global and from shared memory whose values it needs.
  std::array<std::uint32_t, 2> needs = {kNone, kNone};
  // What the warp has executed since its last entry and that has none: BlockTrace::passed[begin..end).
  std::uint32_t passed_begin = 0;
  std::uint32_t passed_end = 0;
};

// Executions of an operation without an entry.
struct TracePassed {
  ir::OpId op;
  std::uint32_t times = 0;
};

// The entry counts for this phase (from 0) of the slot: a trigger, or a bulk load that landed.
struct TraceArrival {
  std::uint32_t entry = 0;
  std::uint32_t block = 0;  // of the cluster
  std::uint32_t slot = 0;
  std::int64_t phase = 0;
};

struct TraceSlot {
  std::string event;  // empty: a copy's own
  std::uint32_t number = 0;
  std::uint32_t slots = 1;  // of the event
  bool ready = false;
};

struct BlockTrace {
  ir::OpId launch;
  std::int64_t block = 0;    // its number in the grid; of a cluster the first block's
  std::uint32_t blocks = 1;  // of the cluster
  std::uint32_t warps = 1;   // of a block
  std::vector<TraceSlot> slots;
  std::vector<TraceEntry> entries;
  std::vector<TraceArrival> arrivals;
  std::vector<TracePassed> passed;
  bool cut = false;  // there was more than kTraceEntriesMax
};
inline constexpr std::size_t kTraceEntriesMax = 40'000;

}  // namespace kiln::sim
