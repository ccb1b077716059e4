#include "explain/cost/predicted.h"

#include <algorithm>

#include "explain/cost/work.h"

namespace kiln::explain {

namespace {

using ir::Function;
using ir::OpId;

// Of floats, each with a reciprocal and a branch: which only one of two is taken, unless a number is very large or small.
std::int64_t quotients(const Function& function, OpId id, const Work& work) {
  const auto* binary = std::get_if<ir::Binary>(&function.ops[id].data);
  if (binary == nullptr || binary->kind != ir::BinaryKind::kDiv) return 0;
  const auto* type = std::get_if<ir::ScalarType>(&function.type(binary->left));
  return type != nullptr && is_float(type->dtype) ? work[target::Unit::kSpecial] : 0;
}

// What one execution of each operation takes of a warp's time.
std::vector<WorkEach> works_of(const Function& function, const target::Arch& arch,
                               const target::Timing& timing, const sim::Outcome& outcome) {
  constexpr double kQuarters = 4;
  constexpr std::int64_t kRounds = 5;  // of shuffles that follow from each other: 32 lanes
  std::vector<WorkEach> out(function.ops.size());
  const Repeats repeats(function);
  for (std::uint32_t i = 0; i < out.size(); ++i) {
    const sim::Counters& counts = outcome.by_operation[i];
    if (counts.executions == 0) continue;
    const Work work = work_of(function, function.ops[OpId{i}], counts, repeats.of(OpId{i}));
    const auto each = [&](double all) {
      return static_cast<float>(all / static_cast<double>(counts.executions));
    };
    for (const target::Unit unit : target::kUnits) {
      out[i].cycles[static_cast<std::size_t>(unit)] =
          each(kQuarters * busy_cycles(arch, unit, static_cast<double>(work[unit])));
    }
    out[i].instructions = each(static_cast<double>(work.sum()));
    if (function.ops[OpId{i}].kind() == ir::OpKind::kProxyFence) {
      out[i].latency = static_cast<float>(timing.fence_latency);
    }
    out[i].latency += each(static_cast<double>(quotients(function, OpId{i}, work))) *
                      static_cast<float>(timing.quotient_latency);
    const float shuffles = each(static_cast<double>(work[target::Unit::kShuffle]));
    out[i].latency += std::min(shuffles, static_cast<float>(kRounds)) *
                      static_cast<float>(timing.shuffle_latency);
  }
  return out;
}

// How much more the mean block does than the trace has of the middle one. 0: that one has nothing to do.
double scale_of(const LaunchCost& launch, const sim::BlockTrace& trace) {
  double issues = 0;
  double bytes = 0;
  for (const sim::TraceEntry& entry : trace.entries) {
    const bool whole = entry.atom != nullptr && entry.atom->scope == target::Scope::kWarpgroup;
    constexpr double kWarps = 4;
    if (entry.atom != nullptr) issues += static_cast<double>(entry.issues) / (whole ? kWarps : 1);
    bytes += static_cast<double>(entry.bytes_read + entry.bytes_written);
  }
  double all = 0;
  for (const MmaCost& mma : launch.mmas) all += static_cast<double>(mma.issues);
  const double groups = static_cast<double>(launch.blocks) / trace.blocks;
  if (groups == 0) return 1;
  const auto moved = static_cast<double>(launch.bytes_global);
  if (all > 0) return issues > 0 ? all / groups / issues : 0;
  if (moved > 0) return bytes > 0 ? moved / groups / bytes : 0;
  return 1;
}

}  // namespace

std::optional<Prediction> predict_launch(const LaunchCost& launch, const ir::Function& function,
                                         const sim::Outcome& outcome, const target::Timing& timing,
                                         bool with_gains) {
  const target::Arch& arch = *target::find_arch(timing.arch);
  const auto trace = std::ranges::find(outcome.traces, launch.op, &sim::BlockTrace::launch);
  if (trace == outcome.traces.end() || launch.occupancy.blocks == 0 || launch.blocks == 0)
    return {};
  const double scale = scale_of(launch, *trace);
  if (scale == 0) return {};
  const auto times = static_cast<double>(launch.times);
  const sim::Counters& counts = launch.counts;
  const LaunchFacts facts = {
      .blocks = launch.blocks / launch.times,
      .times = launch.times,
      .resident = launch.occupancy.blocks,
      .bytes_read = static_cast<double>(counts.bytes_global_read) / times,
      .bytes_written = static_cast<double>(counts.bytes_global_written) / times,
      .bytes_read_once = static_cast<double>(launch.bytes_read_once) / times,
      .bytes_from_dram = launch.bytes_from_dram / times,
      .bytes_written_once = static_cast<double>(launch.bytes_once - launch.bytes_read_once) / times,
      .scale = scale};
  const BlockSteps steps =
      steps_of(function, arch, timing, *trace, works_of(function, arch, timing, outcome));
  return predict(arch, timing, steps, facts, with_gains);
}

}  // namespace kiln::explain
