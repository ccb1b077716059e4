// Copies, as planned: vectors of one width, dealt out to the threads of the unit in turn.
//
//   a 16x16 f16 tile by 32 threads, width 16: 32 vectors, thread t moves row t / 2, half t % 2;
//   width 2 (K is odd): the same vectors, each cut out of two aligned ones (device/copy.cuh)
#include <algorithm>
#include <cstring>

#include "sim/access.h"

namespace kiln::sim {

namespace {

constexpr std::int64_t kVectorMax = 16;
constexpr std::int64_t kAsyncLeast = 4;  // narrower vectors go through registers

// One side as a lane sees it.
struct Side {
  Window window;
  Coordinates own = {};
};

struct Sides {
  Side src;
  Side dst;
};

struct Shape {
  std::int64_t width = 0;     // bytes of a vector
  bool cut = false;           // out of two aligned ones
  std::int64_t elements = 0;  // of a vector
  std::int64_t per_row = 0;   // vectors of a tile row
  std::int64_t vectors = 0;
};

Sides sides_of(const CopyPlan& plan, const Warp& warp, std::uint32_t lane) {
  const std::int64_t* vars = warp.vars.data();
  return {{plan.src.window(vars, lane), extents_of(plan.src, warp, lane)},
          {plan.dst.window(vars, lane), extents_of(plan.dst, warp, lane)}};
}

std::int64_t chosen_width(const CopyPlan& plan, const Sides& sides) {
  const bool from_global = plan.src.buffer->space == ir::Space::kGlobal;
  const bool to_global = plan.dst.buffer->space == ir::Space::kGlobal;
  for (const std::int64_t width : plan.widths) {
    if (width == plan.widths.back()) break;
    if (from_global && !is_aligned(plan.src, sides.src.window, width)) continue;
    if (to_global && !is_aligned(plan.dst, sides.dst.window, width)) continue;
    return width;
  }
  return plan.widths.back();
}

// Where rows that begin anywhere move in the widest vectors all the same: those that leave always,
// those that arrive where no narrower width suits.
bool is_cut(const CopyPlan& plan, std::int64_t width) {
  if (plan.way != ir::CopyWay::kGather || width == kVectorMax) return false;
  return !plan.tile_is_dst || width == plan.widths.back();
}

Shape shape_of(const CopyPlan& plan, const Sides& sides) {
  const View& tile = plan.tile_is_dst ? plan.dst : plan.src;
  const Coordinates& extents = plan.tile_is_dst ? sides.dst.own : sides.src.own;
  Shape out;
  out.width = chosen_width(plan, sides);
  out.cut = is_cut(plan, out.width);
  if (out.cut) out.width = kVectorMax;
  out.elements = std::max<std::int64_t>(out.width / tile.buffer->size, 1);
  const std::int64_t cols = tile.rank == 0 ? 1 : extents[tile.rank - 1];
  KILN_CHECK(cols % out.elements == 0, "rows of {} elements in vectors of {}", cols, out.elements);
  out.per_row = cols / out.elements;
  out.vectors = out.per_row;
  for (std::size_t d = 0; d + 1 < tile.rank; ++d) out.vectors *= extents[d];
  return out;
}

// Whether the device starts such vectors and goes on. Others go through registers, and are there at once: by
// the program nobody may look before its wait all the same, and with other extents somebody who does
// would see what was there before.
bool is_asynchronous(const CopyPlan& plan, const Shape& shape) {
  return plan.way != ir::CopyWay::kElement && shape.width >= kAsyncLeast && !shape.cut;
}

class Mover {
 public:
  Mover(Machine& machine, Warp& warp, const CopyPlan& plan, const Shape& shape, AsyncGroup* group)
      : machine_(machine),
        warp_(warp),
        plan_(plan),
        shape_(shape),
        group_(group),
        arrives_late_(group != nullptr && is_asynchronous(plan, shape)),
        src_(*plan.src.buffer),
        dst_(*plan.dst.buffer) {}

  // Vector number `vector` of the tile, by this lane.
  void move(std::uint32_t lane, const Sides& sides, std::int64_t vector) {
    const View& tile = plan_.tile_is_dst ? plan_.dst : plan_.src;
    const Coordinates& extents = plan_.tile_is_dst ? sides.dst.own : sides.src.own;
    Coordinates at = {};
    std::int64_t row = vector / shape_.per_row;
    if (tile.rank > 0) at[tile.rank - 1] = vector % shape_.per_row * shape_.elements;
    for (std::size_t d = tile.rank; d-- > 1;) {
      at[d - 1] = d == 1 ? row : row % extents[d - 1];
      row /= extents[d - 1];
    }
    const Coordinates dst_at = plan_.tile_is_dst ? at : permuted(at);
    const Coordinates src_at = plan_.tile_is_dst ? permuted(at) : at;
    const std::int64_t written = reachable(
        {machine_, warp_, lane, dst_},
        {plan_.dst, sides.dst.window, sides.dst.own, plan_.dst_guarded, true, plan_.dst_before},
        dst_at, shape_.elements);
    if (written == 0) return;
    const std::int64_t read = reachable(
        {machine_, warp_, lane, src_},
        {plan_.src, sides.src.window, sides.src.own, plan_.src_guarded, false, plan_.src_before},
        src_at, written);
    const Coordinates to = root_coordinates(plan_.dst, sides.dst.window, dst_at);
    const Coordinates from = root_coordinates(plan_.src, sides.src.window, src_at);
    if (!vector_fits(lane, from, to, read)) {
      move_elements(lane, from, to, read, written);
      return;
    }
    // Only a place inside has an address.
    const std::int64_t source = read == 0 ? 0 : src_.address(from);
    gather(source, dst_.address(to), read > 0);
    move_run(lane, source, dst_.address(to), read * src_.size, written * dst_.size);
  }

 private:
  // The other side's index of the tile's element.
  Coordinates permuted(const Coordinates& at) const {
    Coordinates out = at;
    for (std::size_t d = 0; d < plan_.permutation.size(); ++d) {
      const auto of_src = static_cast<std::size_t>(plan_.permutation[d]);
      plan_.tile_is_dst ? out[of_src] = at[d] : out[d] = at[of_src];
    }
    return out;
  }

  // The addresses allow one access of the whole width; reports those that do not.
  bool vector_fits(std::uint32_t lane, const Coordinates& from, const Coordinates& to,
                   std::int64_t read) {
    const auto fits = [&](const Buffer& buffer, const Coordinates& at, bool writes) {
      const bool cut = shape_.cut && buffer.space == ir::Space::kGlobal;
      return cut || check_aligned({machine_, warp_, lane, buffer}, buffer.address(at), shape_.width,
                                  writes);
    };
    const bool to_fits = fits(dst_, to, true);
    return (read == 0 || fits(src_, from, false)) && to_fits;
  }

  // What a misaligned vector means, element by element.
  void move_elements(std::uint32_t lane, Coordinates from, Coordinates to, std::int64_t read,
                     std::int64_t written) {
    gather(read > 0 ? src_.address(from) : 0, dst_.address(to), read > 0);
    for (std::int64_t e = 0; e < written; ++e) {
      const std::int64_t source = e < read ? src_.address(from) : 0;
      move_run(lane, source, dst_.address(to), e < read ? src_.size : 0, dst_.size);
      ++from[src_.rank - 1];
      ++to[dst_.rank - 1];
    }
  }

  void move_run(std::uint32_t lane, std::int64_t from, std::int64_t to, std::int64_t read,
                std::int64_t written) {
    const std::byte* source = nullptr;
    if (read > 0) {
      note_read({machine_, warp_, lane, src_}, from, read);
      source = bytes_at({machine_, warp_, lane, src_}, from);
      count(src_, read, false);
    }
    note_write({machine_, warp_, lane, dst_}, to, written, group_ != nullptr);
    count(dst_, written, true);
    const bool moved = !arrives_late_ || written < kAsyncLeast;
    if (group_ != nullptr && (!moved || machine_.checks)) {
      group_->vectors.push_back({source, to, static_cast<std::uint8_t>(written),
                                 static_cast<std::uint8_t>(read), static_cast<std::uint8_t>(lane),
                                 moved});
    }
    if (!moved) return;
    std::byte* target = bytes_at({machine_, warp_, lane, dst_}, to);
    if (read > 0) std::memmove(target, source, static_cast<std::size_t>(read));
    std::memset(target + read, 0, static_cast<std::size_t>(written - read));
  }

  // This lane's part of the step's requests. Between two shared tiles only the load is followed.
  void gather(std::int64_t from, std::int64_t to, bool reads) {
    if (reads) add_request(src_, from);
    if (src_.space != dst_.space || !reads) add_request(dst_, to);
  }

  void add_request(const Buffer& buffer, std::int64_t address) {
    switch (buffer.space) {
      case ir::Space::kGlobal:
        if (shape_.cut) address -= address % kVectorMax;
        machine_.global_request.add(address);
        return;
      case ir::Space::kShared: machine_.shared_request.add(address); return;
      case ir::Space::kLocal: return;
    }
  }

  void count(const Buffer& buffer, std::int64_t bytes, bool writes) {
    Tally& tally = machine_.tally;
    if (buffer.space == ir::Space::kGlobal) {
      writes ? tally.wrote_global(bytes) : tally.read_global(bytes);
    } else if (buffer.space == ir::Space::kShared) {
      writes ? tally.wrote_shared(bytes) : tally.read_shared(bytes);
    }
  }

  Machine& machine_;
  Warp& warp_;
  const CopyPlan& plan_;
  const Shape& shape_;
  AsyncGroup* group_;
  bool arrives_late_;
  const Buffer& src_;
  const Buffer& dst_;
};

// Counts one step of a copy, whose requests have been gathered: instructions, sectors, wavefronts.
void count_step(Machine& machine, const CopyPlan& plan, const Shape& shape, bool async) {
  const ir::Space from = plan.src.buffer->space;
  const ir::Space to = plan.dst.buffer->space;
  Request& global = machine.global_request;
  Request& shared = machine.shared_request;
  if (async) {
    // One cp.async is issued for the warp, even where some lanes only fill their bytes with zeros.
    Tally& tally = machine.tally;
    if (shared.count > 0) tally.issue(Issue::kAsyncCopy, shape.width);
    tally.sectors(global, shape.width);
    tally.shared_wavefronts(shared, shape.width);
    return;
  }
  if (from == ir::Space::kGlobal) machine.tally.global(Issue::kLoadGlobal, global, shape.width);
  if (from == ir::Space::kGlobal && shape.cut) {
    for (std::uint32_t i = 0; i < global.count; ++i) global.address[i] += shape.width;
    machine.tally.global(Issue::kLoadGlobal, global, shape.width);
  }
  if (to == ir::Space::kGlobal) machine.tally.global(Issue::kStoreGlobal, global, shape.width);
  if (from == ir::Space::kShared) machine.tally.shared(Issue::kLoadShared, shared, shape.width);
  if (from == ir::Space::kShared && shape.cut) {
    machine.tally.shared(Issue::kLoadShared, shared, shape.width);
  }
  if (to == ir::Space::kShared && from != to) {
    machine.tally.shared(Issue::kStoreShared, shared, shape.width);
  }
}

void move_all(Machine& machine, Warp& warp, const CopyPlan& plan, AsyncGroup* group) {
  const bool same = is_same(plan.src, warp) && is_same(plan.dst, warp);
  Sides sides = sides_of(plan, warp, warp.first_lane());
  const Shape shape = shape_of(plan, sides);
  const bool async = group != nullptr && is_asynchronous(plan, shape);
  Mover mover(machine, warp, plan, shape, group);
  const std::uint32_t unit = plan.unit == 0 ? machine.program.threads : plan.unit;
  spend(machine, static_cast<std::uint64_t>(shape.vectors / plan.threads));
  for (std::int64_t step = 0; step * plan.threads < shape.vectors; ++step) {
    machine.global_request.clear();
    machine.shared_request.clear();
    for_each_lane(warp.mask, [&](std::uint32_t lane) {
      const std::uint32_t thread = (warp.index * kLanes + lane - plan.first) % unit;
      const std::int64_t vector = step * plan.threads + thread;
      if (thread >= plan.threads || vector >= shape.vectors) return;
      if (!same) sides = sides_of(plan, warp, lane);
      mover.move(lane, sides, vector);
    });
    count_step(machine, plan, shape, async);
  }
}

void land_data(Machine& machine, const Warp& warp, const AsyncVector& vector) {
  std::byte* target = machine.shared[warp.block].data() + vector.address;
  if (vector.valid > 0) std::memcpy(target, vector.source, vector.valid);
  std::memset(target + vector.valid, 0, static_cast<std::size_t>(vector.bytes - vector.valid));
}

void bound_source(AsyncGroup& group) {
  for (const AsyncVector& vector : group.vectors) {
    if (vector.valid == 0) continue;
    const bool is_first = group.from == nullptr;
    group.from = is_first ? vector.source : std::min(group.from, vector.source);
    group.to = std::max(is_first ? vector.source : group.to, vector.source + vector.valid);
  }
}

// What the vector writes counts as its thread's from now on.
void give_to_thread(Machine& machine, const Warp& warp, const AsyncVector& vector,
                    std::uint16_t instruction) {
  if (machine.shared_shadows.empty()) return;
  const Actor actor{.thread = static_cast<std::uint16_t>(warp.agent * kLanes + vector.lane),
                    .instruction = instruction,
                    .agent = warp.agent,
                    .clock = warp.now,
                    .seen = warp.seen};
  machine.shared_shadows[warp.block]->land(static_cast<std::size_t>(vector.address), vector.bytes,
                                           actor);
}

// The group's copies by `lanes` have been waited for.
void land(Machine& machine, Warp& warp, AsyncGroup& group, std::uint32_t lanes) {
  for (AsyncVector& vector : group.vectors) {
    if (((lanes >> vector.lane) & 1U) == 0) continue;
    if (!vector.moved) land_data(machine, warp, vector);
    if (!group.known.empty() && vector.valid > 0) {
      const Touch touch{machine, warp, vector.lane, *group.source};
      note_late_read(touch, group, vector.source - group.source->data, vector.valid);
    }
    give_to_thread(machine, warp, vector, group.instruction);
  }
  group.lanes &= ~lanes;
}

void drop_landed(Warp& warp) {
  std::erase_if(warp.groups, [&](AsyncGroup& group) {
    if (group.lanes != 0) return false;
    group.vectors.clear();
    warp.spare.push_back(std::move(group.vectors));
    return true;
  });
}

}  // namespace

void execute_copy(Machine& machine, Warp& warp, const CopyPlan& plan) {
  if (plan.unit != 1) check_whole(machine, warp);
  if (!plan.grouped) {
    move_all(machine, warp, plan, nullptr);
    return;
  }
  AsyncGroup group;
  group.lanes = warp.mask;
  group.instruction = static_cast<std::uint16_t>(warp.pc);
  if (machine.tracer != nullptr) group.entry = machine.tracer->current();
  if (!warp.spare.empty()) {
    group.vectors = std::move(warp.spare.back());
    warp.spare.pop_back();
  }
  group.source = plan.src.buffer;
  group.known = known_at_issue({machine, warp, warp.first_lane(), *plan.src.buffer});
  move_all(machine, warp, plan, &group);
  if (!group.known.empty()) bound_source(group);
  // Landing early changes the bytes, not the order: nobody may look before the wait.
  if (machine.random && machine.next_random() % 2 == 0) {
    for (const AsyncVector& vector : group.vectors) {
      if (!vector.moved) land_data(machine, warp, vector);
    }
  }
  warp.groups.push_back(std::move(group));
}

void land_tracked(Machine& machine, std::size_t index) {
  TrackedGroup tracked = std::move(machine.tracked[index]);
  machine.tracked.erase(machine.tracked.begin() + static_cast<std::ptrdiff_t>(index));
  AsyncGroup& group = tracked.group;
  land(machine, machine.warps[tracked.warp], group, group.lanes);
  for (const std::uint32_t slot : tracked.slots) {
    EventSlot& state = machine.slot(tracked.block, slot);
    if (machine.tracer != nullptr) {
      machine.tracer->lands(group.entry, tracked.block, slot, state.completed);
    }
    --state.copies;
    settle(machine, tracked.block, slot);
  }
}

namespace {

// The group's share of `lanes`, which it loses.
AsyncGroup share_of(AsyncGroup& group, std::uint32_t lanes) {
  const auto is_of = [&](const AsyncVector& vector) { return ((lanes >> vector.lane) & 1U) != 0; };
  AsyncGroup out = group;
  out.lanes = group.lanes & lanes;
  std::erase_if(out.vectors, [&](const AsyncVector& vector) { return !is_of(vector); });
  std::erase_if(group.vectors, is_of);
  group.lanes &= ~lanes;
  return out;
}

// What earlier triggers of the warp's active lanes have left to their events.
void track_again(Machine& machine, const Warp& warp, std::uint32_t slot) {
  for (std::size_t i = machine.tracked.size(); i-- > 0;) {
    TrackedGroup& tracked = machine.tracked[i];
    if (tracked.warp != warp.number || (tracked.group.lanes & warp.mask) == 0) continue;
    if ((tracked.group.lanes & ~warp.mask) != 0) {
      TrackedGroup rest = tracked;
      tracked.group = share_of(rest.group, warp.mask);
      for (const std::uint32_t other : rest.slots) ++machine.slot(rest.block, other).copies;
      machine.tracked.push_back(std::move(rest));
    }
    machine.tracked[i].slots.push_back(slot);
    ++machine.slot(warp.block, slot).copies;
  }
}

}  // namespace

// What they write belongs to the threads from now on, for whoever waits for them waits for it.
void track_copies(Machine& machine, Warp& warp, std::uint32_t slot) {
  track_again(machine, warp, slot);
  for (AsyncGroup& group : warp.groups) {
    if ((group.lanes & warp.mask) == 0) continue;
    AsyncGroup part = share_of(group, warp.mask);
    for (const AsyncVector& vector : part.vectors) {
      give_to_thread(machine, warp, vector, part.instruction);
    }
    machine.tracked.push_back({std::move(part), warp.number, warp.block, {slot}});
    ++machine.slot(warp.block, slot).copies;
  }
  drop_landed(warp);
}

void execute_copy_wait(Machine& machine, Warp& warp, std::int64_t pending) {
  machine.tally.issue(Issue::kWait);
  for (std::size_t i = 0; pending == 0 && i < machine.tracked.size();) {
    machine.tracked[i].warp == warp.number ? land_tracked(machine, i) : void(++i);
  }
  std::array<std::int64_t, kLanes> younger = {};
  for (std::size_t i = warp.groups.size(); i-- > 0;) {
    AsyncGroup& group = warp.groups[i];
    std::uint32_t done = 0;
    for_each_lane(group.lanes & warp.mask, [&](std::uint32_t lane) {
      if (younger[lane]++ >= pending) done |= 1U << lane;
    });
    if (done != 0) land(machine, warp, group, done);
  }
  drop_landed(warp);
}

}  // namespace kiln::sim
