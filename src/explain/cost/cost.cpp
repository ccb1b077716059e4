#include "explain/cost/cost.h"

#include <algorithm>

#include "explain/cost/predicted.h"
#include "explain/cost/reuse.h"
#include "ir/effects.h"
#include "support/format.h"
#include "support/integer.h"
#include "target/arch.h"
#include "target/registers.h"

namespace kiln::explain {

namespace {

using ir::Function;
using ir::OpId;
using ir::ValueId;

constexpr std::int64_t kWavefrontBytes = 128;  // shared memory serves one a cycle
constexpr double kGiga = 1e9;

std::string buffer_name(const Function& function, ValueId view) {
  const ValueId root = ir::root_of(function, view);
  const auto* alloc = function.def_as<ir::Alloc>(root);
  return alloc != nullptr && !alloc->name.empty() ? alloc->name : function.values[root].name;
}

// The views that an operation reads and writes.
struct Touched {
  ValueId read;
  ValueId written;
};

Touched touched_by(const Function& function, const ir::Op& op) {
  Touched out;
  for (const ir::Touch& touch : ir::memory_touched(function, op)) {
    if (touch.reads()) out.read = touch.value;
    if (touch.writes()) out.written = touch.value;
  }
  return out;
}

std::string described(const Function& function, const ir::Op& op) {
  const Touched touched = touched_by(function, op);
  std::string out(ir::mnemonic(op.kind()));
  if (touched.read == touched.written && touched.read.valid()) {
    return out + " " + buffer_name(function, touched.read);  // updated where it is
  }
  if (touched.read.valid()) out += " " + buffer_name(function, touched.read);
  if (touched.read.valid() && touched.written.valid()) out += " =>";
  if (touched.written.valid()) out += " " + buffer_name(function, touched.written);
  return out;
}

std::int64_t bytes_of(const Function& function, ValueId root, const ir::Arguments& arguments) {
  const ir::ViewType& type = function.view_type(root);
  std::int64_t bytes = size_bytes(type.dtype);
  for (const ir::Expr& extent : type.shape) bytes *= extent.evaluate(arguments.vars);
  return bytes;
}

SharedBuffer shared_buffer(const Function& function, const ir::Op& op, const ir::Alloc& alloc,
                           const std::vector<std::int64_t>& vars) {
  const ir::ViewType& type = function.view_type(op.result);
  SharedBuffer out{.span = op.span,
                   .name = buffer_name(function, op.result),
                   .dtype = type.dtype,
                   .shape = {},
                   .bytes = size_bytes(type.dtype),
                   .address = alloc.offset + alloc.behind.evaluate(vars),
                   .row_bytes = size_bytes(type.dtype),
                   .swizzle = alloc.swizzle};
  for (const ir::Expr& extent : type.shape) {
    out.shape.push_back(extent.evaluate(vars));
    out.bytes *= out.shape.back();
  }
  if (!out.shape.empty()) out.row_bytes *= out.shape.back();
  return out;
}

// Tensor cores of the SM that work on one instruction: a warp has its own, a warpgroup all four.
int cores_of(const target::Mma& atom) {
  constexpr int kCores = 4;
  return atom.scope == target::Scope::kWarpgroup ? kCores : 1;
}

// Goes through the statements of one launch.
class LaunchReader {
 public:
  LaunchReader(const target::Arch& arch, const Function& function, const ir::Arguments& arguments,
               const sim::Outcome& outcome)
      : arch_(arch),
        function_(function),
        arguments_(arguments),
        outcome_(outcome),
        repeats_(function) {}

  void read(LaunchCost& out) {
    read_.assign(function_.values.size(), false);
    written_.assign(function_.values.size(), false);
    const auto& data = std::get<ir::Parallel>(function_.ops[out.op].data);
    out.shared_bytes = data.shared_bytes + data.shared_more.evaluate(arguments_.vars);
    ir::walk(function_, data.body, [&](OpId id) { statement(id, out); });
    std::stable_sort(out.buffers.begin(), out.buffers.end(),
                     [](const auto& a, const auto& b) { return a.address < b.address; });
    for (std::uint32_t v = 0; v < read_.size(); ++v) {
      if (!read_[v] && !written_[v]) continue;
      const int ways = (read_[v] ? 1 : 0) + (written_[v] ? 1 : 0);
      const std::int64_t bytes = out.times * bytes_of(function_, ValueId{v}, arguments_);
      out.bytes_once += ways * bytes;
      if (read_[v]) out.bytes_read_once += bytes;
    }
  }

 private:
  void statement(OpId id, LaunchCost& out) {
    const ir::Op& op = function_.ops[id];
    const sim::Counters& counts = outcome_.by_operation[id.index];
    out.counts.add(counts);
    if (const auto* mma = std::get_if<ir::Mma>(&op.data)) add_mma(op, *mma, counts, out);
    if (const auto* alloc = std::get_if<ir::Alloc>(&op.data)) {
      const auto* view = std::get_if<ir::ViewType>(&function_.type(op.result));
      if (view != nullptr && view->space == ir::Space::kShared) {
        out.buffers.push_back(shared_buffer(function_, op, *alloc, arguments_.vars));
      }
    }
    if (counts.requests_shared + counts.requests_global > 0) {
      out.accesses.push_back({op.span, described(function_, op), counts});
    }
    if (const Work work = work_of(function_, op, counts, repeats_.of(id)); work.sum() != 0) {
      out.works.push_back({op.span, work});
      out.work.add(work);
    }
    const Touched touched = touched_by(function_, op);
    note(touched.read, read_);
    note(touched.written, written_);
  }

  void add_mma(const ir::Op& op, const ir::Mma& mma, const sim::Counters& counts,
               LaunchCost& out) const {
    const target::Mma& atom = *mma.atom;
    const auto issued = counts.instructions.find(std::string(atom.name));
    const std::int64_t issues = issued == counts.instructions.end() ? 0 : issued->second;
    out.mmas.push_back({op.span, &atom, issues, target::issue_cycles(atom, arch_)});
    const auto macs = static_cast<double>(atom.shape.m) * atom.shape.n * atom.shape.k;
    out.flops += 2 * macs * static_cast<double>(issues);
  }

  void note(ValueId view, std::vector<bool>& set) const {
    if (!view.valid()) return;
    const ValueId root = ir::root_of(function_, view);
    if (function_.view_type(root).space == ir::Space::kGlobal) set[root.index] = true;
  }

  const target::Arch& arch_;
  const Function& function_;
  const ir::Arguments& arguments_;
  const sim::Outcome& outcome_;
  Repeats repeats_;
  std::vector<bool> read_;  // by ValueId: global buffers
  std::vector<bool> written_;
};

// Cycles of one SM's part, over all blocks.
struct SmCycles {
  double tensor = 0;
  double shared = 0;
  double issue = 0;
};

SmCycles cycles_of(const LaunchCost& launch, const Function& function,
                   const sim::Outcome& outcome) {
  constexpr double kCores = 4;
  SmCycles out;
  for (const MmaCost& mma : launch.mmas) {
    out.tensor += static_cast<double>(mma.issues) * mma.cycles * cores_of(*mma.atom) / kCores;
    out.issue += static_cast<double>(mma.issues) * cores_of(*mma.atom) / target::kIssuesPerCycle;
  }
  out.issue += static_cast<double>(launch.work.sum() + launch.counts.requests_shared +
                                   launch.counts.requests_global) /
               target::kIssuesPerCycle;
  const auto& data = std::get<ir::Parallel>(function.ops[launch.op].data);
  ir::walk(function, data.body, [&](OpId id) {
    const sim::Counters& counts = outcome.by_operation[id.index];
    // What a matrix instruction reads by itself is no request.
    const std::int64_t bytes = counts.bytes_shared_read + counts.bytes_shared_written;
    out.shared +=
        static_cast<double>(counts.wavefronts_shared != 0 ? counts.wavefronts_shared
                                                          : ceil_div(bytes, kWavefrontBytes));
  });
  return out;
}

// Blocks of the SM that gets most of them, in all executions: each SM works alone, so no launch
// ends before that one's.
std::int64_t blocks_of_busiest_sm(OpId op, const target::Arch& arch, const sim::Outcome& outcome) {
  std::int64_t blocks = 0;
  for (const sim::Launched& launched : outcome.launches) {
    if (launched.op == op) blocks += ceil_div(launched.blocks, arch.sms);
  }
  return blocks;
}

Roofline roofline(const LaunchCost& launch, const target::Arch& arch, const Function& function,
                  const sim::Outcome& outcome) {
  const SmCycles cycles = cycles_of(launch, function, outcome);
  const double busiest = launch.blocks == 0
                             ? 0
                             : static_cast<double>(blocks_of_busiest_sm(launch.op, arch, outcome)) /
                                   static_cast<double>(launch.blocks);
  const double bandwidth = arch.dram_gb_per_s * kGiga;
  const std::int64_t asked = launch.counts.sectors_global * target::kSectorBytes;
  const auto seconds = [&](double cycles_of_all) {
    return cycles_of_all * busiest / (arch.clock_ghz * kGiga);
  };
  Roofline out{.tensor = seconds(cycles.tensor),
               .dram = static_cast<double>(launch.bytes_once) / bandwidth,
               .dram_uncached = static_cast<double>(asked) / bandwidth,
               .shared = seconds(cycles.shared),
               .issue = seconds(cycles.issue)};
  for (const target::Unit unit : target::kUnits) {
    const auto instructions = static_cast<double>(launch.work[unit]);
    out.units[static_cast<std::size_t>(unit)] = seconds(busy_cycles(arch, unit, instructions));
  }
  return out;
}

Waves waves_of(const LaunchCost& launch, const target::Arch& arch, const sim::Outcome& outcome) {
  Waves out;
  out.per_wave = launch.occupancy.blocks * arch.sms;
  if (out.per_wave == 0) return out;
  for (const sim::Launched& launched : outcome.launches) {
    if (launched.op != launch.op || launched.blocks == 0) continue;
    out.waves += ceil_div(launched.blocks, out.per_wave);
    out.last = (launched.blocks - 1) % out.per_wave + 1;
  }
  return out;
}

// A launch as often as it was executed, without what its statements cost.
LaunchCost executed(const Function& function, OpId op, const sim::Outcome& outcome) {
  const auto& data = std::get<ir::Parallel>(function.ops[op].data);
  LaunchCost out;
  out.op = op;
  out.name = data.name.empty() ? function.name : data.name;
  out.span = function.ops[op].span;
  for (const sim::Launched& launched : outcome.launches) {
    if (launched.op != op) continue;
    ++out.times;
    out.blocks += launched.blocks;
    out.blocks_run += launched.blocks_run;
    out.threads = std::max(out.threads, launched.threads);
  }
  return out;
}

// The registers of a thread that the program's attributes leave of those that it would take.
int registers_left(const target::Arch& arch, const ir::Function& function, OpId op,
                   const LaunchCost& launch) {
  const auto& parallel = std::get<ir::Parallel>(function.ops[op].data);
  std::int64_t most = launch.registers.total;
  if (parallel.registers_max != 0) most = std::min(most, parallel.registers_max);
  if (parallel.blocks_min != 0) {
    const std::int64_t threads = std::max(parallel.threads_bound, launch.threads);
    most =
        std::min<std::int64_t>(most, target::registers_beside(arch, threads, parallel.blocks_min));
  }
  return static_cast<int>(most);
}

}  // namespace

std::int64_t AccessCost::sectors_ideal() const {
  return ceil_div(bytes_global(), target::kSectorBytes);
}

std::string_view name(Bound bound) {
  switch (bound) {
    case Bound::kTensor: return "tensor cores";
    case Bound::kDram: return "DRAM";
    case Bound::kShared: return "shared memory";
    case Bound::kUnit: return "arithmetic";
    case Bound::kIssue: return "issue slots";
  }
  return "";
}

Bound Roofline::bound() const {
  const std::pair<Bound, double> parts[] = {{Bound::kTensor, tensor},
                                            {Bound::kDram, dram},
                                            {Bound::kShared, shared},
                                            {Bound::kUnit, of(slowest_unit())},
                                            {Bound::kIssue, issue}};
  return std::ranges::max_element(parts, {}, &std::pair<Bound, double>::second)->first;
}

target::Unit Roofline::slowest_unit() const {
  return target::kUnits[static_cast<std::size_t>(std::ranges::max_element(units) - units.begin())];
}

std::string_view Roofline::bound_name() const {
  const Bound by = bound();
  return by == Bound::kUnit ? name(slowest_unit()) : name(by);
}

double Roofline::seconds() const {
  return std::max({tensor, dram, shared, of(slowest_unit()), issue});
}

double LaunchCost::intensity() const {
  return bytes_global == 0 ? 0 : flops / static_cast<double>(bytes_global);
}

std::optional<double> Explanation::predicted_seconds() const {
  double out = 0;
  for (const LaunchCost& launch : launches) {
    if (!launch.predicted) return std::nullopt;
    out += launch.predicted->seconds;
  }
  return out;
}

const Trial* Explanation::best() const {
  constexpr double kWorthIt = 0.97;
  const auto now = predicted_seconds();
  const bool pays = now && !trials.empty() && trials.front().seconds < kWorthIt * *now;
  return pays ? trials.data() : nullptr;
}

Explanation explain_kernel(const ir::Module& module, const Function& function,
                           const ir::Arguments& arguments, const sim::Outcome& outcome,
                           const Known& known) {
  KILN_CHECK(outcome.by_operation.size() == function.ops.size(), "counts of {} operations for {}",
             outcome.by_operation.size(), function.ops.size());
  const target::Arch& arch = *module.arch;
  Explanation out{
      .arch = &arch, .kernel = function.name, .shape = {}, .launches = {}, .trials = {}};
  for (std::uint32_t v = 0; v < function.vars.size(); ++v) {
    const ir::Var& var = function.vars[ir::VarId{v}];
    if (!ir::known_at_launch(var.kind)) continue;
    out.shape.emplace_back(var.name, arguments.vars[v]);
  }
  LaunchReader reader(arch, function, arguments, outcome);
  for (const OpId op : ir::launches(function)) {
    LaunchCost launch = executed(function, op, outcome);
    if (launch.times == 0) continue;
    reader.read(launch);
    launch.bytes_global = launch.counts.bytes_global_read + launch.counts.bytes_global_written;
    launch.registers = estimate_registers(arch, function, op, launch.threads);
    if (const auto taken = known.registers.find(launch.name); taken != known.registers.end()) {
      launch.registers.total = taken->second;
      launch.registers.compiled = true;
    }
    launch.occupancy =
        target::occupancy(arch, {.threads = launch.threads,
                                 .shared_bytes = launch.shared_bytes,
                                 .registers = registers_left(arch, function, op, launch)});
    launch.waves = waves_of(launch, arch, outcome);
    launch.roofline = roofline(launch, arch, function, outcome);
    launch.bytes_from_dram = bytes_from_dram(function, arguments, launch, outcome, arch);
    launch.predicted = predict_launch(launch, function, outcome, target::timing_of(arch),
                                      known.detail == Detail::kBounds);
    out.launches.push_back(std::move(launch));
  }
  return out;
}

}  // namespace kiln::explain
