#include "explain/time/steps.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "ir/effects.h"

namespace kiln::explain {

namespace {

using sim::TraceEntry;
using sim::TraceKind;

constexpr double kSharedBytesPerCycle = 128;
constexpr double kWarpsOfGroup = 4;

// What one warp of a group reads of shared memory for one instruction.
double operand_bytes(const target::Mma& atom, bool a_in_registers) {
  const auto bits = [](DType dtype) { return static_cast<double>(info(dtype).bits); };
  const int depth = target::extents(atom, target::Operand::kA).cols;
  const double a = a_in_registers ? 0 : bits(atom.a) * atom.shape.m * depth;
  const double b = bits(atom.b) * atom.shape.n * atom.shape.k;
  constexpr double kBitsOfByte = 8;
  return (a + b) / kBitsOfByte / kWarpsOfGroup;
}

class Reader {
 public:
  Reader(const ir::Function& function, const target::Arch& arch, const target::Timing& timing,
         const sim::BlockTrace& trace, const std::vector<WorkEach>& works)
      : function_(function), arch_(arch), timing_(timing), trace_(trace), works_(works) {}

  BlockSteps read() {
    out_.blocks = trace_.blocks;
    out_.warps_each = trace_.warps;
    out_.count = static_cast<std::uint32_t>(trace_.entries.size());
    out_.warps.resize(std::size_t{trace_.blocks} * trace_.warps);
    note_arrivals();
    for (std::uint32_t i = 0; i < out_.count; ++i) {
      const TraceEntry& entry = trace_.entries[i];
      out_.warps[entry.warp].push_back(step(i));
      if (entry.meeting == TraceEntry::kNone) continue;
      if (entry.meeting >= out_.meetings.size()) out_.meetings.resize(entry.meeting + 1);
      ++out_.meetings[entry.meeting];
    }
    return std::move(out_);
  }

 private:
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::int64_t>;

  void note_arrivals() {
    by_entry_.resize(trace_.entries.size());
    for (const sim::TraceArrival& arrival : trace_.arrivals) {
      if (arrival.entry >= trace_.entries.size()) continue;
      const Key key = {arrival.block, arrival.slot, arrival.phase};
      const auto [at, fresh] = generations_.try_emplace(key, out_.generations.size());
      if (fresh) out_.generations.push_back(0);
      ++out_.generations[at->second];
      by_entry_[arrival.entry].push_back(at->second);
    }
  }

  Step step(std::uint32_t number) {
    const TraceEntry& entry = trace_.entries[number];
    Step out{.kind = entry.kind,
             .loads = entry.loads,
             .op = entry.op,
             .before = {},
             .group = static_cast<std::uint32_t>(std::max<std::int64_t>(entry.group, 0)),
             .number = number,
             .needs = entry.needs,
             .meeting = entry.meeting};
    add_passed(entry, out);
    take(entry, out);
    if (entry.kind == TraceKind::kEventWait) {
      const auto found =
          generations_.find({entry.warp / trace_.warps, entry.slot, entry.phase - 1});
      if (found != generations_.end()) out.waits_for = found->second;
    }
    out.arrives_begin = static_cast<std::uint32_t>(out_.arrivals.size());
    out_.arrivals.insert(out_.arrivals.end(), by_entry_[number].begin(), by_entry_[number].end());
    out.arrives_end = static_cast<std::uint32_t>(out_.arrivals.size());
    return out;
  }

  static void add(WorkEach& to, const WorkEach& each, float times) {
    for (std::size_t u = 0; u < to.cycles.size(); ++u) to.cycles[u] += times * each.cycles[u];
    to.instructions += times * each.instructions;
    to.latency += times * each.latency;
  }

  void add_passed(const TraceEntry& entry, Step& out) const {
    for (std::uint32_t i = entry.passed_begin; i < entry.passed_end; ++i) {
      const sim::TracePassed& passed = trace_.passed[i];
      add(out.before, works_[passed.op.index], static_cast<float>(passed.times));
    }
    // A store converts what it writes.
    if (entry.kind == TraceKind::kStore || entry.kind == TraceKind::kLoad) {
      add(out.before, works_[entry.op.index], 1);
    }
  }

  // Requests of a copy by threads: each moves from one memory to the other.
  static double copied(const TraceEntry& entry) { return static_cast<double>(entry.requests) / 2; }

  // Instructions around the accesses to memory, and themselves.
  double slots_of(const TraceEntry& entry) const {
    const auto requests = static_cast<double>(entry.requests);
    const bool copies = entry.kind == TraceKind::kAsyncCopy || entry.kind == TraceKind::kCopy;
    if (copies) return timing_.copy_slots + timing_.request_slots * copied(entry) + requests;
    const bool global = entry.bytes_read + entry.bytes_written > 0;
    return (1 + (global ? timing_.access_slots : 0)) * requests;
  }

  void take(const TraceEntry& entry, Step& out) const {
    const auto moved = static_cast<double>(entry.bytes_read + entry.bytes_written);
    const double sectors = std::max(
        moved, static_cast<double>(entry.sectors) * static_cast<double>(target::kSectorBytes));
    // The first-level cache keeps what is left of a sector for the next request; `cp.async` goes past it.
    const bool cached = entry.kind != TraceKind::kAsyncCopy;
    const double more = moved == 0 || cached ? 1 : sectors / moved;
    out.read = static_cast<float>(more * static_cast<double>(entry.bytes_read));
    out.written = static_cast<float>(entry.bytes_written);
    out.stored = entry.bytes_written == 0 ? 0
                 : entry.bytes_read > 0   ? out.written
                                          : static_cast<float>(sectors);
    out.slots = static_cast<float>(timing_.step_slots + slots_of(entry));
    out.shared = static_cast<float>(entry.wavefronts);
    if (entry.kind == TraceKind::kBulkLoad || entry.kind == TraceKind::kBulkStore) {
      out.slots = static_cast<float>(timing_.step_slots);
      out.shared = static_cast<float>(moved / kSharedBytesPerCycle);
    } else if (moved > 0) {  // through the path that shared memory has, a line a cycle
      const double looked_up = (cached ? timing_.line_cycles : timing_.async_line_cycles) *
                               static_cast<double>(entry.lines);
      out.shared = static_cast<float>(std::max(
          {looked_up, sectors / kSharedBytesPerCycle, static_cast<double>(entry.wavefronts)}));
      if (entry.kind == TraceKind::kAsyncCopy) {
        out.shared += static_cast<float>(timing_.async_cycles * copied(entry));
      }
    }
    if (entry.atom == nullptr) return;
    const auto issues = static_cast<double>(entry.issues);
    const double cycles = issues * target::issue_cycles(*entry.atom, arch_);
    const bool alone = entry.kind == TraceKind::kMma;
    out.tensor = static_cast<float>(alone ? cycles / timing_.mma_efficiency : cycles);
    out.slots = static_cast<float>(issues);
    if (entry.atom->reads_shared) {
      const auto* mma = std::get_if<ir::Mma>(&function_.ops[entry.op].data);
      const bool registers = mma != nullptr && is_in_registers(mma->a);
      out.shared =
          static_cast<float>(issues * operand_bytes(*entry.atom, registers) / kSharedBytesPerCycle);
    }
  }

  bool is_in_registers(ir::ValueId operand) const {
    const auto* load = function_.def_as<ir::Load>(operand);
    return load != nullptr && !load->in_shared;
  }

  const ir::Function& function_;
  const target::Arch& arch_;
  const target::Timing& timing_;
  const sim::BlockTrace& trace_;
  const std::vector<WorkEach>& works_;
  BlockSteps out_;
  std::map<Key, std::uint32_t> generations_;
  std::vector<std::vector<std::uint32_t>> by_entry_;
};

}  // namespace

BlockSteps steps_of(const ir::Function& function, const target::Arch& arch,
                    const target::Timing& timing, const sim::BlockTrace& trace,
                    const std::vector<WorkEach>& works) {
  return Reader(function, arch, timing, trace, works).read();
}

}  // namespace kiln::explain
