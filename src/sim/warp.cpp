// One warp's interpreter: fetches instructions and keeps the masks of divergent control flow.
#include <utility>

#include "sim/access.h"
#include "sim/counting.h"
#include "sim/tracer.h"

namespace kiln::sim {

namespace {

// Whether there is a step left.
bool look_up(Machine& machine, Warp& warp) {
  if (machine.steps_left == 0) {
    run_out_of_steps(machine, warp);
    return false;
  }
  if (machine.watch) machine.watch(machine.steps_left);
  return true;
}

void enter(Warp& warp, const EnterPlan& plan) {
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    const std::uint32_t thread = (warp.index * kLanes + lane) % plan.enclosing;
    std::int64_t instance = thread / plan.unit;
    for (auto axis = plan.axes.rbegin(); axis != plan.axes.rend(); ++axis) {
      const std::int64_t extent = axis->extent.evaluate(warp.vars.data(), lane);
      const bool outermost = axis + 1 == plan.axes.rend();
      warp.var(axis->var, lane) = outermost || extent == 0 ? instance : instance % extent;
      if (extent != 0) instance /= extent;
    }
  }
}

// Keeps the lanes whose variable is below the upper bound; false when none is left.
bool keep_looping(Warp& warp, const LoopPlan& plan, std::uint32_t number) {
  const std::int64_t* upper = &warp.loop_upper[std::size_t{number} * kLanes];
  std::uint32_t stay = 0;
  for_each_lane(warp.mask, [&](std::uint32_t lane) {
    if (warp.var(plan.var, lane) < upper[lane]) stay |= 1U << lane;
  });
  warp.mask = stay;
  return stay != 0;
}

void leave_frame(Warp& warp) {
  warp.mask = warp.frames.back().around;
  warp.frames.pop_back();
}

// The instruction's target when it jumps, else the next one.
std::uint32_t loop(Machine& machine, Warp& warp, const LoopPlan& plan, const Instruction& at) {
  warp.frames.push_back({warp.mask, 0});
  std::int64_t* upper = &warp.loop_upper[std::size_t{at.plan} * kLanes];
  for_each_lane(warp.mask, [&](std::uint32_t lane) {
    upper[lane] = plan.upper.evaluate(warp.vars.data(), lane);
    warp.var(plan.var, lane) = plan.lower.evaluate(warp.vars.data(), lane);
  });
  check_count(machine, warp, plan, at);
  if (keep_looping(warp, plan, at.plan)) return warp.pc + 1;
  leave_frame(warp);
  return at.target;
}

std::uint32_t next(Warp& warp, const LoopPlan& plan, const Instruction& at) {
  warp.mask |= std::exchange(warp.frames.back().otherwise, 0);
  for_each_lane(warp.mask, [&](std::uint32_t lane) { warp.var(plan.var, lane) += plan.step; });
  if (keep_looping(warp, plan, at.plan)) return at.target;
  leave_frame(warp);
  return warp.pc + 1;
}

std::uint32_t repeat(Machine& machine, Warp& warp, const Instruction& at) {
  warp.mask |= std::exchange(warp.frames.back().otherwise, 0);
  if (warp.mask != 0) {
    check_trip(machine, warp, at);
    return at.target;
  }
  end_trips(warp);
  leave_frame(warp);
  return warp.pc + 1;
}

// Takes the lanes that are here out of what stands around, up to the loop or the kernel.
std::uint32_t leave(Warp& warp, const LeavePlan& plan, const Instruction& at) {
  const std::size_t depth = warp.frames.size();
  const std::size_t frames = plan.how == Leave::kYield ? depth : plan.frames;
  for (std::size_t i = depth - frames; i < depth; ++i) {
    warp.frames[i].around &= ~warp.mask;
    warp.frames[i].otherwise &= ~warp.mask;
  }
  if (plan.how == Leave::kContinue) warp.frames[depth - frames - 1].otherwise |= warp.mask;
  warp.mask = 0;
  return at.target;
}

std::uint32_t branch(Warp& warp, const Instruction& at) {
  std::uint32_t taken = 0;
  for_each_lane(warp.mask, [&](std::uint32_t lane) {
    if (warp.value(at.plan, lane).i != 0) taken |= 1U << lane;
  });
  warp.frames.push_back({warp.mask, warp.mask & ~taken});
  warp.mask = taken;
  return taken != 0 ? warp.pc + 1 : at.target;
}

std::uint32_t inside(Warp& warp, const PlacePlan& plan, const Instruction& at) {
  const bool whole = plan.places.empty() && warp.mask == warp.exists;
  std::uint32_t here = 0;
  for_each_lane(warp.mask, [&](std::uint32_t lane) {
    const bool within =
        plan.places.empty()
            ? warp.var(plan.row, lane) < plan.edge.row && warp.var(plan.col, lane) < plan.edge.col
            : plan.places[(warp.index * kLanes + lane) % plan.lanes].row >= 0;
    if (within) here |= 1U << lane;
  });
  warp.frames.push_back({warp.mask, 0});
  warp.mask = here;
  if (whole) warp.holders = here;
  if (here != 0) return warp.pc + 1;
  // A warp that has no element of a tile has no first value to give.
  for (const std::uint32_t fragment : plan.gives) {
    if (whole) warp.fragment_set[fragment] = true;
  }
  return at.target;
}

std::uint32_t otherwise(Warp& warp, const Instruction& at) {
  warp.mask = warp.frames.back().otherwise;
  return warp.mask != 0 ? warp.pc + 1 : at.target;
}

std::uint32_t once(Warp& warp, const OncePlan& plan, const Instruction& at) {
  warp.frames.push_back({warp.mask, 0});
  std::uint32_t elected = 0;
  for_each_lane(warp.mask, [&](std::uint32_t lane) {
    if ((warp.index * kLanes + lane) % plan.unit == plan.first) elected |= 1U << lane;
  });
  warp.mask = elected;
  return elected != 0 ? warp.pc + 1 : at.target;
}

// Keeps the lanes of the region's threads.
std::uint32_t inthreads(Warp& warp, const Participants& who, const Instruction& at) {
  warp.frames.push_back({warp.mask, 0});
  std::uint32_t inside = 0;
  for_each_lane(warp.mask, [&](std::uint32_t lane) {
    if (warp.index * kLanes + lane - who.first < who.threads) inside |= 1U << lane;
  });
  warp.mask = inside;
  return inside != 0 ? warp.pc + 1 : at.target;
}

// clang-format does not know what a case label in a macro is.
// clang-format off

// Control flow: the next program counter.
std::uint32_t jump(Machine& machine, Warp& warp, const Instruction& at) {
  const Program& program = machine.program;
  switch (at.code) {
#define KILN_CODE(Name, ...) case Code::k##Name: break;
#define KILN_JUMP(Name, handler) case Code::k##Name: return handler;
#include "sim/code.def"
#undef KILN_CODE
#undef KILN_JUMP
  }
  KILN_UNREACHABLE("instruction {} is no jump", warp.pc);
}

// clang-format on

// kAgain: the warp waits, and comes back to the instruction. kSaid: in a row alone.
enum class After : std::uint8_t { kNext, kTouchedMemory, kStop, kJump, kAgain, kSaid };

After reach_barrier(Machine& machine, Warp& warp, const BarrierPlan& plan) {
  check_whole(machine, warp);
  share_waits(machine, warp);
  if (plan.level == ir::Level::kGroup) {
    machine.tally.issue(Issue::kBarrierGroup);
    bring_together(machine, warp);
    return After::kTouchedMemory;
  }
  machine.tally.issue(plan.level == ir::Level::kBlock ? Issue::kBarrierBlock
                                                      : Issue::kBarrierGroup4);
  warp.state = WarpState::kWaiting;
  warp.waits = Waiting::kBarrier;
  warp.barrier = plan;
  return After::kStop;
}

// Whether the warp has got its registers; else it waits, and comes back to the instruction.
bool set_registers(Machine& machine, Warp& warp, const RegistersPlan& plan) {
  check_whole(machine, warp);
  const std::int64_t more = (plan.count - warp.register_count) * kLanes;
  std::int64_t& free = machine.free_registers[warp.block];
  if (plan.increases && more > free) {
    warp.state = WarpState::kWaiting;
    warp.waits = Waiting::kRegisters;
    return false;
  }
  free -= more;
  warp.register_count = plan.count;
  for (Warp& other : machine.warps) {
    const bool waits = other.state == WarpState::kWaiting && other.waits == Waiting::kRegisters;
    if (waits && other.block == warp.block && more < 0) other.state = WarpState::kReady;
  }
  return true;
}

// What a handler says itself, else what its row does.
template <After kRow, class Handler>
After carry_out(Handler&& handler) {
  if constexpr (kRow == After::kSaid) {
    return handler();
  } else {
    (void)handler();
    return kRow;
  }
}

// clang-format off
After execute(Machine& machine, Warp& warp, const Instruction& at) {
  const Program& program = machine.program;
  switch (at.code) {
#define KILN_CODE(Name, hands_on, trace, then, handler) \
    case Code::k##Name: return carry_out<After::then>([&] { return handler; });
#define KILN_JUMP(Name, ...) case Code::k##Name: return After::kJump;
#include "sim/code.def"
#undef KILN_CODE
#undef KILN_JUMP
  }
  return After::kNext;
}
// clang-format on

// Executes the instruction, unless it is enough to count it.
After step(Machine& machine, Warp& warp, const Instruction& at) {
  if (machine.counting == nullptr) return execute(machine, warp, at);
  if (machine.counting->count(machine, warp, at)) return After::kNext;
  const After after = execute(machine, warp, at);
  machine.counting->learn(machine);
  return after;
}

}  // namespace

void run_warp(Machine& machine, Warp& warp) {
  machine.running = &warp;
  bool stops = false;
  while (!stops) {
    const Instruction& at = machine.program.code[warp.pc];
    if (machine.steps_left % Machine::kStepsWatched == 0 && !look_up(machine, warp)) break;
    --machine.steps_left;
    machine.changes += at.hands_on ? 1 : 0;
    if (machine.tracer != nullptr) machine.tracer->begin(warp, at);
    if (at.code != Code::kStop) machine.tally.execute();  // it is no operation's
    const After after = step(machine, warp, at);
    if (machine.tracer != nullptr) machine.tracer->end(after != After::kAgain);
    if (after == After::kJump) {
      warp.pc = jump(machine, warp, at);
      stops = machine.gave_up;  // nothing else than a jump gives up
      continue;
    }
    if (after == After::kAgain) return;
    ++warp.pc;
    stops = after == After::kStop || (after == After::kTouchedMemory && machine.random);
  }
  machine.running = nullptr;
}

}  // namespace kiln::sim
