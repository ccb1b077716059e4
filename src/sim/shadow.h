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
//
// Most accesses cover whole lines of 16 bytes. So there is an entry for each line, which stands for
// all of its granules until an access to some of them splits it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <numeric>
#include <vector>

#include "sim/index_expr.h"

namespace kiln::sim {

using Clock = std::uint32_t;

// 0 is never, and kBeforeLaunches before all of them.
inline constexpr Clock kBeforeLaunches = 1;
struct Era {
  Clock launch_start = kBeforeLaunches + 1;
  Clock block_start = kBeforeLaunches + 1;
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
  bool other_atomic = false;
  std::uint16_t thread = 0;  // of the earlier access; kSeveral: several lanes of `agent`
  std::uint32_t agent = 0;
  std::uint16_t instruction = 0;
  Clock clock = 0;
};

// An array of zeros from the system: pages that nobody touches cost nothing.
template <class T>
class Zeros {
 public:
  Zeros() = default;
  explicit Zeros(std::size_t count) : items_(static_cast<T*>(std::calloc(count, sizeof(T)))) {
    if (items_ == nullptr) ::operator delete(::operator new(count * sizeof(T)));  // fails alike
  }
  [[nodiscard]] T& operator[](std::size_t i) { return items_[i]; }
  [[nodiscard]] const T& operator[](std::size_t i) const { return items_[i]; }

 private:
  struct Free {
    void operator()(T* items) const { std::free(items); }
  };
  std::unique_ptr<T[], Free> items_;
};

class Shadow {
 public:
  static constexpr unsigned kLineBits = 4;
  static constexpr std::size_t kLineBytes = std::size_t{1} << kLineBits;

  // Memory of `bytes` bytes in granules of 1 << `granule_bits`, at most kLineBits. `per_block`: it
  // lives as long as a block, and is uninitialised at each block's start; else `initialised` says
  // how it begins.
  Shadow(std::size_t bytes, unsigned granule_bits, bool per_block, bool initialised);

  // Whose reads are remembered apart: of `blocks` blocks from number `first` on, the first `agents`
  // ones of each, and (`slots`) the bulk copies of all blocks' events.
  struct Readers {
    Agents all;
    std::uint32_t first = 0;
    std::uint32_t blocks = 1;
    std::uint32_t agents = 0;
    bool slots = false;
    bool updates = false;  // and atomic updates as well
  };
  // Before each launch. Without readers no read is remembered, as where the launch never writes.
  void begin_launch(const Era* era, const Readers& readers);

  // A shadow of the same memory for some of the launch's blocks: it knows what they do, and asks
  // this one, which must not change meanwhile, what was written before.
  [[nodiscard]] std::unique_ptr<Shadow> overlay(const Era* era) const;
  // Whether no overlay's blocks have written what another one's have touched.
  [[nodiscard]] static bool are_apart(const std::vector<const Shadow*>& overlays);
  // Takes over what the overlay's blocks have written.
  void absorb(const Shadow& overlay);

  // `found(const Conflict&)` is called at most once for each access.
  template <class Found>
  void read(std::size_t address, std::size_t bytes, const Actor& actor, Found&& found) {
    bool quiet = false;
    for_each_line(address, bytes, [&](std::size_t begin, std::size_t end) {
      if (end - begin == kLineBytes && read_line(begin >> kLineBits, actor)) return;
      Conflict conflict;
      if (!read_granules(begin, end, actor, conflict) && !quiet) {
        found(conflict);
        quiet = true;
      }
    });
  }

  // Reads and writes as a whole: it follows what is not atomic, and need not follow what is.
  template <class Found>
  void update(std::size_t address, std::size_t bytes, const Actor& actor, Found&& found) {
    bool quiet = false;
    for_each_line(address, bytes, [&](std::size_t begin, std::size_t end) {
      Conflict conflict;
      if (!update_granules(begin, end, actor, conflict) && !quiet) {
        found(conflict);
        quiet = true;
      }
    });
  }

  // `in_flight`: an asynchronous copy, which nobody may touch until its thread has waited for it.
  template <class Found>
  void write(std::size_t address, std::size_t bytes, const Actor& actor, bool in_flight,
             Found&& found) {
    bool quiet = false;
    const auto thread = static_cast<std::uint16_t>(actor.thread | (in_flight ? kInFlight : 0));
    const Writer writer{actor.clock, thread, actor.instruction};
    for_each_line(address, bytes, [&](std::size_t begin, std::size_t end) {
      if (end - begin == kLineBytes && write_line(begin >> kLineBits, actor, writer)) return;
      Conflict conflict;
      if (!write_granules(begin, end, actor, writer, conflict) && !quiet) {
        found(conflict);
        quiet = true;
      }
    });
  }

  // The thread's asynchronous writes to the range have landed: from now on they count as its own.
  void land(std::size_t address, std::size_t bytes, const Actor& actor);

  // By the host part, which comes before the next launch and after the last.
  void write_between(std::size_t address, std::size_t bytes);
  [[nodiscard]] bool has_content(std::size_t address) const {
    return initialised_ || written(address);
  }

  // Whether any launch, or the host part, has written the byte.
  [[nodiscard]] bool written(std::size_t address) const {
    return writer_of(address >> granule_bits_).clock != 0;
  }

  // Whether an asynchronous copy writes it that nobody has waited for.
  [[nodiscard]] bool in_flight(std::size_t address) const {
    const Writer& writer = writer_of(address >> granule_bits_);
    return writer.clock != 0 && (writer.thread & kInFlight) != 0;
  }

  // Bytes of all entries for so many bytes of memory, with `readers` of each granule, and as many
  // of its atomic updates where there are any.
  [[nodiscard]] static double size_in_bytes(double bytes, unsigned granule_bits, double readers,
                                            bool updates) {
    const double granules = bytes / static_cast<double>(1U << granule_bits);
    const double entries = granules + bytes / static_cast<double>(kLineBytes);
    return sizeof(Writer) * (entries * (1 + readers) + (updates ? granules * readers : 0));
  }

 private:
  static constexpr std::uint16_t kInFlight = 0x8000;
  // As the instruction of a line's entry: its granules have entries of their own.
  static constexpr std::uint16_t kSplit = 0xffff;

  struct Writer {
    Clock clock = 0;
    std::uint16_t thread = 0;
    std::uint16_t instruction = 0;
  };
  struct Reader {     // the latest reads by one agent
    Clock clock = 0;  // of a split line: the latest of its granules
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
    void begin(const Actor& actor) {
      clock = actor.clock;
      first_lane = last_lane = actor.thread % kLanes & 0x1f;
      distance = 0;
      instruction = actor.instruction;
    }
    [[nodiscard]] std::uint32_t lanes() const {
      std::uint32_t out = 1U << last_lane;
      for (unsigned lane = first_lane; lane < last_lane; lane += distance) out |= 1U << lane;
      return out;
    }
    friend bool operator==(const Reader&, const Reader&) = default;
  };
  static_assert(sizeof(Reader) == sizeof(Writer));

  // Calls `visit(begin, end)` for the part of each line.
  template <class Visit>
  static void for_each_line(std::size_t address, std::size_t bytes, Visit&& visit) {
    const std::size_t end = address + bytes;
    while (address < end) {
      const std::size_t next = std::min(end, (address | (kLineBytes - 1)) + 1);
      visit(address, next);
      address = next;
    }
  }

  // Whether the actor may read what the writer left.
  [[nodiscard]] bool may_read(const Writer& writer, const Actor& actor) const {
    if (writer.clock >= era_->block_start) {
      if (writer.thread == actor.thread) return true;
      return (writer.thread & kInFlight) == 0 && actor.follows(writer.thread, writer.clock);
    }
    return !per_block_ && writer.clock < era_->launch_start && (initialised_ || writer.clock != 0);
  }
  [[nodiscard]] bool may_overwrite(const Writer& writer, const Actor& actor) const {
    if (writer.clock < era_->block_start) return per_block_ || writer.clock < era_->launch_start;
    const bool landed = (writer.thread & kInFlight) == 0;
    return (!actor.asynchronous && writer.thread == actor.thread) ||
           (landed && actor.follows(writer.thread, writer.clock));
  }
  // Whether the actor's write comes after the reads in the slot. Of a split line: false where its
  // granules have to be asked.
  [[nodiscard]] bool follows_read(const Reader& reader, std::size_t slot, const Actor& actor) const;

  // The usual case, of a whole line: everything at once; false (and nothing is done) where there is
  // more to it, because the line is split, something conflicts or there are atomic updates.
  bool read_line(std::size_t line, const Actor& actor) {
    if (remembered_.updates || line_writers_[line].instruction == kSplit ||
        !may_read(line_writers_[line], actor)) {
      return false;
    }
    if (slots_ == 0) return true;
    Reader* slots = &line_readers_[line * slots_];
    Reader& reader = slots[slot_of_[actor.agent]];
    if (reader.instruction == kSplit) return false;
    if (reader.clock == actor.clock) {
      reader.add(static_cast<std::uint16_t>(actor.thread % kLanes));
      return true;
    }
    if (is_of_other_block(reader)) slots[slots_ - 1] = reader;
    reader.begin(actor);
    return true;
  }
  bool write_line(std::size_t line, const Actor& actor, const Writer& writer) {
    Writer& before = line_writers_[line];
    if (remembered_.updates || before.instruction == kSplit || !may_overwrite(before, actor))
      return false;
    if (slots_ != 0 && !follows_reads(line, actor)) return false;
    before = writer;
    return true;
  }
  // The same granule by granule; false where something conflicts: the first that does.
  bool read_granules(std::size_t begin, std::size_t end, const Actor& actor, Conflict& conflict);
  bool write_granules(std::size_t begin, std::size_t end, const Actor& actor, const Writer& writer,
                      Conflict& conflict);
  bool update_granules(std::size_t begin, std::size_t end, const Actor& actor, Conflict& conflict);
  bool read_follows(std::size_t granule, const Actor& actor, Conflict& conflict) const;
  void note_update(std::size_t granule, const Actor& actor);
  void note_read(std::size_t begin, std::size_t end, const Actor& actor);

  // Whether the write of the line comes after all its reads; false also where granules are to be
  // asked.
  [[nodiscard]] bool follows_reads(std::size_t line, const Actor& actor) const;
  // Say what is in the way; always false.
  bool blame_writer(std::size_t granule, Conflict& conflict) const;
  bool blame_reader(const Reader& reader, std::size_t slot, std::size_t granule,
                    Conflict& conflict) const;
  bool follows_reads(std::size_t granule, const Actor& actor, Conflict& conflict) const;
  // Whether it comes after the atomic updates of the granule; granules are asked for them always.
  bool follows_updates(std::size_t granule, Actor actor, Conflict& conflict) const;
  // Whether something in this block has updated it.
  [[nodiscard]] bool is_updated(std::size_t granule) const;
  [[nodiscard]] bool is_of_other_block(const Reader& reader) const {
    return !per_block_ && reader.clock >= era_->launch_start && reader.clock < era_->block_start;
  }

  // Of an overlay whose blocks have not written the granule: whether somebody has before.
  [[nodiscard]] bool is_written_below(std::size_t granule) const {
    return below_ != nullptr && writer_of(granule).clock == 0 &&
           below_->writer_of(granule).clock != 0;
  }
  [[nodiscard]] bool wrote_line(std::size_t line) const {
    return line_writers_[line].clock != 0 || line_writers_[line].instruction == kSplit;
  }
  [[nodiscard]] bool touched(std::size_t granule) const;
  [[nodiscard]] static bool are_apart(const std::vector<const Shadow*>& overlays,
                                      std::size_t granule);

  // Entries by granule; `granules_bits` granules make a line.
  [[nodiscard]] unsigned granules_bits() const { return kLineBits - granule_bits_; }
  [[nodiscard]] const Writer& writer_of(std::size_t granule) const {
    const Writer& whole = line_writers_[granule >> granules_bits()];
    return whole.instruction == kSplit ? writers_[granule] : whole;
  }
  [[nodiscard]] const Reader& reader_of(std::size_t granule, std::size_t slot) const {
    const Reader& whole = line_readers_[(granule >> granules_bits()) * slots_ + slot];
    return whole.instruction == kSplit ? readers_[granule * slots_ + slot] : whole;
  }
  void split_writer(std::size_t line);
  void split_reader(std::size_t line, std::size_t slot);
  void join_reader(std::size_t line, std::size_t slot);

  unsigned granule_bits_;
  bool per_block_;
  bool initialised_;
  std::size_t lines_;
  const Era* era_ = nullptr;
  const Shadow* below_ = nullptr;  // of an overlay
  Readers remembered_;
  std::size_t slots_ = 0;  // readers of one granule: by agent, then one for all earlier blocks
  Zeros<Writer> line_writers_;
  Zeros<Writer> writers_;
  std::vector<std::uint32_t> slot_of_;   // by agent
  std::vector<std::uint32_t> agent_of_;  // by reader
  Zeros<Reader> line_readers_;
  Zeros<Reader> readers_;
  Zeros<Reader> updates_;  // atomic ones, by granule alone; only where Readers::updates
};

}  // namespace kiln::sim
