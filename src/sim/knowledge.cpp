// What the lanes of a warp know of each other and of other warps.
//
// A warp knows as a whole (Warp::seen) what all of its lanes have seen. Where control flow
// diverges, a lane that waits for an event alone knows more than the others, and a lane that
// triggers one alone speaks for nobody else:
//
//   if (t == 5) trigger go;     the others' writes since the warp last met are not passed on
//   if (t < 16) wait go;        lanes 16 to 31 may not read what `go` stands for
//
// What such lanes know is kept apart (LaneView) until the warp meets: at a barrier, or in a trigger
// by the whole warp, which begins with `__syncwarp`.
#include <algorithm>

#include "sim/machine.h"

namespace kiln::sim {

namespace {

void raise(Clock* clocks, const Clock* others, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) clocks[i] = std::max(clocks[i], others[i]);
}

void add_all(LaneClocks& known, const LaneClocks& more) {
  for (const LaneClock& one : more) add(known, one);
}

// Forgets what the warps' clocks say as well.
void prune(LaneClocks& known, const Clock* seen) {
  std::erase_if(known, [&](const LaneClock& one) { return seen[one.agent] >= one.clock; });
}

// Afterwards each view lies within these lanes or outside of them, and each of the lanes is in one.
void split_views(const Machine& machine, Warp& warp, std::uint32_t lanes) {
  std::uint32_t rest = lanes;
  const std::size_t before = warp.views.size();
  for (std::size_t i = 0; i < before; ++i) {
    const std::uint32_t inside = warp.views[i].lanes & lanes;
    rest &= ~inside;
    if (inside == 0 || inside == warp.views[i].lanes) continue;
    LaneView part = warp.views[i];
    part.lanes = inside;
    warp.views[i].lanes &= ~inside;
    warp.views.push_back(std::move(part));
  }
  if (rest == 0) return;
  warp.views.push_back(
      {rest, std::vector<Clock>(warp.seen, warp.seen + machine.knowledge()), warp.seen_of_lanes});
}

// Gives `learn` what the warp's active lanes know: of all lanes together, or of each view of them.
template <class Learn>
void teach(const Machine& machine, Warp& warp, Learn&& learn) {
  if (warp.whole()) {
    learn(warp.seen, warp.seen_of_lanes);
  } else {
    split_views(machine, warp, warp.mask);
  }
  for (LaneView& view : warp.views) {
    if ((view.lanes & warp.mask) != 0) learn(view.clocks.data(), view.of_lanes);
  }
}

}  // namespace

// Of each lane the latest clock: those of an agent have no lane in common, so that they stay few.
void add(LaneClocks& known, LaneClock more) {
  for (LaneClock& one : known) {
    if (one.agent != more.agent) continue;
    if (one.clock > more.clock) {
      more.lanes &= ~one.lanes;
      continue;
    }
    if (one.clock == more.clock) more.lanes |= one.lanes;
    one.lanes = one.lanes & ~more.lanes;
  }
  std::erase_if(known, [](const LaneClock& one) { return one.lanes == 0; });
  if (more.lanes != 0) known.push_back(more);
}

const LaneView* view_of(const Warp& warp, std::uint32_t lane) {
  for (const LaneView& view : warp.views) {
    if (((view.lanes >> lane) & 1U) != 0) return &view;
  }
  return nullptr;
}

void take_over(const Machine& machine, Warp& warp, const EventSlot& slot) {
  teach(machine, warp, [&](Clock* seen, LaneClocks& lanes) {
    raise(seen, slot.released.data(), machine.knowledge());
    add_all(lanes, slot.released_lanes);
    prune(lanes, seen);
  });
}

void learn_completed(Machine& machine, Warp& warp, std::uint32_t slot) {
  const std::size_t agent = machine.agents.slot(machine.home(warp.block, slot), slot);
  const Clock now =
      machine.era->block_start + static_cast<Clock>(machine.slot(warp.block, slot).completed);
  teach(machine, warp, [&](Clock* seen, LaneClocks&) {
    Clock& known = seen[machine.completions() + agent];
    known = std::max(known, now);
  });
}

void pass_on(const Machine& machine, const Warp& warp, std::uint32_t lanes, EventSlot& slot) {
  raise(slot.gathering.data(), warp.seen, machine.knowledge());
  add_all(slot.gathering_lanes, warp.seen_of_lanes);
  for (const LaneView& view : warp.views) {
    if ((view.lanes & lanes) == 0) continue;
    raise(slot.gathering.data(), view.clocks.data(), machine.knowledge());
    add_all(slot.gathering_lanes, view.of_lanes);
  }
  if (lanes == warp.exists) {
    Clock& mine = slot.gathering[warp.agent];
    mine = std::max(mine, warp.now);
  } else {
    add(slot.gathering_lanes, {warp.agent, lanes, warp.now});
  }
}

void bring_together(const Machine& machine, Warp& warp) {
  for (const LaneView& view : warp.views) {
    raise(warp.seen, view.clocks.data(), machine.knowledge());
    add_all(warp.seen_of_lanes, view.of_lanes);
  }
  warp.views.clear();
  warp.seen[warp.agent] = ++warp.now;
  if (!warp.seen_of_lanes.empty()) prune(warp.seen_of_lanes, warp.seen);
}

}  // namespace kiln::sim
