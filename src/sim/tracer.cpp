#include "sim/tracer.h"

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

// Whether the instruction has an entry.
bool Tracer::describe(const Warp& warp, const Instruction& at, TraceEntry& entry) const {
  const Program& program = machine_.program;
  switch (at.code) {
    case Code::kMma:
      entry.kind = TraceKind::kMma;
      entry.atom = &program.mmas[at.plan].executor->mma();
      entry.issues = static_cast<std::int64_t>(program.mmas[at.plan].steps.size());
      return true;
    case Code::kProduct:
      entry.kind = TraceKind::kProduct;
      entry.atom = &program.products[at.plan].executor->mma();
      entry.issues = program.products[at.plan].repeats;
      entry.group = warp.group;
      return true;
    case Code::kMmaWait:
      entry.kind = TraceKind::kProductWait;
      entry.group = std::int64_t{warp.group} - program.waits[at.plan];
      return true;
    case Code::kCopy: {
      const bool async = program.copies[at.plan].engine == ir::CopyEngine::kCpAsync;
      entry.kind = async ? TraceKind::kAsyncCopy : TraceKind::kCopy;
      entry.group = copies_[warp.number];
      return true;
    }
    case Code::kCopyWait:
      entry.kind = TraceKind::kCopyWait;
      entry.group = copies_[warp.number] - program.waits[at.plan];
      return true;
    case Code::kBulkCopy:
      entry.kind =
          program.bulk_copies[at.plan].loads ? TraceKind::kBulkLoad : TraceKind::kBulkStore;
      entry.group = warp.bulk_groups;
      return true;
    case Code::kBulkWait:
      entry.kind = TraceKind::kBulkWait;
      entry.group = warp.bulk_groups - program.bulk_waits[at.plan].pending;
      return true;
    case Code::kLoad:
    case Code::kLoadMetadata:
    case Code::kScale: entry.kind = TraceKind::kLoad; return true;
    case Code::kStore: entry.kind = TraceKind::kStore; return true;
    case Code::kElement: entry.kind = TraceKind::kElement; return true;
    case Code::kSplat: entry.kind = TraceKind::kCopy; return true;
    case Code::kTrigger: entry.kind = TraceKind::kTrigger; return true;
    case Code::kEventWait: entry.kind = TraceKind::kEventWait; return true;
    case Code::kBarrier: entry.kind = TraceKind::kBarrier; return true;
    case Code::kPlace:
    case Code::kRegister:
    case Code::kScalar:
    case Code::kIndex:
    case Code::kBind:
    case Code::kCell:
    case Code::kInitialise:
    case Code::kFill:
    case Code::kDescribe:
    case Code::kMmaFence:
    case Code::kMmaCommit:
    case Code::kProxyFence:
    case Code::kRegisters:
    case Code::kAssert:
    case Code::kEnter:
    case Code::kIf:
    case Code::kElse:
    case Code::kEnd:
    case Code::kOnce:
    case Code::kInthreads:
    case Code::kLoop:
    case Code::kNext:
    case Code::kForever:
    case Code::kRepeat:
    case Code::kLeave:
    case Code::kRejoin:
    case Code::kLaunch:
    case Code::kReturn:
    case Code::kStop: break;
  }
  return false;
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
  meets_ =
      at.code == Code::kBarrier && machine_.program.barriers[at.plan].level != ir::Level::kGroup;
  if (!tracing_) return;
  current_ = static_cast<std::uint32_t>(out_.entries.size());
  arrivals_before_ = out_.arrivals.size();
  before_ = machine_.tally.traffic();
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
  if (is_elected(entry_.kind) && entry_.requests == 0) return;
  if (entry_.kind == TraceKind::kTrigger && out_.arrivals.size() == arrivals_before_) return;
  if (entry_.kind == TraceKind::kAsyncCopy) ++copies_[entry_.warp];
  if (meets_) {
    last_barrier_[entry_.warp] = static_cast<std::uint32_t>(out_.entries.size());
  }
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
