// What an operation is, and what it does: the words in which each declares it once.
//
// Traits are the columns of op.def, the same for all operations of a kind. A Touch is one use that
// an operation makes of something, as its fields say; the list of them is `touches`, beside
// `fields`.
//
//   copy src=%x dst=%s async bulk event=%full
//     kMove, kOfUnit (the block), in a kernel, waits for nothing
//     reads all of %x, writes all of %s, both asynchronously by the async proxy, until %full
//
// effects.h answers questions from them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/type.h"
#include "target/arch.h"
#include "target/atomic.h"

namespace kiln::ir {

// The levels of a `parallel`, and what a unit of one is.
enum class Level : std::uint8_t { kBlock, kGroup4, kGroup, kThread };
// Threads of one unit at the level; 0: those of the block, whatever their number.
[[nodiscard]] constexpr std::int64_t threads_of(Level level) {
  switch (level) {
    case Level::kBlock: return 0;
    case Level::kGroup4: return target::kWarpgroupLanes;
    case Level::kGroup: return target::kWarpLanes;
    case Level::kThread: return 1;
  }
  return 0;
}

struct ValueTag;
using ValueId = Id<ValueTag>;
struct RegionTag;
using RegionId = Id<RegionTag>;

enum class Sort : std::uint8_t {
  kStructure,  // says which code runs, how often and in which threads: it has regions
  kJump,       // control goes on elsewhere
  kName,       // its result names memory, a part of it, an event or a copy
  kPure,       // its result is a scalar that is computed from operands alone
  kFetch,      // its result is a scalar that memory, a register or a cell holds
  kMove,       // reads and writes memory, registers or cells
  kOrder,      // orders what others do: waits, arrivals, fences, groups
  kState,  // changes what is known or allowed behind it, or what the user knows; touches nothing
};
// kOfUnit: as the field `unit` says. 1: each thread for itself; 0: the block, or its `inthreads`
// region; else so many threads.
enum class Executor : std::uint8_t { kThread, kUnit, kBlock, kOfUnit };
enum class Place : std::uint8_t { kAnywhere, kKernel, kHost };
// What it holds its threads up for. (kForStores: bulk copies to global memory.)
enum class Waits : std::uint8_t {
  kForNothing,
  kForThreads,
  kForCopies,
  kForStores,
  kForProducts,
  kForEvent
};

struct Traits {
  Sort sort;
  Executor executor;
  Place place;
  Waits waits;
};

enum class Use : std::uint8_t {
  kReads,
  kWrites,
  kUpdates,  // reads, and writes what it makes of it
  kStarts,   // gives each element its first value
};
// By which way memory is accessed (PTX ISA, "Proxies"): kAsync by bulk copies and warpgroups'
// products. What one way has written, the other sees behind a fence.
enum class Proxy : std::uint8_t { kGeneric, kAsync };

// What a use does about the registers of a padded tile (Alloc::padded) that lie beyond its edge and
// hold no element.
enum class Beyond : std::uint8_t {
  kRefuses,  // it takes no padded tile
  kCarries,  // treats them as elements: what they make lies beyond the edge as well
  kSkips,    // leaves them out: nothing is read or written there, and nothing runs
  kNeutral,  // counts them as what changes nothing: 0 in a sum, -infinity in a maximum
};

// One use of memory, of a fragment's registers or of a cell. `touches` calls its argument with
// each, in the order in which they happen.
struct Touch {
  ValueId value = {};  // a view, a fragment or a cell; invalid: the operation's result
  Use use = Use::kReads;
  const std::vector<Expr>* index = nullptr;  // of the one element of a view; null: all of it
  bool chooses = false;                      // of all elements those that the program lets it
  bool of_any_block = false;                 // of the cluster, not of the thread's own alone
  Proxy proxy = Proxy::kGeneric;
  bool atomic = false;  // as a whole: unordered with other atomic uses it is no race
  // Atomic: uses of this kind may happen in any order without a difference to anybody.
  std::optional<target::Atomic> commutes = {};
  bool asynchronous = false;  // goes on behind the operation, as far as that is decided
  Beyond beyond = Beyond::kRefuses;
  ValueId label = {};  // asynchronous: the event or future that the program waits for, if any
  [[nodiscard]] bool reads() const { return use == Use::kReads || use == Use::kUpdates; }
  [[nodiscard]] bool writes() const { return use != Use::kReads; }
};

}  // namespace kiln::ir
