// Shadow memory: for every granule of bytes, who wrote it last and who has read it since.
//
// Order is kept by vector clocks, one clock for each agent: a warp, the products of a warp, what
// its bulk stores read, what they write, or the bulk copies that complete one slot of an event
// (Agents). A warp's clock counts the barriers it has left and the events it has triggered;
// `seen[a]` of a warp is the clock of agent a that it has synchronised with. An access under clock
// c of agent a happens before a later one exactly if the later thread is the same thread or its
// warp has seen[a] > c. Lanes of one warp are different threads: only a barrier orders them. What
// some lanes of a warp say by a trigger holds for those alone: it is a LaneClock beside `seen`.
//
//   thread 0 writes x at clock 7 of warp 0;  thread 32 reads x with seen[0] == 7   -> race
//   the same with a block barrier between:   thread 32 has seen[0] == 8            -> ordered
//
// Clocks never go back, not even from one thread block to the next, so nothing has to be cleared:
// an entry older than Era::block_start belongs to an earlier block, one older than
// Era::launch_start to an earlier launch. A granule is a power of two of bytes such that every
// access covers whole ones.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <vector>

#include "sim/index_expr.h"

namespace kiln::sim {

using Clock = std::uint32_t;

struct Era {
  Clock launch_start = 1;
  Clock block_start = 1;
};

// The agents of the blocks that run together (one, or a cluster's), block after block, the slots of
// events last.
struct Agents {
  std::uint32_t blocks = 1;
  std::uint32_t warps = 1;  // of a block
  std::uint32_t slots = 0;  // of a block's events

  bool stores = false;  // there are bulk stores

  // A warp, its products, the reads of its bulk stores, their writes.
  [[nodiscard]] constexpr std::uint32_t each() const { return (stores ? 4 : 2) * warps; }
  [[nodiscard]] constexpr std::uint32_t count() const { return blocks * (each() + slots); }
  [[nodiscard]] std::uint32_t warp(std::uint32_t block, std::uint32_t warp) const {
    return block * each() + warp;
  }
  [[nodiscard]] std::uint32_t slot(std::uint32_t block, std::uint32_t slot) const {
    return blocks * each() + block * slots + slot;
  }
  [[nodiscard]] bool is_slot(std::uint32_t agent) const { return agent >= blocks * each(); }
  // 0: a warp itself, 1: its products, 2: reads of its bulk stores, 3: their writes. Not for slots.
  [[nodiscard]] std::uint32_t kind(std::uint32_t agent) const { return agent % each() / warps; }
};

// What one thread knows before its warp does: its bulk stores before some clock are done with
// reading, or with writing.
struct OwnStores {
  std::uint32_t reader = 0;  // the agents
  std::uint32_t writer = 0;
  Clock read = 0;
  Clock written = 0;

  [[nodiscard]] bool cover(std::uint32_t agent, Clock clock) const {
    return (agent == reader && clock < read) || (agent == writer && clock < written);
  }
};

// What some lanes of a warp did before a clock has been seen; the other lanes have said nothing.
struct LaneClock {
  std::uint32_t agent = 0;
  std::uint32_t lanes = 0;
  Clock clock = 0;
};
using LaneClocks = std::vector<LaneClock>;

// Whether all these lanes of the agent are known to be past the clock.
[[nodiscard]] bool covers(const LaneClocks& known, std::uint32_t agent, std::uint32_t lanes,
                          Clock clock);

// Who accesses. `seen` has one clock for each agent.
struct Actor {
  std::uint16_t thread = 0;  // agent * 32 + lane
  std::uint16_t instruction = 0;
  std::uint32_t agent = 0;
  Clock clock = 0;
  const Clock* seen = nullptr;
  const Clock* seen_reads = nullptr;  // what orders it after reads, where that is not `seen`
  const OwnStores* own = nullptr;     // of this very thread
  const LaneClocks* lanes = nullptr;  // seen of single lanes; null for nothing (what writes an
                                      // asynchronous one may follow is in `seen`)
  bool asynchronous = false;          // a piece of work of its own: not even its agent's others
                                      // come before it by themselves

  // Everything by the thread (agent * kLanes + lane) up to the clock.
  [[nodiscard]] bool follows(std::uint32_t thread_before, Clock before) const {
    const std::uint32_t agent_before = thread_before / kLanes;
    return seen[agent_before] > before || (own != nullptr && own->cover(agent_before, before)) ||
           (lanes != nullptr && !asynchronous &&
            covers(*lanes, agent_before, 1U << thread_before % kLanes, before));
  }
};

enum class ConflictKind : std::uint8_t { kUninitialised, kUnordered, kInFlight, kOtherBlock };

// What an access clashed with.
struct Conflict {
  static constexpr std::uint16_t kSeveral = 0xffff;

  ConflictKind kind = ConflictKind::kUnordered;
  std::size_t address = 0;  // of the first byte of the granule
  bool other_wrote = false;
  std::uint16_t thread = 0;  // of the earlier access; kSeveral: several lanes of `agent`
  std::uint32_t agent = 0;
  std::uint16_t instruction = 0;
  Clock clock = 0;
};

class Shadow {
 public:
  // Memory of `bytes` bytes in granules of 1 << `granule_bits`. `per_block`: it lives as long as a
  // block, and is uninitialised at each block's start; else `initialised` says how it begins.
  Shadow(std::size_t bytes, unsigned granule_bits, bool per_block, bool initialised)
      : granule_bits_(granule_bits),
        per_block_(per_block),
        initialised_(initialised),
        writers_((bytes >> granule_bits) + 1) {}

  // Whose reads are remembered apart: of `blocks` blocks from number `first` on, the first `agents`
  // ones of each, and (`slots`) the bulk copies of all blocks' events.
  struct Readers {
    Agents all;
    std::uint32_t first = 0;
    std::uint32_t blocks = 1;
    std::uint32_t agents = 0;
    bool slots = false;
  };
  // Before each launch. Without readers no read is remembered, as where the launch never writes.
  void begin_launch(const Era* era, const Readers& readers);

  // `found(const Conflict&)` is called at most once for each access.
  template <class Found>
  void read(std::size_t address, std::size_t bytes, const Actor& actor, Found&& found) {
    bool quiet = false;
    const std::size_t last = (address + bytes - 1) >> granule_bits_;
    for (std::size_t g = address >> granule_bits_; g <= last; ++g) {
      Conflict conflict;
      if (!quiet && !read_follows(g, actor, conflict)) {
        found(conflict);
        quiet = true;
      }
      if (slots_ != 0) note_read(&readers_[g * slots_], actor);
    }
  }

  // `in_flight`: an asynchronous copy, which nobody may touch until its thread has waited for it.
  template <class Found>
  void write(std::size_t address, std::size_t bytes, const Actor& actor, bool in_flight,
             Found&& found) {
    bool quiet = false;
    const std::size_t last = (address + bytes - 1) >> granule_bits_;
    const auto thread = static_cast<std::uint16_t>(actor.thread | (in_flight ? kInFlight : 0));
    for (std::size_t g = address >> granule_bits_; g <= last; ++g) {
      Conflict conflict;
      if (!quiet && !write_follows(g, actor, conflict)) {
        found(conflict);
        quiet = true;
      }
      writers_[g] = {actor.clock, thread, actor.instruction};
    }
  }

  // The thread's asynchronous writes to the range have landed: from now on they count as its own.
  void land(std::size_t address, std::size_t bytes, const Actor& actor);

  // Whether any launch has written the byte.
  [[nodiscard]] bool written(std::size_t address) const {
    return writers_[address >> granule_bits_].clock != 0;
  }

 private:
  static constexpr std::uint16_t kInFlight = 0x8000;

  struct Writer {
    Clock clock = 0;
    std::uint16_t thread = 0;
    std::uint16_t instruction = 0;
  };
  struct Reader {  // the latest reads by one agent
    Clock clock = 0;
    // Lanes at even distances: all of those that have read, and others only where three or more
    // did at uneven ones.
    std::uint16_t first_lane : 5 = 0;
    std::uint16_t last_lane : 5 = 0;
    std::uint16_t distance : 5 = 0;  // 0 of one lane
    std::uint16_t instruction = 0;

    void add(std::uint16_t lane) {
      if (lane == last_lane) return;
      const std::uint16_t apart = lane > first_lane ? lane - first_lane : first_lane - lane;
      if (distance != 1) distance = std::gcd(distance, apart) & 0x1f;
      if (lane < first_lane) first_lane = lane & 0x1f;
      if (lane > last_lane) last_lane = lane & 0x1f;
    }
    [[nodiscard]] std::uint32_t lanes() const {
      std::uint32_t out = 1U << last_lane;
      for (unsigned lane = first_lane; lane < last_lane; lane += distance) out |= 1U << lane;
      return out;
    }
  };

  bool read_follows(std::size_t granule, const Actor& actor, Conflict& conflict) const {
    const Writer& writer = writers_[granule];
    if (writer.clock >= era_->block_start) {
      if (writer.thread == actor.thread) return true;
      if ((writer.thread & kInFlight) == 0 && actor.follows(writer.thread, writer.clock)) {
        return true;
      }
      return blame_writer(granule, conflict);
    }
    if (!per_block_ && writer.clock < era_->launch_start && (initialised_ || writer.clock != 0)) {
      return true;
    }
    return blame_writer(granule, conflict);
  }

  bool write_follows(std::size_t granule, const Actor& actor, Conflict& conflict) const {
    const Writer& writer = writers_[granule];
    if (writer.clock >= era_->block_start) {
      const bool landed = (writer.thread & kInFlight) == 0;
      if ((actor.asynchronous || writer.thread != actor.thread) &&
          !(landed && actor.follows(writer.thread, writer.clock))) {
        return blame_writer(granule, conflict);
      }
    } else if (!per_block_ && writer.clock >= era_->launch_start) {
      return blame_writer(granule, conflict);
    }
    return slots_ == 0 || follows_reads(granule, actor, conflict);
  }

  void note_read(Reader* slots, const Actor& actor) const {
    Reader& reader = slots[slot_of_[actor.agent]];
    const auto lane = static_cast<std::uint16_t>(actor.thread % kLanes);
    if (reader.clock == actor.clock) return reader.add(lane);
    const bool other_block = reader.clock >= era_->launch_start && reader.clock < era_->block_start;
    if (!per_block_ && other_block) slots[slots_ - 1] = reader;
    reader.clock = actor.clock;
    reader.first_lane = reader.last_lane = lane & 0x1f;
    reader.distance = 0;
    reader.instruction = actor.instruction;
  }

  bool blame_writer(std::size_t granule, Conflict& conflict) const;  // always false
  bool follows_reads(std::size_t granule, const Actor& actor, Conflict& conflict) const;

  struct Free {
    void operator()(Reader* readers) const { std::free(readers); }
  };

  unsigned granule_bits_;
  bool per_block_;
  bool initialised_;
  const Era* era_ = nullptr;
  Readers readers_of_;
  std::size_t slots_ = 0;  // readers of one granule: by agent, then one for all earlier blocks
  std::vector<Writer> writers_;
  std::vector<std::uint32_t> slot_of_;   // by agent
  std::vector<std::uint32_t> agent_of_;  // by reader
  // Zeros from the system: pages of memory that nobody reads cost nothing.
  std::unique_ptr<Reader[], Free> readers_;
};

}  // namespace kiln::sim
