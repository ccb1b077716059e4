// `kiln explain`: compile, choose a shape, count in the simulator, work out the rest, print.
#include "backends/backend.h"
#include "driver/commands.h"
#include "driver/report.h"
#include "explain/cost/cost_print.h"
#include "explain/cost/full_tiles.h"
#include "explain/cost/kernel_page.h"
#include "io/bind.h"
#include "io/findings.h"
#include "io/machine.h"
#include "ir/effects.h"

namespace kiln::driver {

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
std::vector<io::Assignment> assumed_shapes(const ir::Function& function) {
  const std::vector<std::int64_t> values = explain::full_tiles(function);
  std::vector<io::Assignment> out;
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
io::Stage<ir::Arguments> bind_ones(const ir::Function& function, std::uint64_t memory_bytes_max,
                                   const std::vector<io::Assignment>& shapes, Diagnostics& diags) {
  io::BindOptions how;
  how.shapes = shapes;
  how.fill = io::Fill::kOnes;
  how.memory_bytes_max = memory_bytes_max;
  how.use = io::Use::kCount;
  auto arguments = io::bind(function, std::move(how), diags);
  if (!arguments) return Unexpected{io::Exit::kUsage};
  if (!io::check_entry(function, *arguments, diags)) return Unexpected{io::Exit::kWrong};
  return std::move(*arguments);
}

io::Stage<sim::Outcome> count(const io::Program& program, const ir::Function& function,
                              ir::Arguments& arguments, bool all_blocks, io::Console& console) {
  auto outcome = backends::counter().count(
      {.module = program.decided, .function = function, .sources = program.sources}, arguments,
      {.all_blocks = all_blocks, .trace = true});
  if (!outcome) return io::environment_failed(console, outcome.error());
  return std::move(*outcome);
}

bool counted_all(const sim::Outcome& outcome) {
  for (const sim::Launched& launched : outcome.launches) {
    if (launched.blocks_run != launched.blocks) return false;
  }
  return true;
}

std::string printed(const ExplainOptions& options, const explain::Explanation& explanation,
                    const ir::Function& function, const sim::Outcome& outcome,
                    const Sources& sources) {
  if (options.html) {
    const auto blocks = explain::view_blocks(explanation, function, outcome);
    return explain::to_html({explanation, blocks, function, sources});
  }
  return options.json ? explain::to_json(explanation, sources)
                      : explain::to_text(explanation, sources);
}

io::Exit explain_function(const ExplainOptions& options, const std::vector<io::Assignment>& given,
                          io::Program& program, io::Console& console) {
  const auto kernel =
      io::choose_kernel(program, options.program.file, options.kernel, program.diags);
  if (!kernel) return io::Exit::kUsage;
  const ir::Function& function = program.decided.functions[*kernel];
  const std::vector<io::Assignment> shapes = given.empty() ? assumed_shapes(function) : given;
  const std::uint64_t memory = io::memory_allowed(options.max_memory);
  auto arguments = bind_ones(function, memory, shapes, program.diags);
  if (!arguments) return arguments.error();
  // What a host part reads is whole where all blocks have run.
  const bool all_blocks = ir::host_reads(function);
  auto outcome = count(program, function, *arguments, all_blocks, console);
  if (!outcome) return outcome.error();
  if (!counted_all(*outcome) && steps_of_all(*outcome) <= kStepsMax) {
    arguments = ir::Arguments{};  // its memory goes before the next takes as much
    arguments = bind_ones(function, memory, shapes, program.diags);
    if (!arguments) return arguments.error();
    outcome = count(program, function, *arguments, true, console);
    if (!outcome) return outcome.error();
  }
  io::report_findings(*outcome, io::Use::kCount, program.diags);
  if (program.diags.has_errors()) return io::Exit::kWrong;
  explain::Explanation explanation =
      explain::explain_kernel(program.decided, function, *arguments, *outcome);
  explanation.shape_assumed = given.empty() && !explanation.shape.empty();
  return io::write_text(console, options.output,
                        printed(options, explanation, function, *outcome, program.sources));
}

}  // namespace

io::Exit explain(const ExplainOptions& options, io::Console& console) {
  io::Program program;
  const auto shapes = io::parse_assignments("--shape", options.shapes,
                                            io::ListForm::kCommaSeparated, program.diags);
  io::Exit exit = io::Exit::kUsage;
  if (shapes) {
    exit = io::compile(options.program, {.kernel = options.kernel}, program, console);
    if (exit == io::Exit::kFine) exit = explain_function(options, *shapes, program, console);
  }
  io::show_briefly(console, program.diags, program.sources);
  return exit;
}

}  // namespace kiln::driver
