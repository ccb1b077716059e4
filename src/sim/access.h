// Touching memory: where the bytes are, whether the touch is legal, and who is told when it is not.
#pragma once

#include <optional>
#include <span>

#include "sim/machine.h"

namespace kiln::sim {

// Whose access to what: a lane of a warp and a buffer, in shared memory that of a block of the
// cluster.
struct Touch {
  Machine& machine;
  Warp& warp;
  std::uint32_t lane;
  const Buffer& buffer;
  std::optional<std::uint32_t> other = {};  // block; none: the warp's own

  [[nodiscard]] std::uint32_t block() const { return other.value_or(warp.block); }

  [[nodiscard]] std::string by() const;  // "by thread 17 (warp 0) of block 3"
};

// The bytes at an address of the buffer's space.
[[nodiscard]] std::byte* bytes_at(const Touch& touch, std::int64_t address);

// Notes an access in the shadow and reports what it clashes with. `in_flight`: by an asynchronous
// copy that has not been waited for.
void note_read(const Touch& touch, std::int64_t address, std::int64_t bytes);
void note_write(const Touch& touch, std::int64_t address, std::int64_t bytes,
                bool in_flight = false);

// What lanes knew when they started an asynchronous copy, of memory that is watched.
[[nodiscard]] std::vector<KnownAtIssue> known_at_issue(const Touch& touch);
// An asynchronous copy of the group may read its source until its wait, which is here: whoever has
// written it meanwhile, other than the thread itself, clashes with it.
void note_late_read(const Touch& touch, const AsyncGroup& group, std::int64_t address,
                    std::int64_t bytes);

// Notes an atomic read and write.
void note_atomic(const Touch& touch, std::int64_t address, std::int64_t bytes);

// What asynchronous instructions do is noted for many accesses at once.
using Ranges = std::span<const ByteRange>;
// Notes reads of shared memory that an asynchronous instruction of the warp makes from now on: by
// its products or its bulk stores. A report names a proxy fence where only that is missing.
enum class Asynchronous : std::uint8_t { kProduct = 1, kBulkStore = 2 };  // Agents::kind
void note_async_reads(const Touch& touch, Asynchronous by, Ranges ranges);
// A slot of a block's events, which completes a bulk load.
struct Completes {
  std::uint32_t block = 0;
  std::uint32_t slot = 0;
};
// Notes what a bulk copy does that the warp starts: a load reads global memory and writes the
// block's shared memory until its slot completes; a store writes global memory until somebody waits
// for that.
void note_bulk_loads(const Touch& touch, Completes by, Ranges ranges);
void note_bulk_writes(const Touch& touch, Completes by, Ranges ranges);
void note_bulk_stores(const Touch& touch, Ranges ranges, bool adds);

// How many of `count` consecutive elements of a tile, from index `at` on (by the view's dimension),
// may be touched. The last dimension cuts the run short, any other one drops it. An element outside
// a dimension that `guarded` does not have is reported. `own`: the view's extents.
struct Reach {
  const View& view;
  const Window& window;
  const Coordinates& own;
  std::uint32_t guarded = 0;
  bool writes = false;
  std::uint32_t before = 0;  // dimensions in which a negative place is outside without a report
};
[[nodiscard]] std::int64_t reachable(const Touch& touch, const Reach& reach, const Coordinates& at,
                                     std::int64_t count);

// The root coordinate of an element of the view.
[[nodiscard]] inline Coordinates root_coordinates(const View& view, const Window& window,
                                                  const Coordinates& at) {
  Coordinates out = window.origin;
  for (std::size_t d = 0; d < view.rank; ++d) out[view.dropped + d] += at[d];
  return out;
}

// Whether the view lies at the same place for all of the warp's active lanes.
[[nodiscard]] inline bool is_same(const View& view, const Warp& warp) {
  return view.is_same_in(warp.vars.data(), warp.mask);
}

[[nodiscard]] Coordinates extents_of(const View& view, const Warp& warp, std::uint32_t lane);

// Whether vectors of `width` bytes are aligned wherever the rows of a window begin.
[[nodiscard]] bool is_aligned(const View& view, const Window& window, std::int64_t width);

// Root coordinate `at` is not below the limit of dimension `dim`, or is negative there.
struct Outside {
  Coordinates at = {};
  std::size_t dim = 0;
  std::int64_t limit = 0;
};
void report_out_of_bounds(const Touch& touch, const Outside& outside, bool writes);
// Of an alias: reports when the bytes from its element `root` on are not in its memory; true when
// they are.
[[nodiscard]] bool check_held(const Touch& touch, const Coordinates& root, std::int64_t bytes,
                              bool writes);
// Reports when the address is no multiple of the bytes; true when it is one.
bool check_aligned(const Touch& touch, std::int64_t address, std::int64_t bytes, bool writes);
// Reports when the operation needs all lanes of the warp and has not got them.
void check_whole(Machine& machine, const Warp& warp);
void report_at(Machine& machine, const Warp& warp, ReportKind kind, std::string message,
               std::string what);

[[nodiscard]] std::string thread_text(std::uint32_t warp, std::uint32_t lane);
// "warp 0", "a bulk store of warp 0, still in flight"; `adds`: to what is in memory.
[[nodiscard]] std::string agent_text(const Machine& machine, std::uint32_t agent, bool adds);
// "thread 17 (warp 0) of block 3", or "the host".
[[nodiscard]] std::string thread_of_block_text(const Machine& machine, const Warp& warp,
                                               std::uint32_t lane);

}  // namespace kiln::sim
