// Events: mbarriers with phases, arrivals and bytes.
//
//   generation 0 of full[1]: arrive (announcing 8192 bytes), 4096 land, 4096 land  -> complete
//
// A slot completes a phase when no arrival is missing, as many bytes have landed as were announced, and
// so have the copies that triggers have left to it. Whoever arrives passes on what it has seen; whoever waits takes over what was seen by
// those who arrived. The hardware tells two phases apart, no more: a slot must not complete another
// one before everybody has passed the wait for the last. That is checked by the clocks when a phase
// completes, so that it is found in every schedule: the arrivals must have seen each waiter pass.
// An event of the grid counts arrivals, and has no such limit.
#include <algorithm>

#include "sim/access.h"
#include "sim/tracer.h"

namespace kiln::sim {

namespace {

void join(std::vector<Clock>& into, const Clock* clocks) {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], clocks[i]);
}

const EventPlan& event_of(const Machine& machine, std::uint32_t slot) {
  for (const EventPlan& event : machine.program.events) {
    if (slot >= event.first_slot && slot < event.first_slot + event.slots) return event;
  }
  KILN_UNREACHABLE("slot {} belongs to no event", slot);
}

// A generation's arrivals as the program counts them.
std::int64_t counted(const EventPlan& event) { return event.arrivals * event.threads_each; }

void report_overrun(Machine& machine, std::uint32_t slot, const Warp& late) {
  const EventPlan& event = event_of(machine, slot);
  Report* report = machine.reporter.open(ReportKind::kOverrun, event.op);
  if (report == nullptr) return;
  report->message = format(
      "phase overrun: {} completes another generation while warp {} may still wait for the last",
      slot_text(machine, slot), late.index);
  report->accesses = {{machine.function.ops[event.op].span, "the event"}};
  report->missing = "nothing orders the trigger after that warp's wait";
}

// Everybody who has passed the wait for the last phase is known to have done so.
void check_passed(Machine& machine, std::uint32_t block, std::uint32_t slot) {
  const EventSlot& state = machine.slot(block, slot);
  for (const Warp& warp : machine.warps) {
    if (warp.block != block || state.passed[warp.number] != state.completed) continue;
    const Clock then = state.passed_at[warp.number];
    if (state.gathering[warp.agent] > then ||
        covers(state.gathering_lanes, warp.agent, state.passed_lanes[warp.number], then)) {
      continue;
    }
    report_overrun(machine, slot, warp);
  }
}

void wake(Machine& machine, std::uint32_t block, std::uint32_t slot) {
  for (Warp& warp : machine.warps) {
    const bool waits = warp.state == WarpState::kWaiting && warp.waits == Waiting::kEvent &&
                       warp.slot == slot && machine.home(warp.block, slot) == block;
    if (waits && machine.slot(block, slot).completed >= warp.phase) warp.state = WarpState::kReady;
  }
}

// The slot within the block's, or none after a report.
std::optional<std::uint32_t> slot_of(Machine& machine, const Warp& warp, std::uint32_t event,
                                     const IndexExpr& expr) {
  const EventPlan& plan = machine.program.events[event];
  const std::int64_t slot = expr.evaluate(warp.vars.data(), warp.first_lane());
  if (slot >= 0 && slot < plan.slots) return plan.first_slot + static_cast<std::uint32_t>(slot);
  report_at(machine, warp, ReportKind::kOutOfBounds,
            format("`{}[{}]` is outside: there are {} slots", plan.name, slot, plan.slots),
            format("slot {} by warp {}", slot, warp.index));
  return std::nullopt;
}

// The completion of so many generations of a block's slot: whose clock tells it, and how late that is then.
struct Completion {
  std::uint32_t agent = 0;
  Clock clock = 0;
};
Completion completion_of(const Machine& machine, std::uint32_t block, std::uint32_t slot,
                         std::int64_t generations) {
  return {.agent = machine.agents.slot(machine.home(block, slot), slot),
          .clock = machine.era->block_start + static_cast<Clock>(generations)};
}

// Whether all of these lanes know of it.
bool know(const Machine& machine, const Warp& warp, std::uint32_t lanes,
          const Completion& completion) {
  bool known = true;
  for_each_lane(lanes, [&](std::uint32_t lane) {
    const Clock* completed = knowledge_of(machine, warp, lane).completed;
    known = known && completed[completion.agent] >= completion.clock;
  });
  return known;
}

// An mbarrier is asked for a phase by its lowest bit, so that a wait for a generation also passes while the last but one before it
// is under way. Whoever waits must know that the one before it has been completed.
void check_not_ahead(Machine& machine, const Warp& warp, std::uint32_t slot,
                     std::int64_t generation, std::int64_t phases) {
  if (know(machine, warp, warp.mask, completion_of(machine, warp.block, slot, phases - 1))) return;
  report_at(
      machine, warp, ReportKind::kOverrun,
      format(
          "phase overrun: warp {} may wait for generation {} of {} before generation {} has been "
          "completed, when the hardware's phase bit means another one",
          warp.index, generation, slot_text(machine, slot), generation - 1),
      format("wait by warp {}", warp.index));
}

// An arrival counts for the generation that is under way. Whoever arrives must know that the one before it has been completed,
// or may be counted twice there in place of somebody who has not arrived yet.
void check_counts(Machine& machine, const Warp& warp, std::uint32_t block, std::uint32_t slot,
                  std::uint32_t lanes) {
  const std::int64_t completed = machine.slot(block, slot).completed;
  if (completed == 0 || machine.program.of_grid[slot]) return;
  if (know(machine, warp, lanes, completion_of(machine, block, slot, completed))) return;
  const std::int64_t generation = completed + (event_of(machine, slot).ready ? 1 : 0);
  report_at(
      machine, warp, ReportKind::kOverrun,
      format("phase overrun: warp {} may trigger generation {} of {} before generation {} has been "
             "completed, and count for that one",
             warp.index, generation, slot_text(machine, slot), generation - 1),
      format("trigger by warp {}", warp.index));
}

// The lanes that arrive, and for how many arrivals that counts: one by a whole warp.
struct Arrivals {
  std::uint32_t lanes = 0;
  std::int64_t count = 0;
};

void arrive(Machine& machine, const Warp& warp, std::uint32_t block, std::uint32_t slot,
            const Arrivals& arrivals) {
  EventSlot& state = machine.slot(block, slot);
  if (machine.tracer != nullptr) machine.tracer->arrives(block, slot, state.completed);
  if (machine.checks) check_counts(machine, warp, block, slot, arrivals.lanes);
  pass_on(machine, warp, arrivals.lanes, state);
  if ((warp.mask & warp.bulk_lanes) != 0) {
    tell_waits(machine, warp, state.gathering.data());
  }
  state.pending -= arrivals.count;
  if (state.pending < 0) {
    report_at(machine, warp, ReportKind::kOverrun,
              format("{} gets more arrivals than a generation of it has ({})",
                     slot_text(machine, slot), counted(event_of(machine, slot))),
              format("trigger by warp {}", warp.index));
    state.pending = 0;
  }
  settle(machine, block, slot);
}

Arrivals arrivals_of(const Warp& warp, const TriggerPlan& plan) {
  if (plan.arrival == ir::Arrival::kWarp) return {warp.mask, 1};
  const std::uint32_t lanes =
      plan.arrival == ir::Arrival::kElected ? elected_lanes(warp, plan.who, plan.unit) : warp.mask;
  return {lanes, __builtin_popcount(lanes)};
}

}  // namespace

std::uint32_t elected_lanes(const Warp& warp, const Participants& who, std::uint32_t unit) {
  std::uint32_t elected = 0;
  for_each_lane(warp.mask, [&](std::uint32_t lane) {
    const std::uint32_t thread = warp.index * kLanes + lane;
    const bool first = unit == 0 ? thread == who.first : thread % unit == 0;
    if (first) elected |= 1U << lane;
  });
  return elected;
}

std::string slot_text(const Machine& machine, std::uint32_t slot) {
  const EventPlan& event = event_of(machine, slot);
  if (event.name.empty()) return "the copy's own event";
  return event.slots == 1 ? format("`{}`", event.name)
                          : format("`{}[{}]`", event.name, slot - event.first_slot);
}

std::string lacks_text(const Machine& machine, std::uint32_t block, std::uint32_t slot) {
  const std::size_t home = machine.home(block, slot);
  const EventSlot& state = machine.slots[home * machine.agents.slots + slot];
  const EventPlan& event = event_of(machine, slot);
  const std::int64_t generation = state.completed + (event.ready ? 1 : 0);
  std::string out =
      format("generation {} of {} lacks {} of {} arrival{}", generation, slot_text(machine, slot),
             state.pending * event.threads_each, counted(event), counted(event) == 1 ? "" : "s");
  if (state.bytes != 0) out += format(" and {} bytes", state.bytes);
  if (state.copies != 0) out += format(" and {} copies of threads", state.copies);
  return out;
}

void start_events(Machine& machine) {
  machine.slots.resize(std::size_t{machine.agents.blocks} * machine.agents.slots);
  machine.boxes.clear();
  machine.multicasts.clear();
  machine.tracked.clear();
  for (std::size_t i = 0; i < machine.slots.size(); ++i) {
    EventSlot& state = machine.slots[i];
    const auto slot = static_cast<std::uint32_t>(i % machine.agents.slots);
    state = {};
    state.pending = event_of(machine, slot).arrivals;
    state.gathering.assign(machine.knowledge(), 0);
    state.released.assign(machine.knowledge(), 0);
    state.passed.assign(machine.warps.size(), -1);
    state.passed_at.assign(machine.warps.size(), 0);
    state.passed_lanes.assign(machine.warps.size(), 0);
  }
  for (Warp& warp : machine.warps) warp.awaited.assign(machine.agents.slots, 0);
}

void settle(Machine& machine, std::uint32_t block, std::uint32_t slot) {
  block = machine.home(block, slot);
  const bool has_phases = !machine.program.of_grid[slot];  // and no number of generations
  EventSlot& state = machine.slot(block, slot);
  while (state.pending == 0 && state.bytes == 0 && state.copies == 0) {
    if (machine.checks && has_phases) check_passed(machine, block, slot);
    ++state.completed;
    join(state.released, state.gathering.data());
    const std::uint32_t agent = machine.agents.slot(block, slot);
    const std::uint32_t agents = machine.agents.count();
    for (const std::uint32_t view :
         {agent, agents + agent, 2 * agents + agent, 3 * agents + agent}) {
      state.released[view] = machine.era->block_start + static_cast<Clock>(state.completed);
    }
    for (const LaneClock& one : state.gathering_lanes) add(state.released_lanes, one);
    state.gathering_lanes.clear();
    std::fill(state.gathering.begin(), state.gathering.end(), 0);
    state.pending = event_of(machine, slot).arrivals;
    wake(machine, block, slot);
  }
}

void execute_trigger(Machine& machine, Warp& warp, const TriggerPlan& plan) {
  if (plan.arrival == ir::Arrival::kWarp) check_whole(machine, warp);
  const Arrivals arrivals = arrivals_of(warp, plan);
  if (arrivals.count == 0) return;
  const auto slot = slot_of(machine, warp, plan.event, plan.slot);
  if (!slot) return;
  machine.tally.issue(Issue::kArrive);
  if (plan.tracks) track_copies(machine, warp, *slot);
  if (plan.arrival == ir::Arrival::kWarp) {
    share_waits(machine, warp);
    bring_together(machine, warp);
  } else {
    ++warp.now;
  }
  machine.slot(warp.block, *slot).bytes += plan.bytes;
  if (!plan.cluster) {
    arrive(machine, warp, warp.block, *slot, arrivals);
    const bool completes =
        event_of(machine, *slot).arrivals == arrivals.count && plan.bytes == 0 && !plan.tracks;
    if (completes) learn_completed(machine, warp, *slot);  // what nobody else could have done
    return;
  }
  for (std::uint32_t block = 0; block < machine.agents.blocks; ++block) {
    arrive(machine, warp, block, *slot, arrivals);
  }
}

bool execute_event_wait(Machine& machine, Warp& warp, const EventWaitPlan& plan) {
  const auto found = slot_of(machine, warp, plan.event, plan.slot);
  if (!found) return true;
  const std::uint32_t slot = *found;
  const EventPlan& event = machine.program.events[plan.event];
  EventSlot& state = machine.slot(warp.block, slot);
  const std::int64_t generation =
      plan.tracked ? warp.awaited[slot]
                   : plan.generation.evaluate(warp.vars.data(), warp.first_lane());
  const std::int64_t phases = generation + (event.ready ? 0 : 1);
  if (state.completed < phases) {
    warp.waits = Waiting::kEvent;
    warp.slot = slot;
    warp.phase = phases;
    warp.state = WarpState::kWaiting;
    return false;
  }
  if (state.completed > phases && !event.grid) {
    report_at(machine, warp, ReportKind::kOverrun,
              format("phase overrun: {} has completed {} generations when warp {} waits for "
                     "generation {}, so that the hardware's phase bit means another one",
                     slot_text(machine, slot), state.completed + (event.ready ? 1 : 0), warp.index,
                     generation),
              format("wait by warp {}", warp.index));
  }
  if (machine.checks && !plan.tracked && !event.grid && phases > 1) {
    check_not_ahead(machine, warp, slot, generation, phases);
  }
  machine.tally.issue(Issue::kEventWait);
  if (machine.tracer != nullptr) machine.tracer->waits(slot, phases);
  ++warp.awaited[slot];
  take_over(machine, warp, state);
  state.passed[warp.number] = phases;
  state.passed_at[warp.number] = warp.now;
  state.passed_lanes[warp.number] = warp.mask;
  return true;
}

void check_events_at_end(Machine& machine) {
  if (!machine.checks) return;
  for (std::uint32_t block = 0; block < machine.agents.blocks; ++block) {
    for (std::uint32_t slot = 0; slot < machine.agents.slots; ++slot) {
      const EventSlot& state = machine.slot(block, slot);
      const EventPlan& event = event_of(machine, slot);
      if (machine.home(block, slot) != block) continue;
      if (state.pending == event.arrivals && state.bytes == 0 && state.copies == 0) continue;
      Report* report = machine.reporter.open(ReportKind::kUnfinished, event.op);
      if (report == nullptr) continue;
      report->message = format("the {} ends with a generation begun: {}",
                               event.grid ? "grid" : "block", lacks_text(machine, block, slot));
      report->accesses = {{machine.function.ops[event.op].span, "the event"}};
    }
  }
}

}  // namespace kiln::sim
