// What ends a run that would not end by itself: the limit on steps, and loops that go round for
// nothing.
//
// A step is one instruction of one warp; a copy takes one for every vector that a lane moves, a bulk
// copy for every 512 bytes. A loop with a count says on entry how many trips it will
// make, so one that cannot fit the limit is given up before it begins:
//
//   foreach i in [2147483648] { }      with 10^9 steps left: given up after no trip at all
//
// A loop without a count is given up when a trip hands on to the next one exactly what it got (no
// cell that outlives the trip has changed, no memory and no register tile either), since all later
// trips would be like it; and in any case after kTripsMax trips, or kHostTripsMax in the host part.
#include <algorithm>

#include "ir/loop_around.h"
#include "sim/access.h"

namespace kiln::sim {

namespace {

// More than any program that ends needs.
constexpr std::uint64_t kTripsMax = 1'000'000;
constexpr std::uint64_t kHostTripsMax = 100'000;  // each may launch a kernel

// Ends the run with a report at the operation.
void give_up(Machine& machine, Warp& warp, ir::OpId at, Report finding) {
  if (Report* report = machine.reporter.open(finding.kind, at); report != nullptr) {
    report->message = std::move(finding.message);
    report->accesses = {
        {machine.function.ops[at].span,
         format("here, in {}", thread_of_block_text(machine, warp, warp.first_lane()))}};
    report->help = std::move(finding.help);
  }
  machine.gave_up = true;
  warp.state = WarpState::kFinished;
}

Report too_many_steps(std::string message) {
  return {.kind = ReportKind::kSteps,
          .message = std::move(message),
          .accesses = {},
          .missing = "",
          .help = {}};
}

std::vector<std::int64_t> carried(Warp& warp, const ForeverPlan& plan) {
  std::vector<std::int64_t> out;
  for (const std::uint32_t cell : plan.cells) {
    out.push_back(warp.cell_set[cell]);
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) out.push_back(warp.value(cell, lane).i);
  }
  return out;
}

}  // namespace

std::vector<std::uint32_t> carried_cells(const ir::Function& function, ir::RegionId body) {
  std::vector<std::uint32_t> cells;
  std::vector<std::uint32_t> own;
  ir::walk(function, body, [&](ir::OpId id) {
    const ir::Op& op = function.ops[id];
    if (const auto* set = std::get_if<ir::Set>(&op.data)) cells.push_back(set->cell.index);
    if (op.kind() == ir::OpKind::kAlloc) own.push_back(op.result.index);
  });
  std::sort(cells.begin(), cells.end());
  cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
  std::erase_if(cells, [&](std::uint32_t cell) {
    return std::find(own.begin(), own.end(), cell) != own.end();
  });
  return cells;
}

bool hands_on(Code code) {
  constexpr bool kRows[] = {
#define KILN_CODE(Name, hands_on, ...) hands_on,
#define KILN_JUMP(Name, ...) false,
#include "sim/code.def"
#undef KILN_CODE
#undef KILN_JUMP
  };
  return kRows[static_cast<std::size_t>(code)];
}

void begin_trips(Machine& machine, Warp& warp, const ForeverPlan& plan) {
  warp.frames.push_back({warp.mask, 0, machine.changes});
  warp.carried.push_back(carried(warp, plan));
}

void end_trips(Warp& warp) { warp.carried.pop_back(); }

void check_trip(Machine& machine, Warp& warp, const Instruction& at) {
  Frame& frame = warp.frames.back();
  std::vector<std::int64_t> now = carried(warp, machine.program.forevers[at.plan]);
  // In a random schedule other warps have run in between, or have yet to.
  const bool moved =
      machine.random || frame.changes != machine.changes || now != warp.carried.back();
  frame.changes = machine.changes;
  warp.carried.back() = std::move(now);
  ++warp.trips;
  const std::uint64_t most = machine.era == nullptr ? kHostTripsMax : kTripsMax;
  if (moved && warp.trips <= most) return;
  Report finding;
  finding.kind = ReportKind::kDeadlock;
  finding.message =
      moved ? format("a loop that does not end: warp {} has made {} trips", warp.index, most)
            : format("a loop that does not end: a trip of warp {} changes nothing", warp.index);
  give_up(machine, warp, at.op, std::move(finding));
}

void check_count(Machine& machine, Warp& warp, const LoopPlan& plan, const Instruction& at) {
  if (plan.left) return;
  const std::int64_t* upper = &warp.loop_upper[std::size_t{at.plan} * kLanes];
  std::uint64_t most = 0;
  for_each_lane(warp.mask, [&](std::uint32_t lane) {
    const std::int64_t begin = warp.var(plan.var, lane);
    if (begin >= upper[lane]) return;
    const auto distance =
        static_cast<std::uint64_t>(upper[lane]) - static_cast<std::uint64_t>(begin);
    most = std::max(most, (distance - 1) / static_cast<std::uint64_t>(plan.step) + 1);
  });
  const std::uint64_t inside = std::max<std::uint64_t>(plan.inside, 1);
  if (most == 0 || inside <= machine.steps_left / most) return;
  const std::string nested =
      inside == 1 ? "" : format(", in each of which loops make {} more", inside);
  give_up(
      machine, warp, at.op,
      too_many_steps(format("a loop of {} trips{}, after {} of at most {} steps of warps", most,
                            nested, machine.steps_max - machine.steps_left, machine.steps_max)));
}

void spend(Machine& machine, std::uint64_t steps) {
  // Not past a multiple at which progress is told and the end noticed.
  machine.steps_left -= std::min(steps, machine.steps_left % Machine::kStepsWatched);
}

void run_out_of_steps(Machine& machine, Warp& warp) {
  const ir::OpId op = machine.program.code[warp.pc].op;
  give_up(machine, warp, op.valid() ? ir::loop_around(machine.function, op) : op,
          too_many_steps(format("this has not ended after {} steps of warps", machine.steps_max)));
}

}  // namespace kiln::sim
