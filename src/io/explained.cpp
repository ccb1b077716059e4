#include "io/explained.h"

#include "backends/device.h"
#include "explain/cost/full_tiles.h"
#include "explain/cost/kernel_page.h"
#include "io/bind.h"
#include "io/findings.h"
#include "ir/cuda_text.h"
#include "ir/effects.h"
#include "ir/steering.h"
#include "runtime/cubin.h"

namespace kiln::io {

namespace {

// All blocks are counted when that is no more work than this, else some that stand for the others.
// The simulator does 2 to 4 times 10^7 steps a second where it only counts, and takes as long for an
// access to memory, whose banks and sectors it looks at, as for so many steps.
constexpr double kStepsMax = 1e8;
constexpr double kStepsOfAccess = 120;

// Steps of counting all blocks, from those of the blocks that stand for them.
double steps_of_all(const sim::Outcome& outcome) {
  double blocks = 0;
  double run = 0;
  for (const sim::Launched& launched : outcome.launches) {
    blocks += static_cast<double>(launched.blocks);
    run += static_cast<double>(launched.blocks_run);
  }
  const std::int64_t accesses = outcome.counters.requests_shared + outcome.counters.requests_global;
  return run == 0 ? 0
                  : static_cast<double>(outcome.steps) * blocks / run +
                        kStepsOfAccess * static_cast<double>(accesses);
}

// A few full tiles, as `--shape` would say it.
std::vector<Assignment> assumed_shapes(const ir::Function& function) {
  const std::vector<std::int64_t> values = explain::full_tiles(function);
  std::vector<Assignment> out;
  for (std::uint32_t v = 0; v < function.vars.size(); ++v) {
    const ir::Var& var = function.vars[ir::VarId{v}];
    if (var.kind != ir::VarKind::kDim) continue;
    out.push_back({var.name, format("{}", values[v])});
  }
  for (const ir::Param& param : function.params) {
    if (!std::holds_alternative<ir::ScalarType>(function.type(param.value))) continue;
    out.push_back({param.name, format("{}", param.var.valid() ? values[param.var.index] : 1)});
  }
  return out;
}

// Every input is 1: what is counted depends on no data but where the program branches on some.
Result<ir::Arguments, NotExplained> bind_ones(const ir::Function& function,
                                              const ExplainOptions& options, Diagnostics& diags) {
  BindOptions how;
  how.shapes = options.shapes;
  how.fill = Fill::kOnes;
  how.memory_bytes_max = options.memory_bytes_max;
  how.use = options.use;
  auto arguments = bind(function, std::move(how), diags);
  if (!arguments) return Unexpected{NotExplained{Exit::kUsage}};
  if (!check_entry(function, *arguments, diags)) return Unexpected{NotExplained{Exit::kWrong}};
  return std::move(*arguments);
}

Result<sim::Outcome, NotExplained> count(const backends::Job& job, ir::Arguments& arguments,
                                         const backends::Counting& how) {
  if (how.progress) how.progress("counting");
  auto outcome = backends::counter().count(job, arguments, how);
  if (!outcome) return Unexpected{NotExplained{Exit::kEnvironment, outcome.error()}};
  return std::move(*outcome);
}

// None where they are to be estimated.
Result<explain::CompiledRegisters> registers_of(const backends::Job& job,
                                                const ExplainOptions& options) {
  if (!options.compile) return explain::CompiledRegisters{};
  if (options.progress) options.progress("compiling for the GPU");
  const auto settings = runtime::cache_settings();
  if (!settings) return Unexpected{settings.error()};
  const auto compiled = backends::device().warm(job, runtime::Cache(*settings));
  if (!compiled) return Unexpected{compiled.error()};
  return runtime::registers_of(compiled->cubin.bytes);
}

bool counted_all(const sim::Outcome& outcome) {
  for (const sim::Launched& launched : outcome.launches) {
    if (launched.blocks_run != launched.blocks) return false;
  }
  return true;
}

// Says of what is CUDA that it is not counted. False after a report of what decides how often others run.
bool note_cuda(const ir::Function& function, Diagnostics& diags) {
  if (!ir::first_cuda_alone(function).valid()) return true;
  const std::vector<bool> steers = ir::steering(function);
  bool fine = true;
  ir::walk(function, function.body, [&](ir::OpId id) {
    const ir::Op& op = function.ops[id];
    const auto* cuda = std::get_if<ir::Cuda>(&op.data);
    if (cuda == nullptr || cuda->stand_in.valid() || !fine) return;
    if (!steers[id.index]) {
      diags.report<diag::CudaNotCounted>(op.span, cuda->what).emit();
      return;
    }
    fine = false;
    diags.report<diag::CudaNotRun>(op.span, cuda->what, function.name, "explain")
        .help(
            "what it gives decides what else runs: say what that is, `[[expect(...)]]` in front of "
            "it")
        .emit();
  });
  return fine;
}

}  // namespace

Result<Explained, NotExplained> explain(const Program& program, std::size_t kernel,
                                        const ExplainOptions& options, Diagnostics& diags) {
  const ir::Function& function = program.decided.functions[kernel];
  if (!note_cuda(function, diags)) return Unexpected{NotExplained{Exit::kWrong}};
  ExplainOptions how = options;
  if (options.shapes.empty()) how.shapes = assumed_shapes(function);
  auto arguments = bind_ones(function, how, diags);
  if (!arguments) return Unexpected{arguments.error()};
  // What a host part reads is whole where all blocks have run.
  backends::Counting counting = {
      .all_blocks = ir::host_reads(function), .trace = true, .progress = options.progress};
  const backends::Job job = {
      .module = program.decided, .function = function, .sources = program.sources};
  auto registers = registers_of(job, options);
  if (!registers) return Unexpected{NotExplained{Exit::kEnvironment, registers.error()}};
  auto outcome = count(job, *arguments, counting);
  if (!outcome) return Unexpected{outcome.error()};
  if (!counted_all(*outcome) && steps_of_all(*outcome) <= kStepsMax) {
    arguments = ir::Arguments{};  // its memory goes before the next takes as much
    arguments = bind_ones(function, how, diags);
    if (!arguments) return Unexpected{arguments.error()};
    counting.all_blocks = true;
    outcome = count(job, *arguments, counting);
    if (!outcome) return Unexpected{outcome.error()};
  }
  report_findings(*outcome, options.use, diags);
  if (diags.has_errors()) return Unexpected{NotExplained{Exit::kWrong}};
  Explained out{explain::explain_kernel(program.decided, function, *arguments, *outcome,
                                        {.registers = std::move(*registers)}),
                std::move(*outcome), std::move(how.shapes)};
  out.explanation.shape_assumed = options.shapes.empty() && !out.explanation.shape.empty();
  return out;
}

std::optional<Explained> explain_decided(const ir::Module& decided, const Sources& sources,
                                         std::size_t kernel, const ExplainOptions& options,
                                         explain::Detail detail) {
  const ir::Function& function = decided.functions[kernel];
  Diagnostics diags;
  auto arguments = bind_ones(function, options, diags);
  if (!arguments) return std::nullopt;
  const backends::Counting counting = {
      .all_blocks = ir::host_reads(function), .trace = true, .progress = {}};
  const backends::Job job = {.module = decided, .function = function, .sources = sources};
  auto registers = registers_of(job, options);
  auto outcome = count(job, *arguments, counting);
  if (!registers || !outcome || !outcome->reports.empty()) return std::nullopt;
  auto explanation =
      explain::explain_kernel(decided, function, *arguments, *outcome,
                              {.detail = detail, .registers = std::move(*registers)});
  return Explained{std::move(explanation), std::move(*outcome), options.shapes};
}

std::string explained_page(const Explained& explained, const ir::Function& function,
                           const Sources& sources, const Changed* changed) {
  const auto blocks = explain::view_blocks(explained.explanation, function, explained.outcome);
  explain::KernelPage page = {explained.explanation, blocks, function, sources};
  if (changed == nullptr) return explain::to_html(page);
  const auto after = explain::view_blocks(changed->explained.explanation, changed->function,
                                          changed->explained.outcome);
  const explain::KernelPage below = {changed->explained.explanation, after, changed->function,
                                     sources, changed->change};
  page.after = &below;
  return explain::to_html(page);
}

}  // namespace kiln::io
