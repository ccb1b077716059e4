#include "sim/tracer.h"

#include <algorithm>
#include <optional>

namespace kiln::sim {

namespace {

// An entry of one of these kinds without traffic or arrivals is by a warp that has no part in it.
bool is_elected(TraceKind kind) {
  return kind == TraceKind::kBulkLoad || kind == TraceKind::kBulkStore;
}

}  // namespace

Tracer::Tracer(const Machine& machine, BlockTrace& out)
    : machine_(machine),
      out_(out),
      loaded_(machine.warps.size(), Loaded(machine.function)),
      passed_(machine.warps.size()),
      copies_(machine.warps.size()),
      last_barrier_(machine.warps.size(), TraceEntry::kNone) {
  out.block = machine.block_numbers[0];
  out.blocks = machine.agents.blocks;
  out.warps = machine.agents.warps;
  out.slots.resize(machine.agents.slots);
  for (const EventPlan& event : machine.program.events) {
    for (std::uint32_t s = 0; s < event.slots; ++s) {
      out.slots[event.first_slot + s] = {event.name, s, event.slots, event.ready};
    }
  }
}

namespace {

// What the rows of code.def say.
std::optional<TraceKind> trace_kind(Code code) {
  using enum TraceKind;
  constexpr auto kNone = std::nullopt;
  constexpr std::optional<TraceKind> kRows[] = {
#define KILN_CODE(Name, hands_on, trace, ...) trace,
#define KILN_JUMP(Name, ...) kNone,
#include "sim/code.def"
#undef KILN_CODE
#undef KILN_JUMP
  };
  return kRows[static_cast<std::size_t>(code)];
}

}  // namespace

// Whether the instruction has an entry.
bool Tracer::describe(const Warp& warp, const Instruction& at, TraceEntry& entry) const {
  const Program& program = machine_.program;
  const std::optional<TraceKind> kind = trace_kind(at.code);
  if (!kind) return false;
  entry.kind = *kind;
  if (at.code == Code::kMma) {
    entry.atom = &program.mmas[at.plan].executor->mma();
    entry.issues = static_cast<std::int64_t>(program.mmas[at.plan].steps.size());
  } else if (at.code == Code::kProduct) {
    entry.atom = &program.products[at.plan].executor->mma();
    entry.issues = program.products[at.plan].repeats;
    entry.group = warp.group;
  } else if (at.code == Code::kMmaWait) {
    entry.group = std::int64_t{warp.group} - program.waits[at.plan];
  } else if (at.code == Code::kCopy) {
    const bool async = program.copies[at.plan].grouped;
    if (async) entry.kind = TraceKind::kAsyncCopy;
    entry.group = copies_[warp.number];
  } else if (at.code == Code::kCopyWait) {
    entry.group = copies_[warp.number] - program.waits[at.plan];
  } else if (at.code == Code::kBulkCopy) {
    if (!program.bulk_copies[at.plan].loads) entry.kind = TraceKind::kBulkStore;
    entry.group = warp.bulk_groups;
  } else if (at.code == Code::kBulkWait) {
    entry.group = warp.bulk_groups - program.bulk_waits[at.plan].pending;
  }
  return true;
}

// What the instruction needs of earlier loads. A fragment is written when it is loaded; what waits is
// whatever reads it, or leaves the registers.
void Tracer::follow(const Instruction& at) {
  if (!at.op.valid()) return;  // the end of the program
  const ir::Op& op = machine_.function.ops[at.op];
  Loaded& loaded = loaded_[entry_.warp];
  loaded.execute(op);
  if (!tracing_ || (entry_.kind == TraceKind::kElement && loaded.stays_in_registers(op))) return;
  entry_.needs = loaded.needs();
  loaded.met();
  const bool reads = op.kind() == ir::OpKind::kRead || op.kind() == ir::OpKind::kAtomic;
  entry_.loads = reads || (entry_.kind == TraceKind::kLoad && op.kind() == ir::OpKind::kLoad);
}

void Tracer::begin(Warp& warp, const Instruction& at) {
  current_ = TraceEntry::kNone;
  if (out_.entries.size() >= kTraceEntriesMax) {
    out_.cut = true;
    tracing_ = false;
    return;
  }
  entry_ = {.op = at.op, .warp = warp.number};
  tracing_ = describe(warp, at, entry_);
  follow(at);
  meets_ =
      at.code == Code::kBarrier && machine_.program.barriers[at.plan].level != ir::Level::kGroup;
  if (!tracing_) return pass(warp.number, at.op);
  current_ = static_cast<std::uint32_t>(out_.entries.size());
  arrivals_before_ = out_.arrivals.size();
  before_ = machine_.tally.traffic();
}

// Loops repeat few operations many times.
void Tracer::pass(std::uint32_t warp, ir::OpId op) {
  if (!op.valid()) return;
  std::vector<TracePassed>& passed = passed_[warp];
  const auto same = std::ranges::find(passed, op, &TracePassed::op);
  if (same != passed.end()) {
    ++same->times;
  } else {
    passed.push_back({op, 1});
  }
}

void Tracer::hand_over_passed() {
  std::vector<TracePassed>& passed = passed_[entry_.warp];
  entry_.passed_begin = static_cast<std::uint32_t>(out_.passed.size());
  out_.passed.insert(out_.passed.end(), passed.begin(), passed.end());
  entry_.passed_end = static_cast<std::uint32_t>(out_.passed.size());
  passed.clear();
}

void Tracer::end(bool happened) {
  if (!tracing_) return;
  tracing_ = false;
  current_ = TraceEntry::kNone;
  if (!happened) return;
  const Traffic now = machine_.tally.traffic();
  const std::int64_t weight = machine_.tally.weight();
  entry_.bytes_read = (now.bytes_read - before_.bytes_read) / weight;
  entry_.bytes_written = (now.bytes_written - before_.bytes_written) / weight;
  entry_.wavefronts = (now.wavefronts - before_.wavefronts) / weight;
  entry_.requests = (now.requests - before_.requests) / weight;
  entry_.sectors = (now.sectors - before_.sectors) / weight;
  entry_.lines = (now.lines - before_.lines) / weight;
  if (is_elected(entry_.kind) && entry_.requests == 0) return;
  if (entry_.kind == TraceKind::kTrigger && out_.arrivals.size() == arrivals_before_) return;
  if (entry_.kind == TraceKind::kAsyncCopy) ++copies_[entry_.warp];
  if (meets_) {
    last_barrier_[entry_.warp] = static_cast<std::uint32_t>(out_.entries.size());
  }
  const auto number = static_cast<std::uint32_t>(out_.entries.size());
  const ir::Op& op = machine_.function.ops[entry_.op];
  if (entry_.loads) loaded_[entry_.warp].comes_from(op, number, entry_.bytes_read > 0);
  hand_over_passed();
  out_.entries.push_back(entry_);
}

void Tracer::waits(std::uint32_t slot, std::int64_t phase) {
  entry_.slot = slot;
  entry_.phase = phase;
}

void Tracer::arrives(std::uint32_t block, std::uint32_t slot, std::int64_t phase) {
  entry_.slot = slot;
  entry_.phase = phase;
  lands(current_, block, slot, phase);
}

void Tracer::starts_load(std::uint32_t slot) { entry_.slot = slot; }

void Tracer::lands(std::uint32_t entry, std::uint32_t block, std::uint32_t slot,
                   std::int64_t phase) {
  if (entry == TraceEntry::kNone) return;
  out_.arrivals.push_back({entry, block, slot, phase});
  // A load's phase is known only now.
  if (entry < out_.entries.size() && out_.entries[entry].kind == TraceKind::kBulkLoad) {
    out_.entries[entry].phase = phase;
  }
}

void Tracer::meet(std::span<const std::uint32_t> warps) {
  if (out_.cut) return;
  for (const std::uint32_t warp : warps) {
    if (last_barrier_[warp] == TraceEntry::kNone) continue;
    out_.entries[last_barrier_[warp]].meeting = meetings_;
    last_barrier_[warp] = TraceEntry::kNone;
  }
  ++meetings_;
}

}  // namespace kiln::sim
