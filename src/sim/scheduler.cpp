// The scheduler: picks who runs, releases barriers, and notices when nobody can run.
//
// Schedule 0 takes warps in turn, each to its next barrier. Other schedules pick at random and
// switch at every memory operation; the random numbers come from the seed alone, so a run can be
// repeated.
#include <algorithm>

#include "sim/access.h"
#include "sim/tracer.h"

namespace kiln::sim {

namespace {

void reset_warp(const Machine& machine, const Warp& host, Warp& warp) {
  const Program& program = machine.program;
  warp.pc = 0;
  warp.mask = warp.exists;
  warp.state = WarpState::kReady;
  warp.frames.clear();
  warp.trips = 0;
  warp.carried.clear();
  warp.groups.clear();
  warp.vars.resize(program.vars * kLanes);
  warp.values.resize(program.values * kLanes);
  warp.cell_set.resize(program.values);
  for (std::size_t value = 0; value < program.values; ++value) {
    std::fill_n(warp.values.begin() + static_cast<std::ptrdiff_t>(value * kLanes), kLanes,
                host.values[value * kLanes]);
    warp.cell_set[value] = (host.cell_set[value] & 1U) != 0 ? ~0U : 0U;
  }
  warp.loop_upper.resize(program.loops.size() * kLanes);
  warp.registers.resize(program.fragment_doubles);
  // What is only counted is never filled, nor looked at.
  warp.fragment_set.assign(program.fragments.size(), machine.counting != nullptr);
  warp.unfenced.assign(program.fragments.size(), false);
  warp.descriptors.resize(program.fragments.size());
  warp.products.clear();
  warp.group = 0;
  warp.bulk_groups = 0;
  warp.bulk_lanes = 0;
  warp.local.resize(static_cast<std::size_t>(program.local_bytes) * kLanes);
  warp.local_set.assign(warp.local.size(), false);
}

// Whether a barrier holds the two warps together.
bool share(const Warp& a, const Warp& b, const BarrierPlan& barrier) {
  constexpr std::uint32_t kGroup4Warps = 4;
  if (barrier.cluster) return true;
  if (a.block != b.block) return false;
  return barrier.level != ir::Level::kGroup4 || a.index / kGroup4Warps == b.index / kGroup4Warps;
}

bool waits_at(const Warp& warp, const BarrierPlan& barrier) {
  return warp.state == WarpState::kWaiting && warp.waits == Waiting::kBarrier &&
         warp.barrier.level == barrier.level && warp.barrier.cluster == barrier.cluster &&
         warp.barrier.id == barrier.id;
}

// Every warp of the list has seen what every other has done.
void synchronise(Machine& machine, const std::vector<std::uint32_t>& together) {
  std::vector<Clock>& joined = machine.joined;
  LaneClocks lanes;
  const std::size_t count = machine.knowledge();
  for (const std::uint32_t w : together) {
    Warp& warp = machine.warps[w];
    bring_together(machine, warp);
    for (const LaneClock& one : warp.seen_of_lanes) add(lanes, one);
    warp.state = WarpState::kReady;
  }
  joined.assign(count, 0);
  for (const std::uint32_t w : together) {
    const Clock* mine = machine.warps[w].seen;
    for (std::size_t i = 0; i < count; ++i) joined[i] = std::max(joined[i], mine[i]);
  }
  for (const std::uint32_t w : together) {
    std::copy(joined.begin(), joined.end(), machine.warps[w].seen);
    machine.warps[w].seen_of_lanes = lanes;
  }
  if (machine.tracer != nullptr) machine.tracer->meet(together);
}

// Releases the barrier that the warp has reached, if all others it holds are there.
void try_release(Machine& machine, const Warp& warp) {
  if (warp.state != WarpState::kWaiting || warp.waits != Waiting::kBarrier) return;
  const BarrierPlan barrier = warp.barrier;
  std::vector<std::uint32_t> there;
  bool all = true;
  for (const Warp& other : machine.warps) {
    if (!share(warp, other, barrier)) continue;
    if (waits_at(other, barrier)) {
      there.push_back(other.number);
    } else {
      all = false;
    }
  }
  // A named barrier counts who comes; any other waits for everybody.
  const bool complete =
      barrier.threads == 0 ? all : there.size() * kLanes >= std::size_t{barrier.threads};
  if (complete) synchronise(machine, there);
}

std::string barrier_text(const BarrierPlan& barrier) {
  if (barrier.cluster) return barrier.grid ? "grid barrier" : "cluster barrier";
  if (barrier.threads != 0) return format("barrier of {} threads", barrier.threads);
  return barrier.level == ir::Level::kGroup4 ? "group-4 barrier" : "block barrier";
}

std::string waits_text(const Machine& machine, const Warp& warp) {
  const std::string who = format(
      "warp {}{}", warp.index,
      machine.agents.blocks == 1 ? "" : format(" of block {}", machine.block_numbers[warp.block]));
  if (warp.waits == Waiting::kBarrier) {
    return format("{} waits at a {}", who, barrier_text(warp.barrier));
  }
  if (warp.waits == Waiting::kRegisters) {
    const RegistersPlan& plan = machine.program.registers_set[machine.program.code[warp.pc].plan];
    return format("{} waits for {} registers, {} of which it has: the block's pool has {} left",
                  who, plan.count * kLanes, warp.register_count * kLanes,
                  machine.free_registers[warp.block]);
  }
  return format("{} waits: {}", who, lacks_text(machine, warp.block, warp.slot));
}

// The triggers of the event whose slot the warp waits for: what would have freed it.
void blame_triggers(const Machine& machine, const Warp& warp, Report& report) {
  for (const Instruction& at : machine.program.code) {
    if (at.code != Code::kTrigger) continue;
    const EventPlan& event = machine.program.events[machine.program.triggers[at.plan].event];
    if (warp.slot < event.first_slot || warp.slot >= event.first_slot + event.slots) continue;
    report.accesses.push_back({machine.function.ops[at.op].span,
                               format("a trigger here would free warp {}", warp.index)});
  }
}

void report_deadlock(Machine& machine) {
  const auto stuck_at = [](const Warp& w) { return w.state == WarpState::kWaiting; };
  const auto waiting = std::find_if(machine.warps.begin(), machine.warps.end(), stuck_at);
  const bool for_event = waiting->waits == Waiting::kEvent;
  const bool for_registers = waiting->waits == Waiting::kRegisters;
  const auto op_of = [&](const Warp& warp) {
    return machine.program.code[warp.waits == Waiting::kBarrier ? warp.pc - 1 : warp.pc].op;
  };
  Report* report = machine.reporter.open(ReportKind::kDeadlock, op_of(*waiting));
  if (report == nullptr) return;
  std::size_t finished = 0;
  std::size_t stuck = 0;
  std::vector<ir::OpId> named;
  bool events = false;
  for (const Warp& warp : machine.warps) {
    finished += warp.state == WarpState::kFinished ? 1 : 0;
    if (warp.state != WarpState::kWaiting) continue;
    ++stuck;
    events = events || warp.waits != Waiting::kBarrier;
    // One line for each place: the first warp speaks for the others.
    const ir::OpId op = op_of(warp);
    if (std::find(named.begin(), named.end(), op) != named.end() && events) continue;
    named.push_back(op);
    report->accesses.push_back({machine.function.ops[op].span, waits_text(machine, warp)});
  }
  if (events) {
    report->message = format("deadlock: {} of {} {} for each other", stuck, machine.warps.size(),
                             stuck == 1 ? "warps waits" : "warps wait");
    if (for_registers) report->missing = "nobody is left who would give registers away";
    if (!for_event) return;
    report->missing = lacks_text(machine, waiting->block, waiting->slot);
    blame_triggers(machine, *waiting, *report);
    return;
  }
  report->message = format("deadlock: {} of {} {} at a barrier that {} never reach{}", stuck,
                           machine.warps.size(), stuck == 1 ? "warps waits" : "warps wait",
                           finished == 1 ? "the other" : "the others", finished == 1 ? "es" : "");
  report->missing = finished == 0 ? "the warps wait at barriers of different levels"
                                  : format("{} {} finished without it", finished,
                                           finished == 1 ? "warp has" : "warps have");
}

// Copies that are on their way when all warps have finished: nobody waits for them.
void report_unfinished_copies(Machine& machine) {
  if (!machine.checks) return;
  for (const BulkBox& box : machine.boxes) {
    const BulkPlan& plan = machine.program.bulk_copies[box.plan];
    Report* report = machine.reporter.open(ReportKind::kUnfinished, plan.op);
    if (report == nullptr) continue;
    report->message = format("the block ends while a bulk {} of `{}` is on its way",
                             plan.loads ? "load" : "store", plan.shared.buffer->name);
    report->accesses = {{machine.function.ops[plan.op].span, "started here, and never waited for"}};
  }
}

// Reports name a block by the clocks of its accesses; of very many blocks only the last ones.
void note_block_start(Machine& machine, Clock clock) {
  constexpr std::size_t kKept = 1 << 16;
  std::vector<Machine::BlockStart>& starts = machine.block_starts;
  if (starts.size() == 2 * kKept) starts.erase(starts.begin(), starts.begin() + kKept);
  starts.push_back({clock, machine.block_numbers[0]});
}

// The next warp to run, from `from` on; or none.
std::size_t pick(Machine& machine, std::size_t from) {
  const std::size_t warps = machine.warps.size();
  if (machine.random) from = machine.next_random() % warps;
  for (std::size_t i = 0; i < warps; ++i) {
    const std::size_t w = (from + i) % warps;
    if (machine.warps[w].state == WarpState::kReady) return w;
  }
  return warps;
}

}  // namespace

void start_block(Machine& machine, const Warp& host) {
  const Program& program = machine.program;
  const std::size_t warps = program.warps();
  Clock latest = machine.era->block_start;
  for (const Clock clock : machine.clocks) latest = std::max(latest, clock);
  machine.era->block_start = latest + 1;
  note_block_start(machine, latest + 1);
  const std::size_t agents = machine.agents.count();
  machine.warps.resize(warps * machine.agents.blocks);
  machine.clocks.assign(machine.warps.size() * machine.knowledge(), latest + 1);
  for (std::uint32_t w = 0; w < machine.warps.size(); ++w) {
    Warp& warp = machine.warps[w];
    warp.number = w;
    warp.block = w / static_cast<std::uint32_t>(warps);
    warp.index = w % static_cast<std::uint32_t>(warps);
    warp.agent = machine.agents.warp(warp.block, warp.index);
    const std::uint32_t lanes = std::min(kLanes, program.threads - warp.index * kLanes);
    warp.exists = lanes == kLanes ? ~0U : (1U << lanes) - 1;
    warp.seen = &machine.clocks[w * machine.knowledge()];
    warp.fenced = warp.seen + agents;
    warp.fenced_global = warp.fenced + agents;
    warp.completed = warp.fenced_global + agents;
    warp.now = warp.group_clock = warp.bulk_clock = latest + 1;
    warp.seen_of_lanes.clear();
    warp.views.clear();
    warp.waited = {};
    warp.register_count = machine.registers_at_start;
    reset_warp(machine, host, warp);
  }
  machine.free_registers.assign(machine.agents.blocks, 0);
  start_events(machine);
}

void run_block(Machine& machine) {
  std::size_t at = 0;
  while (true) {
    if (machine.random && !machine.boxes.empty() && machine.next_random() % 4 == 0) {
      land_box(machine, machine.next_random() % machine.boxes.size());
    }
    if (machine.random && !machine.tracked.empty() && machine.next_random() % 4 == 0) {
      land_tracked(machine, machine.next_random() % machine.tracked.size());
    }
    at = pick(machine, at);
    if (at < machine.warps.size()) {
      run_warp(machine, machine.warps[at]);
      if (machine.gave_up) return;
      try_release(machine, machine.warps[at]);
      continue;
    }
    at = 0;
    const bool loads = std::any_of(machine.warps.begin(), machine.warps.end(), [](const Warp& w) {
      return w.state == WarpState::kWaiting && w.waits == Waiting::kEvent;
    });
    if (!loads || (machine.boxes.empty() && machine.tracked.empty())) break;
    machine.boxes.empty() ? land_tracked(machine, 0) : land_box(machine, 0);
  }
  // The next block's clocks must be later than those of what nobody waited for.
  for (Warp& warp : machine.warps) {
    Clock& products = warp.seen[warp.agent + machine.agents.warps];
    products = std::max(products, std::max({warp.now, warp.group_clock, warp.bulk_clock}));
    for (const EventSlot& slot : machine.slots) {
      products = std::max(products, machine.era->block_start + static_cast<Clock>(slot.completed));
    }
  }
  const bool all_done = std::all_of(machine.warps.begin(), machine.warps.end(),
                                    [](const Warp& w) { return w.state == WarpState::kFinished; });
  if (!all_done) {
    report_deadlock(machine);
  } else {
    report_unfinished_copies(machine);
    check_events_at_end(machine);
  }
  while (!machine.boxes.empty()) land_box(machine, 0);
  while (!machine.tracked.empty()) land_tracked(machine, 0);
}

}  // namespace kiln::sim
