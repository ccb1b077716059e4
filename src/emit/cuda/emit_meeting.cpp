// Events, regions of threads and clusters.
#include <algorithm>

#include "emit/cuda/emit_op.h"
#include "target/arch.h"

namespace kiln::emit {

using ir::Expr;
using ir::Op;
using ir::ValueId;

namespace {

constexpr std::int64_t kSlotsOfWord = 32;

std::int64_t slots_of(const ir::Function& function, ValueId event) {
  const auto* type = std::get_if<ir::EventType>(&function.type(event));
  KILN_CHECK(type != nullptr, "`{}` is no event", function.values[event].name);
  return type->slots;
}

const ir::Event& event_of(const ir::Function& function, ValueId event) {
  const auto* made = function.def_as<ir::Event>(event);
  KILN_CHECK(made != nullptr, "`{}` is no event", function.values[event].name);
  return *made;
}

// Whether blocks signal it to each other.
bool crosses_blocks(const ir::Function& function, ValueId event) {
  return std::ranges::any_of(function.ops, [&](const Op& op) {
    const auto* trigger = std::get_if<ir::Trigger>(&op.data);
    return trigger != nullptr && trigger->event == event && trigger->cluster;
  });
}

// In the order of the program, which its text has too.
std::vector<ValueId> live_events(const Kernel& kernel) {
  std::vector<ValueId> events;
  const auto& launch = std::get<ir::Parallel>(kernel.function.ops[kernel.plan.op].data);
  ir::walk(kernel.function, launch.body, [&](ir::OpId id) {
    const Op& op = kernel.function.ops[id];
    const bool live = kernel.uses.live_ops[id.index];
    if (live && op.kind() == ir::OpKind::kEvent) events.push_back(op.result);
  });
  return events;
}

// Of an event of the grid: how many arrivals a generation of a slot has.
std::string arrivals_text(const ir::Event& event) {
  const std::string arrivals = format("{}u", event.arrivals);
  if (event.stated != 0) return arrivals;
  const std::string blocks = "gridDim.x * gridDim.y * gridDim.z";
  return event.arrivals == 1 ? blocks : format("{} * {}", arrivals, blocks);
}

// The events of the grid: how often threads have arrived, and what each thread has waited for.
std::vector<std::string> grid_opening(Kernel& kernel, const std::vector<ValueId>& events) {
  std::vector<std::string> lines;
  for (const ValueId event : events) {
    if (!event_of(kernel.function, event).grid) continue;
    const std::string& name = kernel.name(event);
    const std::string& phase = kernel.phase_names[event.index];
    const std::int64_t slots = slots_of(kernel.function, event);
    lines.push_back(format("static __device__ unsigned {}[{}];", name, slots));
    if (!phase.empty()) lines.push_back(format("unsigned {}[{}] = {{}};", phase, slots));
    lines.push_back(format("kiln::grid_events_clear<{}>({});", slots, name));
  }
  if (lines.empty()) return lines;
  kernel.requirements.headers.insert("grid.cuh");
  lines.emplace_back("kiln::barrier_grid();");
  return lines;
}

// The parity of the first phase that is waited for. Generation 0 of an event that starts ready is
// the one before phase 0: its parity is 1, and no waiting comes of it.
std::string phase_line(const Kernel& kernel, ValueId event) {
  const std::string& name = kernel.phase_names[event.index];
  const char* first = event_of(kernel.function, event).ready ? "~0u" : "0u";
  const std::int64_t slots = slots_of(kernel.function, event);
  if (slots <= kSlotsOfWord) return format("unsigned {} = {};", name, first);
  const auto words = static_cast<std::size_t>((slots + kSlotsOfWord - 1) / kSlotsOfWord);
  return format("unsigned {}[{}] = {{{}}};", name, words,
                join(std::vector<const char*>(words, first), ", ",
                     [](const char* text) { return std::string(text); }));
}

}  // namespace

std::vector<std::string> meeting_opening(Kernel& kernel) {
  std::vector<std::string> lines;
  std::vector<std::string> makes;
  if (kernel.needs_rank) {
    kernel.requirements.headers.insert("cluster.cuh");
    lines.push_back(format("const int {} = kiln::cluster_rank();", kernel.name(kernel.rank)));
  }
  for (const ParamSlot& slot : kernel.plan.slots) {
    if (slot.kind == SlotKind::kMap) makes.push_back(format("kiln::prefetch_map({});", slot.name));
  }
  std::vector<ValueId> events = live_events(kernel);
  const std::vector<std::string> of_grid = grid_opening(kernel, events);
  lines.insert(lines.end(), of_grid.begin(), of_grid.end());
  std::erase_if(events, [&](ValueId event) { return event_of(kernel.function, event).grid; });
  for (const ValueId event : events) {
    const ir::Event& made = event_of(kernel.function, event);
    const std::string& name = kernel.name(event);
    lines.push_back(
        format("kiln::mbarrier* const {} = kiln::events(smem + {});", name, made.offset));
    if (!kernel.phase_names[event.index].empty()) lines.push_back(phase_line(kernel, event));
    makes.push_back(format("kiln::mbarrier_init<{}>({}, {});", slots_of(kernel.function, event),
                           name, made.arrivals));
  }
  if (!events.empty()) makes.emplace_back("kiln::mbarrier_init_fence();");
  if (makes.empty()) return lines;
  lines.emplace_back("if (threadIdx.x == 0) {");
  for (const std::string& make : makes) lines.push_back("  " + make);
  lines.emplace_back("}");
  if (events.empty()) return lines;
  kernel.requirements.headers.insert("mbarrier.cuh");
  const bool cluster = kernel.plan.cluster_blocks() > 1;
  kernel.requirements.headers.insert(cluster ? "cluster.cuh" : "barrier.cuh");
  lines.emplace_back(cluster ? "kiln::barrier_cluster();" : "kiln::barrier_block();");
  return lines;
}

// A block that has left has no shared memory for the others to signal, or to read.
std::vector<std::string> meeting_closing(Kernel& kernel) {
  const bool reached = !live_events(kernel).empty() || kernel.reads_other_blocks();
  if (kernel.plan.cluster_blocks() == 1 || !reached) return {};
  kernel.requirements.headers.insert("cluster.cuh");
  return {"kiln::barrier_cluster();"};
}

namespace {

bool is_whole_warps(std::int64_t threads) {
  return threads > 0 && threads % target::kWarpLanes == 0;
}

// One lane of the first warp of each unit, or of the region's or block's first warp; "" when these
// are not made of whole warps.
std::string elected_lane(Kernel& kernel, std::int64_t unit, std::int64_t first) {
  const std::int64_t block = kernel.plan.threads.constant().value_or(1);
  const std::int64_t all = kernel.region != nullptr ? kernel.region->threads : block;
  if (!is_whole_warps(block) || !is_whole_warps(all) || first % target::kWarpLanes != 0) return "";
  if (unit != 0 && !is_whole_warps(unit)) return "";
  kernel.requirements.headers.insert("warp.cuh");
  if (unit == target::kWarpLanes || all == target::kWarpLanes) return "kiln::elect()";
  const Expr warp =
      unit == 0 ? kernel.use_warp() : mod(kernel.use_warp(), Expr(unit / target::kWarpLanes));
  return format("{} == {} && kiln::elect()", bracketed(kernel.spelled(warp), Binding::kEquality),
                first / target::kWarpLanes);
}

}  // namespace

std::string elected(Kernel& kernel, std::int64_t unit) {
  const bool alone = kernel.region != nullptr && kernel.region->single;
  if (unit == 1 || alone || kernel.elected_here) return "";
  const std::int64_t first = unit == 0 && kernel.region != nullptr ? kernel.region->first : 0;
  if (std::string lane = elected_lane(kernel, unit, first); !lane.empty()) return lane;
  return format("{} == {}", bracketed(kernel.spelled(kernel.thread_in(unit)), Binding::kEquality),
                first);
}

std::string election(Kernel& kernel, const Op& op) {
  const auto* copy = std::get_if<ir::Copy>(&op.data);
  if (copy != nullptr && copy->way == ir::CopyWay::kBulk) return elected(kernel, copy->unit);
  const auto* trigger = std::get_if<ir::Trigger>(&op.data);
  const bool one = trigger != nullptr && trigger->arrival == ir::Arrival::kElected;
  return one ? elected(kernel, trigger->unit) : "";
}

void emit_op(Kernel&, const Op&, const ir::Event&) {}  // made at the kernel's start

namespace {

std::string slot_text(Kernel& kernel, ValueId event, const Expr& slot) {
  if (slot.is(0)) return kernel.name(event);
  return format("{} + {}", kernel.name(event), bracketed(kernel.spelled(slot), Binding::kSum));
}

// The call that arrives, without its event.
std::string arrival_text(const Kernel& kernel, const ir::Trigger& trigger) {
  const bool warp = trigger.arrival == ir::Arrival::kWarp;
  const char* suffix = warp ? "_warp" : "";
  if (event_of(kernel.function, trigger.event).grid) {
    return format("kiln::grid_event_arrive{}", suffix);
  }
  if (!trigger.cluster) return format("kiln::mbarrier_arrive{}", suffix);
  return format("kiln::mbarrier_arrive_cluster{}<{}>", suffix, kernel.plan.cluster_blocks());
}

// What each arriving thread does.
std::vector<std::string> trigger_lines(Kernel& kernel, const ir::Trigger& trigger) {
  const std::string event = slot_text(kernel, trigger.event, trigger.slot);
  if (trigger.tracks) {
    return {format("kiln::mbarrier_track_copies({});", event),
            format("{}({});", arrival_text(kernel, trigger), event)};
  }
  if (trigger.bytes == 0) return {format("{}({});", arrival_text(kernel, trigger), event)};
  if (!trigger.cluster) {
    return {format("kiln::mbarrier_arrive_expect({}, {});", event, trigger.bytes)};
  }
  return {format("kiln::mbarrier_expect({}, {});", event, trigger.bytes),
          format("{}({});", arrival_text(kernel, trigger), event)};
}

}  // namespace

void emit_op(Kernel& kernel, const Op&, const ir::Trigger& trigger) {
  const bool grid = event_of(kernel.function, trigger.event).grid;
  kernel.requirements.headers.insert(grid ? "grid.cuh" : "mbarrier.cuh");
  KILN_CHECK(trigger.bytes == 0 || trigger.arrival == ir::Arrival::kElected,
             "{} bytes announced by more than one thread", trigger.bytes);
  const bool one = trigger.arrival == ir::Arrival::kElected;
  const std::string condition = one ? elected(kernel, trigger.unit) : "";
  const std::vector<std::string> lines = trigger_lines(kernel, trigger);
  if (condition.empty()) {
    for (const std::string& line : lines) kernel.out.line(line);
  } else if (lines.size() == 1) {
    kernel.out.line(format("if ({}) {}", condition, lines[0]));
  } else {
    kernel.out.open(format("if ({}) {{", condition));
    for (const std::string& line : lines) kernel.out.line(line);
    kernel.out.close();
  }
}

// count-copies has made counts of futures and their names.
void emit_op(Kernel&, const Op&, const ir::Future&) { KILN_UNREACHABLE("not emitted"); }
void emit_op(Kernel&, const Op&, const ir::FutureWait&) { KILN_UNREACHABLE("not emitted"); }
void emit_op(Kernel&, const Op&, const ir::Exchange&) { KILN_UNREACHABLE("not emitted"); }

namespace {

// Waits until so many have arrived since the launch began.
void emit_grid_wait(Kernel& kernel, const ir::EventWait& wait) {
  kernel.requirements.headers.insert("grid.cuh");
  const ir::Event& event = event_of(kernel.function, wait.event);
  std::string generations;
  if (wait.tracked) {
    const std::string next =
        format("{}[{}]", kernel.phase_names[wait.event.index], kernel.text(wait.slot));
    generations = event.ready ? next + "++" : "++" + next;
  } else {
    const Expr complete = event.ready ? wait.generation : wait.generation + Expr(1);
    generations = format("static_cast<unsigned>({})", kernel.text(complete));
  }
  kernel.out.line(format("kiln::grid_event_wait({}, {} * {});",
                         slot_text(kernel, wait.event, wait.slot), generations,
                         arrivals_text(event)));
}

}  // namespace

void emit_op(Kernel& kernel, const Op&, const ir::EventWait& wait) {
  if (event_of(kernel.function, wait.event).grid) return emit_grid_wait(kernel, wait);
  kernel.requirements.headers.insert("mbarrier.cuh");
  // An event that begins as ready says that there is room.
  const bool ready = event_of(kernel.function, wait.event).ready;
  const bool cluster = crosses_blocks(kernel.function, wait.event);
  const std::string_view how =
      ready ? (cluster ? "<true, true>" : "<false, true>") : (cluster ? "<true>" : "");
  if (wait.tracked) {
    kernel.out.line(format("kiln::mbarrier_wait_next{}({}, {}, {});", how, kernel.name(wait.event),
                           kernel.text(wait.slot), kernel.phase_names[wait.event.index]));
    return;
  }
  const Expr phase = ready ? wait.generation + Expr(1) : wait.generation;
  kernel.out.line(format("kiln::mbarrier_wait{}({}, {} & 1);", how,
                         slot_text(kernel, wait.event, wait.slot),
                         bracketed(kernel.spelled(phase), Binding::kProduct)));
}

namespace {

bool is_whole_warps(const ir::Inthreads& region) {
  return region.first % target::kWarpLanes == 0 && is_whole_warps(region.threads);
}

// The condition of one of the siblings, behind those that `before` threads run; "" when all threads
// that remain run it. Of a region that one thread runs, whole warps come, and emit_body elects one.
std::string region_condition(Kernel& kernel, const ir::Inthreads& region, std::int64_t before) {
  std::int64_t end = region.first + region.threads;
  std::int64_t all = kernel.plan.threads.constant().value_or(end + 1);
  if (!region.single && before + region.threads == all) return "";
  if (is_whole_warps(region)) {
    const std::string warp = kernel.text(kernel.use_warp());
    const std::int64_t first = region.first / target::kWarpLanes;
    end /= target::kWarpLanes;
    if (region.single || end == first + 1) return format("{} == {}", warp, first);
    if (first == 0) return format("{} < {}", warp, end);
    if (end * target::kWarpLanes == all) return format("{} >= {}", warp, first);
    return format("{} >= {} && {} < {}", warp, first, warp, end);
  }
  const std::string thread = kernel.text(kernel.use_thread());
  if (region.single || region.threads == 1) return format("{} == {}", thread, region.first);
  if (region.first == 0) return format("{} < {}", thread, end);
  if (end == all) return format("{} >= {}", thread, region.first);
  return format("{} >= {} && {} < {}", thread, region.first, thread, end);
}

// How many of the first regions have no thread in common: those are chained.
std::size_t apart(std::span<const Op* const> regions) {
  std::size_t count = 1;
  for (; count < regions.size(); ++count) {
    const auto& next = std::get<ir::Inthreads>(regions[count]->data);
    const bool meets = std::ranges::any_of(regions.first(count), [&](const Op* op) {
      const auto& one = std::get<ir::Inthreads>(op->data);
      return one.first < next.first + next.threads && next.first < one.first + one.threads;
    });
    if (meets) break;
  }
  return count;
}

void emit_body(Kernel& kernel, const ir::Inthreads& region) {
  const ir::Inthreads* outer = kernel.region;
  const bool elects = region.single && is_whole_warps(region);
  if (elects) kernel.out.open("if (kiln::elect()) {");
  kernel.region = &region;
  emit_region(kernel, region.body);
  kernel.region = outer;
  if (elects) kernel.out.close();
}

void emit_chain(Kernel& kernel, std::span<const Op* const> regions) {
  std::int64_t before = 0;
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const auto& region = std::get<ir::Inthreads>(regions[i]->data);
    const std::string condition = region_condition(kernel, region, before);
    if (regions[i]->span.valid()) kernel.out.at(kernel.sources.place(regions[i]->span));
    const std::string test = condition.empty() ? "" : format("if ({}) ", condition);
    if (i == 0) {
      kernel.out.open(test + "{");
    } else {
      kernel.out.between(format("}} else {}{{", test));
    }
    emit_body(kernel, region);
    before += region.single ? 1 : region.threads;
  }
  kernel.out.close();
}

}  // namespace

void emit_inthreads(Kernel& kernel, std::span<const Op* const> siblings) {
  while (!siblings.empty()) {
    const std::size_t count = apart(siblings);
    emit_chain(kernel, siblings.first(count));
    siblings = siblings.subspan(count);
  }
}

void emit_op(Kernel& kernel, const Op& op, const ir::Inthreads&) {
  const Op* alone = &op;
  emit_inthreads(kernel, {&alone, 1});
}

void emit_op(Kernel& kernel, const Op&, const ir::Registers& registers) {
  kernel.requirements.headers.insert("registers.cuh");
  kernel.out.line(
      format("kiln::{}_registers<{}>();", registers.increases ? "more" : "fewer", registers.count));
}

}  // namespace kiln::emit
