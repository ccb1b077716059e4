#include "sim/access.h"

#include <algorithm>
#include <bit>
#include <optional>

namespace kiln::sim {

namespace {

// The earlier access was by an asynchronous instruction rather than a thread.
bool is_asynchronous(const Machine& machine, const Conflict& conflict) {
  return conflict.kind == ConflictKind::kUnordered &&
         (machine.agents.is_slot(conflict.agent) || machine.agents.kind(conflict.agent) != 0);
}

// What is missing where other lanes of the two warps are ordered; "" where they are not.
std::string missing_lanes(const Warp& warp, const Conflict& conflict) {
  const auto waited = [&](const LaneView& view) {
    return view.clocks[conflict.agent] > conflict.clock;
  };
  if (std::any_of(warp.views.begin(), warp.views.end(), waited)) {
    return "other threads of that warp have waited for an event between them, this one has not";
  }
  const auto triggers = [&](const LaneClock& one) {
    return one.agent == conflict.agent && one.clock > conflict.clock;
  };
  const LaneClocks& known = warp.seen_of_lanes;
  if (std::none_of(known.begin(), known.end(), triggers)) return "";
  return "the trigger between them is by other threads of the warp, which speak for themselves "
         "alone";
}

// The block of the cluster whose thread was there before.
std::uint32_t block_of(const Machine& machine, const Conflict& conflict) {
  return conflict.agent / machine.agents.each();
}

std::string missing_edge(const Machine& machine, const Warp& warp, const Conflict& conflict) {
  if (is_asynchronous(machine, conflict)) {
    const Agents& agents = machine.agents;
    if (agents.is_slot(conflict.agent)) {
      const std::uint32_t slot = (conflict.agent - agents.slot(0, 0)) % agents.slots;
      return format("no wait for that generation of {} between them", slot_text(machine, slot));
    }
    constexpr std::string_view kWaits[] = {
        "",
        "no wait for the product (`mma.wait<0>`) with a barrier or a trigger behind it between "
        "them",
        "no wait for the bulk store with a barrier behind it between them",
        "no wait between them until the bulk store has written global memory: one for what it "
        "reads says nothing about that"};
    return std::string(kWaits[agents.kind(conflict.agent)]);
  }
  switch (conflict.kind) {
    case ConflictKind::kUninitialised: return "";
    case ConflictKind::kInFlight: return "the asynchronous copy has not been waited for";
    case ConflictKind::kOtherBlock: return "nothing orders the blocks of one launch";
    case ConflictKind::kUnordered: break;
  }
  if (std::string missing = missing_lanes(warp, conflict); !missing.empty()) return missing;
  if (conflict.agent == warp.agent) return "no group or block barrier between them";
  if (block_of(machine, conflict) == warp.block) return "no block barrier between them";
  return machine.program.cooperative ? "no barrier of the grid between them"
                                     : "no barrier of the cluster between them";
}

// What would order two accesses of one block to shared memory, when it may stand there.
std::string ordering_help(const Touch& touch, const Conflict& conflict, bool writes, bool atomic) {
  const auto& code = touch.machine.program.code;
  if (is_asynchronous(touch.machine, conflict)) return "";
  const bool fits = conflict.kind == ConflictKind::kUnordered &&
                    touch.buffer.space == ir::Space::kShared &&
                    block_of(touch.machine, conflict) == touch.warp.block &&
                    block_barrier_fits(touch.machine.function, code[conflict.instruction].op,
                                       code[touch.warp.pc].op);
  const bool one_is_atomic =
      atomic != conflict.other_atomic && (atomic ? conflict.other_wrote : writes);
  if (!fits) return one_is_atomic ? "make both atomic" : "";
  return format("put `sync.shared;` between them{}", one_is_atomic ? ", or make both atomic" : "");
}

// The block whose accesses carry the clock.
std::string block_text(const Machine& machine, Clock clock) {
  const auto& starts = machine.block_starts;
  const auto after = std::upper_bound(
      starts.begin(), starts.end(), clock,
      [](Clock value, const Machine::BlockStart& start) { return value < start.clock; });
  return after == starts.begin() ? "" : format(" of block {}", (after - 1)->block);
}

constexpr std::string_view kAtomic = "atomic update";

std::string_view earlier_name(const Conflict& conflict) {
  if (conflict.other_atomic) return kAtomic;
  return conflict.other_wrote ? "write" : "read";
}

// What a warp has started that none of its threads does, by the kind of agent (not 0).
std::string_view work_text(std::uint32_t kind, bool adds) {
  if (kind == 1) return "a product of ";
  return adds ? "a bulk addition of " : "a bulk store of ";
}

std::string other_text(const Machine& machine, const Conflict& conflict,
                       const std::string& element) {
  const Agents& agents = machine.agents;
  const bool adds = conflict.other_atomic;
  std::string out = format("{} of {} by ", earlier_name(conflict), element);
  if (is_asynchronous(machine, conflict)) return out + agent_text(machine, conflict.agent, adds);
  if (!agents.is_slot(conflict.agent) && agents.kind(conflict.agent) != 0) {
    out += format("{}warp {}", work_text(agents.kind(conflict.agent), adds),
                  conflict.agent % agents.warps);
  } else if (conflict.thread != Conflict::kSeveral) {
    out += thread_text(conflict.agent % agents.each(), conflict.thread % kLanes);
    if (agents.blocks > 1) {
      out += format(" of block {}", machine.block_numbers[block_of(machine, conflict)]);
    }
  } else {
    out += conflict.kind == ConflictKind::kOtherBlock
               ? "a thread"
               : format("several threads of {}", agent_text(machine, conflict.agent, adds));
  }
  if (conflict.kind == ConflictKind::kOtherBlock) out += block_text(machine, conflict.clock);
  return out;
}

void report_uninitialised(const Touch& touch, std::int64_t address, std::string_view access) {
  const Machine& machine = touch.machine;
  const std::uint32_t pc = touch.warp.pc;
  Report* report = machine.reporter.open(ReportKind::kUninitialised, machine.program.code[pc].op);
  if (report == nullptr) return;
  const std::string element = touch.buffer.element_text(address);
  report->message = format("`{}` is read before anything is written to it", element);
  report->accesses = {{machine.span(pc), format("{} of {} {}", access, element, touch.by())}};
}

// What accesses now, and what is missing when the program says better than the clocks.
struct Access {
  bool writes = false;
  bool atomic = false;
  std::string_view by = {};  // an asynchronous instruction: "a product"
  std::string_view missing = {};
  std::optional<std::uint32_t> instruction = {};  // that accesses, where it is not the current one

  [[nodiscard]] std::string_view name() const {
    if (atomic) return kAtomic;
    return writes ? "write" : "read";
  }
};

std::string actor_text(const Touch& touch, const Conflict& conflict, const Access& access) {
  const Warp& warp = touch.warp;
  const bool other_block =
      conflict.kind == ConflictKind::kOtherBlock || touch.machine.agents.blocks > 1;
  if (!access.by.empty()) {
    return format(
        "{} of warp {}{}", access.by, warp.index,
        other_block ? format(" of block {}", touch.machine.block_numbers[warp.block]) : "");
  }
  return other_block ? thread_of_block_text(touch.machine, warp, touch.lane)
                     : thread_text(warp.index, touch.lane);
}

void report_conflict(const Touch& touch, const Conflict& conflict, const Access& access) {
  const auto address = static_cast<std::int64_t>(conflict.address);
  if (conflict.kind == ConflictKind::kUninitialised) {
    report_uninitialised(touch, address, access.name());
    return;
  }
  const Machine& machine = touch.machine;
  const Warp& warp = touch.warp;
  const auto& code = machine.program.code;
  const std::uint32_t now = access.instruction.value_or(warp.pc);
  Report* report =
      machine.reporter.open(ReportKind::kRace, code[conflict.instruction].op, code[now].op);
  if (report == nullptr) return;
  const std::string element = touch.buffer.element_text(address);
  report->message = format("race on `{}`: {} {} after {} {} that nothing orders before it", element,
                           access.atomic ? "an" : "a", access.name(),
                           conflict.other_atomic ? "an" : "a", earlier_name(conflict));
  report->accesses = {{machine.span(conflict.instruction), other_text(machine, conflict, element)},
                      {machine.span(now), format("{} of {} by {}", access.name(), element,
                                                 actor_text(touch, conflict, access))}};
  report->missing =
      access.missing.empty() ? missing_edge(machine, warp, conflict) : std::string(access.missing);
  if (access.missing.empty())
    report->help = ordering_help(touch, conflict, access.writes, access.atomic);
}

const OwnStores* own_stores(const Warp& warp, std::uint32_t lane) {
  return ((warp.bulk_lanes >> lane) & 1U) == 0 ? nullptr : &warp.waited;
}

Actor actor_of(const Machine& machine, const Warp& warp, std::uint32_t lane) {
  const Knowledge known = knowledge_of(machine, warp, lane);
  return {.thread = static_cast<std::uint16_t>(warp.agent * kLanes + lane),
          .instruction = static_cast<std::uint16_t>(warp.pc),
          .agent = warp.agent,
          .clock = warp.now,
          .seen = known.seen,
          .own = own_stores(warp, lane),
          .lanes = known.lanes};
}

std::size_t local_place(const Touch& touch, std::int64_t address) {
  return static_cast<std::size_t>(std::int64_t{touch.lane} * touch.machine.program.local_bytes +
                                  address);
}

void note_local_read(const Touch& touch, std::int64_t address, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; ++i) {
    if (touch.warp.local_set[local_place(touch, address + i)]) continue;
    report_uninitialised(touch, address + i, "read");
    return;
  }
}

// Null where nothing is watched: without checks, in host code, in memory that cannot go wrong.
Shadow* shadow_of(const Touch& touch) {
  if (touch.machine.era == nullptr) return nullptr;
  // An alias was made before its buffer's shadow.
  const Buffer& whole = touch.buffer.memory == nullptr ? touch.buffer : *touch.buffer.memory;
  if (whole.space != ir::Space::kShared) {
    return whole.watched == Buffer::kUnwatched ? nullptr
                                               : touch.machine.global_shadows[whole.watched];
  }
  return touch.machine.shared_shadows.empty() ? nullptr
                                              : touch.machine.shared_shadows[touch.block()].get();
}

// The host part's, which everything else waits for.
Shadow* shadow_of_host(const Touch& touch) {
  if (touch.machine.era != nullptr || touch.buffer.space != ir::Space::kGlobal) return nullptr;
  return touch.buffer.memory == nullptr ? touch.buffer.of_host : touch.buffer.memory->of_host;
}

// Asynchronous instructions are no thread: also the warp's own writes must have been fenced.
constexpr std::uint16_t kNoThread = 0x7f00;

}  // namespace

std::string thread_text(std::uint32_t warp, std::uint32_t lane) {
  return format("thread {} (warp {})", warp * kLanes + lane, warp);
}

std::string thread_of_block_text(const Machine& machine, const Warp& warp, std::uint32_t lane) {
  if (machine.era == nullptr) return "the host";
  return format("{} of block {}", thread_text(warp.index, lane), machine.block_numbers[warp.block]);
}

std::string agent_text(const Machine& machine, std::uint32_t agent, bool adds) {
  const Agents& agents = machine.agents;
  if (agents.is_slot(agent)) return "a bulk copy, still on its way";
  const std::uint32_t block = agent / agents.each();
  const std::string warp =
      format("warp {}{}", agent % agents.warps,
             agents.blocks == 1 ? "" : format(" of block {}", machine.block_numbers[block]));
  const std::uint32_t kind = agents.kind(agent);
  return kind == 0 ? warp : format("{}{}, still in flight", work_text(kind, adds), warp);
}

std::string Touch::by() const { return "by " + thread_of_block_text(machine, warp, lane); }

std::byte* bytes_at(const Touch& touch, std::int64_t address) {
  switch (touch.buffer.space) {
    case ir::Space::kGlobal: return touch.buffer.data + address;
    case ir::Space::kShared: return touch.machine.shared[touch.block()].data() + address;
    case ir::Space::kLocal: return touch.warp.local.data() + local_place(touch, address);
  }
  return nullptr;
}

void note_read(const Touch& touch, std::int64_t address, std::int64_t bytes) {
  if (!touch.machine.checks) return;
  if (touch.buffer.space == ir::Space::kLocal) {
    note_local_read(touch, address, bytes);
    return;
  }
  if (const Shadow* host = shadow_of_host(touch)) {
    if (!host->has_content(static_cast<std::size_t>(address))) {
      report_uninitialised(touch, address, "read");
    }
    return;
  }
  Shadow* shadow = shadow_of(touch);
  if (shadow == nullptr) return;
  shadow->read(static_cast<std::size_t>(address), static_cast<std::size_t>(bytes),
               actor_of(touch.machine, touch.warp, touch.lane),
               [&](const Conflict& conflict) { report_conflict(touch, conflict, {}); });
}

namespace {

constexpr std::string_view kMayRead = "the copy may read until it has been waited for";

// A thread that writes what an asynchronous copy of its own may still read. Of other threads' writes
// the wait tells (note_late_read); to the shadow a thread comes after itself.
void check_own_copies(const Touch& touch, std::int64_t address, std::int64_t bytes,
                      const Access& access) {
  const Warp& warp = touch.warp;
  if (warp.groups.empty() || touch.buffer.space != ir::Space::kGlobal) return;
  const std::byte* from = bytes_at(touch, address);
  const std::byte* to = from + bytes;
  for (const AsyncGroup& group : warp.groups) {
    if (((group.lanes >> touch.lane) & 1U) == 0 || to <= group.from || group.to <= from) continue;
    for (const AsyncVector& vector : group.vectors) {
      if (vector.lane != touch.lane || to <= vector.source || vector.source + vector.valid <= from)
        continue;
      const std::int64_t first = address + std::max<std::int64_t>(vector.source - from, 0);
      report_conflict(touch,
                      {.address = static_cast<std::size_t>(first),
                       .thread = static_cast<std::uint16_t>(warp.agent * kLanes + touch.lane),
                       .agent = warp.agent,
                       .instruction = group.instruction,
                       .clock = warp.now},
                      access);
      return;
    }
  }
}

}  // namespace

void note_write(const Touch& touch, std::int64_t address, std::int64_t bytes, bool in_flight) {
  if (!touch.machine.checks) return;
  if (touch.buffer.space == ir::Space::kLocal) {
    for (std::int64_t i = 0; i < bytes; ++i) {
      touch.warp.local_set[local_place(touch, address + i)] = true;
    }
    return;
  }
  if (Shadow* host = shadow_of_host(touch)) {
    host->write_between(static_cast<std::size_t>(address), static_cast<std::size_t>(bytes));
    return;
  }
  Shadow* shadow = shadow_of(touch);
  if (shadow == nullptr) return;
  shadow->write(
      static_cast<std::size_t>(address), static_cast<std::size_t>(bytes),
      actor_of(touch.machine, touch.warp, touch.lane), in_flight,
      [&](const Conflict& conflict) { report_conflict(touch, conflict, {.writes = true}); });
  check_own_copies(touch, address, bytes, {.writes = true, .missing = kMayRead});
}

std::vector<KnownAtIssue> known_at_issue(const Touch& touch) {
  const Warp& warp = touch.warp;
  std::vector<KnownAtIssue> out;
  const bool is_watched = touch.machine.checks && touch.buffer.space == ir::Space::kGlobal &&
                          shadow_of(touch) != nullptr;
  if (!is_watched) return out;
  std::uint32_t rest = warp.mask;
  while (rest != 0) {
    const auto first = static_cast<std::uint32_t>(std::countr_zero(rest));
    const Knowledge known = knowledge_of(touch.machine, warp, first);
    std::uint32_t alike = 0;
    for_each_lane(rest, [&](std::uint32_t lane) {
      if (knowledge_of(touch.machine, warp, lane).seen == known.seen) alike |= 1U << lane;
    });
    out.push_back({alike,
                   {known.seen, known.seen + touch.machine.agents.count()},
                   known.lanes == nullptr ? LaneClocks() : *known.lanes});
    rest &= ~alike;
  }
  return out;
}

void note_late_read(const Touch& touch, const AsyncGroup& group, std::int64_t address,
                    std::int64_t bytes) {
  Shadow* shadow = shadow_of(touch);
  const auto known = std::ranges::find_if(
      group.known, [&](const KnownAtIssue& one) { return ((one.lanes >> touch.lane) & 1U) != 0; });
  if (shadow == nullptr || known == group.known.end()) return;
  Actor actor = actor_of(touch.machine, touch.warp, touch.lane);
  actor.instruction = group.instruction;
  actor.seen = known->seen.data();
  actor.lanes = &known->of_lanes;
  shadow->read(
      static_cast<std::size_t>(address), static_cast<std::size_t>(bytes), actor,
      [&](const Conflict& conflict) {
        report_conflict(
            touch, conflict,
            {.by = "an asynchronous copy", .missing = kMayRead, .instruction = group.instruction});
      });
}

void note_atomic(const Touch& touch, std::int64_t address, std::int64_t bytes) {
  Shadow* shadow = touch.machine.checks ? shadow_of(touch) : nullptr;
  if (shadow == nullptr) return;
  shadow->update(static_cast<std::size_t>(address), static_cast<std::size_t>(bytes),
                 actor_of(touch.machine, touch.warp, touch.lane), [&](const Conflict& conflict) {
                   report_conflict(touch, conflict, {.writes = true, .atomic = true});
                 });
  check_own_copies(touch, address, bytes, {.writes = true, .atomic = true, .missing = kMayRead});
}

namespace {

// What is missing where the warp has seen the access, but not through the other proxy's eyes.
std::string_view missing_fence(const Touch& touch, const Conflict& conflict) {
  const Warp& warp = touch.warp;
  const bool seen = conflict.kind == ConflictKind::kUnordered &&
                    (conflict.agent == warp.agent || warp.seen[conflict.agent] > conflict.clock);
  if (!seen || !conflict.other_wrote || is_asynchronous(touch.machine, conflict)) return "";
  return touch.buffer.space == ir::Space::kShared
             ? "no proxy fence between them: asynchronous instructions read shared memory past the "
               "threads' view of it"
             : "no proxy fence between them: bulk copies touch global memory past the threads' "
               "view "
               "of it";
}

}  // namespace

namespace {

// Tells the shadow of each range; `by` is what a report calls the actor.
void read_ranges(const Touch& touch, Shadow& shadow, const Actor& actor, std::string_view by,
                 Ranges ranges) {
  for (const ByteRange& range : ranges) {
    shadow.read(static_cast<std::size_t>(range.address), static_cast<std::size_t>(range.bytes),
                actor, [&](const Conflict& conflict) {
                  report_conflict(touch, conflict,
                                  {.by = by, .missing = missing_fence(touch, conflict)});
                });
  }
}

struct Writing {
  std::string_view by;
  bool adds = false;  // to what is there, as one access
};

void write_ranges(const Touch& touch, Shadow& shadow, const Actor& actor, const Writing& writing,
                  Ranges ranges) {
  const auto report = [&](const Conflict& conflict) {
    report_conflict(touch, conflict,
                    {.writes = true,
                     .atomic = writing.adds,
                     .by = writing.by,
                     .missing = missing_fence(touch, conflict)});
  };
  for (const ByteRange& range : ranges) {
    const auto at = static_cast<std::size_t>(range.address);
    const auto bytes = static_cast<std::size_t>(range.bytes);
    if (writing.adds) {
      shadow.update(at, bytes, actor, report);
    } else {
      shadow.write(at, bytes, actor, false, report);
    }
  }
}

// Of the bulk copy that completes the slot.
Clock clock_of(Machine& machine, Completes by) {
  return machine.era->block_start + static_cast<Clock>(machine.slot(by.block, by.slot).completed);
}

}  // namespace

void note_async_reads(const Touch& touch, Asynchronous by, Ranges ranges) {
  Shadow* shadow = shadow_of(touch);
  if (!touch.machine.checks || shadow == nullptr) return;
  const Warp& warp = touch.warp;
  const bool product = by == Asynchronous::kProduct;
  const Actor actor{
      .thread = kNoThread,
      .instruction = static_cast<std::uint16_t>(warp.pc),
      .agent = warp.agent + static_cast<std::uint32_t>(by) * touch.machine.agents.warps,
      .clock = product ? warp.group_clock : warp.bulk_clock,
      .seen = knowledge_of(touch.machine, warp, touch.lane).fenced};
  read_ranges(touch, *shadow, actor, product ? "a product" : "a bulk store", ranges);
}

void note_bulk_loads(const Touch& touch, Completes by, Ranges ranges) {
  Machine& machine = touch.machine;
  Shadow* shadow = shadow_of(touch);
  if (!machine.checks || shadow == nullptr) return;
  const Actor actor{.thread = kNoThread,
                    .instruction = static_cast<std::uint16_t>(touch.warp.pc),
                    .agent = machine.agents.slot(by.block, by.slot),
                    .clock = clock_of(machine, by),
                    .seen = knowledge_of(machine, touch.warp, touch.lane).fenced_global,
                    .own = own_stores(touch.warp, touch.lane)};
  read_ranges(touch, *shadow, actor, "a bulk copy", ranges);
}

void note_bulk_stores(const Touch& touch, Ranges ranges, bool adds) {
  const Machine& machine = touch.machine;
  Shadow* shadow = shadow_of(touch);
  if (!machine.checks || shadow == nullptr) return;
  const Warp& warp = touch.warp;
  const std::uint32_t agent = warp.agent + 3 * machine.agents.warps;
  const Knowledge known = knowledge_of(machine, warp, touch.lane);
  const Actor actor{.thread = static_cast<std::uint16_t>(agent * kLanes),
                    .instruction = static_cast<std::uint16_t>(warp.pc),
                    .agent = agent,
                    .clock = warp.bulk_clock,
                    .seen = known.fenced_global,
                    .seen_reads = known.seen,
                    .own = own_stores(warp, touch.lane),
                    .lanes = known.lanes,
                    .asynchronous = true};
  write_ranges(touch, *shadow, actor,
               {.by = adds ? "a bulk addition" : "a bulk store", .adds = adds}, ranges);
}

void note_bulk_writes(const Touch& touch, Completes by, Ranges ranges) {
  Machine& machine = touch.machine;
  if (!machine.checks || machine.shared_shadows.empty()) return;
  const Warp& warp = touch.warp;
  const std::uint32_t agent = machine.agents.slot(by.block, by.slot);
  const Knowledge known = knowledge_of(machine, warp, touch.lane);
  const Actor actor{.thread = static_cast<std::uint16_t>(agent * kLanes),
                    .instruction = static_cast<std::uint16_t>(warp.pc),
                    .agent = agent,
                    .clock = clock_of(machine, by),
                    .seen = known.fenced,
                    .seen_reads = known.seen,
                    .own = own_stores(warp, touch.lane),
                    .lanes = known.lanes,
                    .asynchronous = true};
  write_ranges(touch, *machine.shared_shadows[by.block], actor, {.by = "a bulk copy"}, ranges);
}

void report_at(Machine& machine, const Warp& warp, ReportKind kind, std::string message,
               std::string what) {
  Report* report = machine.reporter.open(kind, machine.program.code[warp.pc].op);
  if (report == nullptr) return;
  report->message = std::move(message);
  report->accesses = {{machine.span(warp.pc), std::move(what)}};
}

void report_out_of_bounds(const Touch& touch, const Outside& outside, bool writes) {
  const std::string element = touch.buffer.element_text(outside.at);
  const std::int64_t place = outside.at[outside.dim];
  report_at(touch.machine, touch.warp, ReportKind::kOutOfBounds,
            format("`{}` is outside: dimension {} is {}, which is {}", element, outside.dim, place,
                   place < 0 ? std::string("negative") : format("not below {}", outside.limit)),
            format("{} of {} {}", writes ? "write" : "read", element, touch.by()));
}

bool is_aligned(const View& view, const Window& window, std::int64_t width) {
  const Buffer& buffer = *view.buffer;
  std::int64_t first = 0;
  for (std::size_t d = 0; d < buffer.rank; ++d) first += window.origin[d] * buffer.strides[d];
  if ((first * buffer.size + buffer.offset) % width != 0) return false;
  for (std::size_t d = view.dropped; d + 1 < buffer.rank; ++d) {
    if (buffer.strides[d] * buffer.size % width != 0) return false;
  }
  return true;
}

bool check_aligned(const Touch& touch, std::int64_t address, std::int64_t bytes, bool writes) {
  if (address % bytes == 0) return true;
  const std::string element = touch.buffer.element_text(address);
  report_at(touch.machine, touch.warp, ReportKind::kMisaligned,
            format("an access of {} bytes at byte {} of `{}`, which is no multiple of {}", bytes,
                   address, touch.buffer.name, bytes),
            format("{} of {} bytes from {} on {}", writes ? "write" : "read", bytes, element,
                   touch.by()));
  return false;
}

namespace {

// The lanes of the warp that run an operation of these regions. Only asked where some do not.
std::uint32_t expected_lanes(const Machine& machine, const Warp& warp, ir::OpId op) {
  std::uint32_t lanes = warp.exists;
  for (const ir::Op& each : machine.function.ops) {
    const auto* region = std::get_if<ir::Inthreads>(&each.data);
    if (region == nullptr) continue;
    bool inside = false;
    ir::walk(machine.function, region->body, [&](ir::OpId id) { inside = inside || id == op; });
    if (!inside) continue;
    for_each_lane(warp.exists, [&](std::uint32_t lane) {
      const std::int64_t thread = std::int64_t{warp.index} * kLanes + lane;
      const bool is_in = thread >= region->first && thread < region->first + region->threads;
      if (!is_in) lanes &= ~(1U << lane);
    });
  }
  return lanes;
}

}  // namespace

void check_whole(Machine& machine, const Warp& warp) {
  if (warp.whole()) return;
  const ir::OpId op = machine.program.code[warp.pc].op;
  const std::uint32_t expected = expected_lanes(machine, warp, op);
  if (warp.mask == expected) return;
  const std::string_view what = ir::mnemonic(machine.function.ops[op].kind());
  report_at(machine, warp, ReportKind::kDivergence,
            format("`{}` needs all threads of warp {}, and {} of {} reach it together", what,
                   warp.index, __builtin_popcount(warp.mask), __builtin_popcount(expected)),
            format("{} in warp {}", what, warp.index));
}

Coordinates extents_of(const View& view, const Warp& warp, std::uint32_t lane) {
  Coordinates out = {};
  for (std::size_t d = 0; d < view.rank; ++d) {
    out[d] = view.shape[d].evaluate(warp.vars.data(), lane);
  }
  return out;
}

bool check_held(const Touch& touch, const Coordinates& root, std::int64_t bytes, bool writes) {
  const Buffer& buffer = touch.buffer;
  const std::int64_t address = buffer.address(root);
  if (buffer.holds(address, bytes)) return true;
  report_at(touch.machine, touch.warp, ReportKind::kOutOfBounds,
            format("`{}` is outside: with the strides of this view it is element {} of {}",
                   buffer.element_text(root), (address - buffer.memory->offset) / buffer.size,
                   buffer.memory->bytes / buffer.size),
            format("{} {}", writes ? "write" : "read", touch.by()));
  return false;
}

namespace {

// Whether the memory behind an alias has the elements, whatever its strides say.
bool holds_run(const Touch& touch, const Reach& reach, const Coordinates& at, std::int64_t count) {
  const Coordinates root = root_coordinates(reach.view, reach.window, at);
  return check_held(touch, root, count * touch.buffer.size, reach.writes);
}

}  // namespace

std::int64_t reachable(const Touch& touch, const Reach& reach, const Coordinates& at,
                       std::int64_t count) {
  const Buffer& buffer = touch.buffer;
  std::int64_t reached = count;
  for (std::size_t d = 0; d < buffer.rank; ++d) {
    const bool pinned = d < reach.view.dropped;
    const std::size_t dim = pinned ? 0 : d - reach.view.dropped;
    const std::int64_t index = pinned ? 0 : at[dim];
    const std::int64_t place = reach.window.origin[d] + index;
    if (place < 0 && !pinned && ((reach.before >> dim) & 1U) != 0) return 0;
    const std::int64_t own = pinned ? 1 : reach.own[dim];
    const bool global = buffer.space == ir::Space::kGlobal;
    const bool guarded = !pinned && ((reach.guarded >> dim) & 1U) != 0;
    const std::int64_t run = !pinned && dim + 1 == reach.view.rank ? count : 1;
    const std::int64_t inside = std::min(reach.window.limit[d] - place, own - index);
    if (place >= 0 && inside >= run) continue;
    // A shared or local view smaller than the other side is cut short without a guard.
    const bool hard = reach.window.limit[d] - place < std::min(run, own - index) || global;
    if (place < 0 || (hard && !guarded)) {
      Coordinates bad = root_coordinates(reach.view, reach.window, at);
      if (place >= 0) bad[d] += std::max<std::int64_t>(inside, 0);
      const std::int64_t limit = std::min(reach.window.limit[d], reach.window.origin[d] + own);
      report_out_of_bounds(touch, {bad, d, limit}, reach.writes);
      if (place < 0) return 0;
    }
    reached = run == 1 ? 0 : std::clamp<std::int64_t>(inside, 0, reached);
    if (reached == 0) return 0;
  }
  return buffer.memory == nullptr || holds_run(touch, reach, at, reached) ? reached : 0;
}

}  // namespace kiln::sim
