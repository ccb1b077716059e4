// `kiln run`: compile, bind, run, compare, report.
#include <algorithm>

#include "backends/backend.h"
#include "coverage/coverage.h"
#include "driver/commands.h"
#include "driver/dump.h"
#include "driver/report.h"
#include "driver/statement.h"
#include "io/bind.h"
#include "io/expect.h"
#include "io/findings.h"
#include "io/machine.h"
#include "io/oracle.h"
#include "reference/outputs.h"

namespace kiln::driver {

namespace {

// The command line, parsed; nothing has been read yet.
struct Request {
  io::BindOptions bind;
  std::vector<io::Assignment> inputs;      // parameter = path
  std::vector<io::Assignment> outputs;     // output = path
  std::vector<io::Assignment> references;  // output = path
  std::optional<Tolerance> tolerance;
  io::Check check = io::Check::kBySize;
  std::vector<DumpRequest> dumps;
};

Checked<Request> parse_request(const RunOptions& options, Diagnostics& diags) {
  Request request;
  const auto fill = io::fill_from_name(options.fill);
  if (!fill) {
    return diags.report<diag::OptionChoice>({}, "--fill", options.fill, io::fill_names()).emit();
  }
  request.bind.fill = *fill;
  request.bind.seed = options.seed;
  request.bind.memory_bytes_max = io::memory_allowed(options.max_memory);
  auto shapes =
      io::parse_assignments("--shape", options.shapes, io::ListForm::kCommaSeparated, diags);
  if (!shapes) return Unexpected{shapes.error()};
  request.bind.shapes = std::move(*shapes);
  auto inputs = io::parse_assignments("--in", options.inputs, io::ListForm::kSingle, diags);
  if (!inputs) return Unexpected{inputs.error()};
  request.inputs = std::move(*inputs);
  auto outputs = io::parse_assignments("--out", options.outputs, io::ListForm::kSingle, diags);
  if (!outputs) return Unexpected{outputs.error()};
  request.outputs = std::move(*outputs);
  auto references =
      io::parse_assignments("--ref", options.references, io::ListForm::kSingle, diags);
  if (!references) return Unexpected{references.error()};
  request.references = std::move(*references);
  auto dumps = parse_dumps(options.dumps, diags);
  if (!dumps) return Unexpected{dumps.error()};
  request.dumps = std::move(*dumps);
  const auto tolerance = parse_tolerance(options, diags);
  if (!tolerance) return Unexpected{tolerance.error()};
  request.tolerance = *tolerance;
  const auto check = io::check_from_name(options.check);
  const bool by_reference = options.on == backends::kReference.name;
  if (!check || (by_reference && (*check == io::Check::kSample || *check == io::Check::kNone))) {
    return diags
        .report<diag::OptionChoice>(
            {}, "--check", options.check,
            by_reference ? "full, with `--on reference`" : io::check_names())
        .emit();
  }
  request.check = by_reference ? io::Check::kFull : *check;
  return request;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The names that `--in` and `--out` give.
Checked<bool> check_names(const ir::Function& function, const Request& request,
                          Diagnostics& diags) {
  const std::vector<std::string> names = io::output_names(function);
  for (const io::Assignment& output : request.outputs) {
    if (contains(names, output.name)) continue;
    return diags.report<diag::OutputUnknown>({}, function.name, output.name)
        .help_if(io::output_help(function, output.name))
        .emit();
  }
  for (const io::Assignment& input : request.inputs) {
    const auto known = io::check_input_name(function, input.name, diags);
    if (!known) return Unexpected{known.error()};
  }
  return true;
}

io::Stage<std::vector<io::InputFile>> read_inputs(const std::vector<io::Assignment>& inputs,
                                                  io::Console& console) {
  std::vector<io::InputFile> out;
  for (const io::Assignment& input : inputs) {
    auto array = io::read_npy(input.value);
    if (!array) return io::environment_failed(console, array.error());
    out.push_back({input.name, input.value, std::move(*array)});
  }
  return out;
}

io::Stage<ir::Arguments> bind_arguments(const ir::Function& function, Request& request,
                                        Diagnostics& diags, io::Console& console) {
  auto inputs = read_inputs(request.inputs, console);
  if (!inputs) return Unexpected{inputs.error()};
  request.bind.inputs = std::move(*inputs);
  auto arguments = io::bind(function, std::move(request.bind), diags);
  if (arguments) return std::move(*arguments);
  const bool large = std::ranges::any_of(
      diags.all(), [](const Diagnostic& d) { return d.id == DiagId::kTensorsTooLarge; });
  return Unexpected{large ? io::Exit::kEnvironment : io::Exit::kUsage};
}

struct Ran {
  io::Said said;
  backends::Execution execution;
};

Result<backends::Execution> run_prepared(const backends::Backend& backend, const io::Oracle& oracle,
                                         const ir::Arguments& arguments,
                                         const backends::Interpreted& interpreted) {
  const io::Program& program = oracle.program;
  const auto prepared = backend.prepare({.module = program.decided,
                                         .function = program.decided.functions[oracle.function],
                                         .sources = program.sources,
                                         .interpreted = &interpreted});
  if (!prepared) return Unexpected{prepared.error()};
  return (*prepared)->run(arguments, oracle.limits);
}

// A back end that gives up goes first: where a program does not end it does so sooner than the
// interpreter. One that cannot, a GPU, goes last.
Result<Ran> run_beside_reference(const backends::Backend& backend, const io::Oracle& oracle,
                                 const ir::Arguments& arguments) {
  Ran ran;
  ran.execution.backend = &backend;
  ran.execution.arguments = arguments;
  if (backend.gives_up) {
    auto execution = run_prepared(backend, oracle, arguments, {});
    if (!execution) return Unexpected{execution.error()};
    ran.execution = std::move(*execution);
    if (ran.execution.sim && ran.execution.sim->gave_up) return ran;
  }
  ran.said = io::by_program(oracle, arguments);
  reference::Outcome& outcome = ran.said.interpreted.outcome;
  if (outcome.out_of_memory) return Unexpected{*outcome.out_of_memory};
  if (outcome.gave_up) {
    outcome.outputs.clear();
    return ran;
  }
  if (backend.gives_up) return ran;
  auto execution = run_prepared(backend, oracle, arguments, ran.said.interpreted);
  if (!execution) return Unexpected{execution.error()};
  ran.execution = std::move(*execution);
  return ran;
}

const sim::Unwritten* unwritten_of(const backends::Execution& execution,
                                   const reference::Output& output) {
  if (!execution.sim || !output.param) return nullptr;
  for (const sim::Unwritten& found : execution.sim->unwritten) {
    if (found.param == *output.param) return &found;
  }
  return nullptr;
}

// Without the interpreter nobody knows how much a step of a contraction is.
reference::Tells tells_of(const OutputReport& entry, const reference::Output& output,
                          const reference::Outcome& outcome) {
  if (entry.interpreted) return reference::tells(entry.comparison, output, outcome);
  return entry.compared() ? reference::Tells::kTiles : reference::Tells::kNothing;
}

RunReport make_report(const io::Program& program, const ir::Function& function, const Ran& ran,
                      const Statements& said) {
  const backends::Execution& execution = ran.execution;
  const reference::Outcome& outcome = ran.said.interpreted.outcome;
  RunReport report{
      .kernel = function.name, .arch = std::string(program.arch->name), .shape = {}, .outputs = {}};
  for (std::uint32_t v = 0; v < function.vars.size(); ++v) {
    const ir::Var& var = function.vars[ir::VarId{v}];
    if (!ir::known_at_launch(var.kind)) continue;
    report.shape.emplace_back(var.name, execution.arguments.vars[v]);
  }
  report.printed = io::printed_lines(execution.printed, program.sources);
  report.prints_dropped = execution.prints_dropped;
  if (outcome.gave_up) report.gave_up = outcome.gave_up->message;
  if (outcome.blocks_run < outcome.blocks) {
    report.blocks_compared = outcome.blocks_run;
    report.blocks = outcome.blocks;
  }
  report.whole = ran.said.whole;
  report.needless = said.needless;
  if (execution.sim && execution.sim->gave_up) {
    report.gave_up = execution.sim->reports.back().message;
  }
  for (const reference::Output& output : outcome.outputs) {
    std::vector<const reference::Output*> statements = {&output};
    const reference::Output* expected = said.expected_of(output.name);
    if (expected != nullptr) statements.push_back(expected);
    const Reference* array = said.reference_of(output.name);
    if (array != nullptr) statements.push_back(&array->output);
    const sim::Unwritten* unwritten = unwritten_of(execution, output);
    OutputReport entry{.name = output.name, .comparison = {}};
    if (said.formula) entry.stated = expected != nullptr;
    if (array != nullptr) entry.reference = array->path;
    entry.interpreted = !output.is_unknown();
    entry.comparison =
        reference::compare(statements, backends::result_of(execution.arguments, output),
                           unwritten == nullptr ? std::vector<bool>{} : unwritten->elements);
    entry.comparison.tells = tells_of(entry, output, outcome);
    if (unwritten != nullptr) {
      entry.unwritten = unwritten->count;
      entry.first_unwritten = io::first_coordinates(unwritten->elements, output.shape);
    }
    report.outputs.push_back(std::move(entry));
  }
  return report;
}

// Where a narrower type would have done for the inputs, one that wraps is not found.
void note_narrow(std::vector<io::NarrowInput> narrow, RunReport& report) {
  report.narrow = std::move(narrow);
  for (OutputReport& output : report.outputs) {
    reference::Tells& tells = output.comparison.tells;
    output.only_narrow = !report.narrow.empty() && tells == reference::Tells::kAll;
    if (output.only_narrow) tells = reference::Tells::kSteps;
  }
}

io::Exit write_outputs(const Request& request, const reference::Outcome& outcome,
                       const backends::Execution& execution, io::Console& console) {
  for (const io::Assignment& wanted : request.outputs) {
    for (const reference::Output& output : outcome.outputs) {
      if (output.name != wanted.name) continue;
      const Result<void> written =
          io::write_npy(wanted.value, backends::result_of(execution.arguments, output));
      if (!written) return io::environment_failed(console, written.error()).error;
    }
  }
  return io::Exit::kFine;
}

// The report, in words or as JSON.
void tell(const RunOptions& options, const RunReport& report, const Ran& ran,
          io::Console& console) {
  console.out << (options.json ? report_json(report, ran.execution)
                               : report_text(report, ran.execution, ran.said.interpreted.outcome));
}

backends::Limits limits_of(const RunOptions& options, std::vector<sim::DumpPoint> dumps,
                           MemoryBudget& memory, const io::Console& console) {
  backends::Limits out;
  out.schedules = options.schedules;
  out.steps_max = options.max_steps;
  out.memory = &memory;
  out.dumps = std::move(dumps);
  if (console.progress) {
    out.progress = [&](std::string_view text) { io::show_progress(console, text); };
  }
  return out;
}

// Everything after the program compiled. Diagnostics go to program.diags.
io::Exit run_kernel(const RunOptions& options, Request& request, io::Program& program,
                    io::Console& console) {
  const backends::Backend* backend = backends::choose_backend(options.on, *program.arch);
  if (backend == nullptr) {
    program.diags.report<diag::OptionChoice>({}, "--on", options.on, backends::backend_names())
        .emit();
    return io::Exit::kUsage;
  }
  const auto kernel =
      io::choose_kernel(program, options.program.file, options.kernel, program.diags);
  if (!kernel) return io::Exit::kUsage;
  const ir::Function& decided = program.decided.functions[*kernel];
  if (!backends::check_runs(*backend, decided, program.diags)) return io::Exit::kWrong;
  if (!check_names(decided, request, program.diags)) return io::Exit::kUsage;
  auto dumps = dump_points(request.dumps, program, decided, *backend, program.diags);
  if (!dumps) return io::Exit::kUsage;
  // Before inputs are filled and the reference runs, which can take minutes.
  if (const auto found = backend->find(); !found) {
    return io::environment_failed(console, found.error()).error;
  }
  io::show_progress(console, "filling the inputs");
  const auto arguments = bind_arguments(decided, request, program.diags, console);
  io::show_progress(console, "");
  if (!arguments) return arguments.error();
  if (!io::check_entry(decided, *arguments, program.diags)) return io::Exit::kWrong;
  coverage::check_coverage(program.tile.functions[*kernel], arguments->vars, program.diags);
  Statements said;
  if (!read_expect(options.expect, decided, *arguments, program, said)) return io::Exit::kUsage;
  const auto outputs = io::unknown_outputs(decided, *arguments);
  const auto read = read_references({request.references, request.tolerance, outputs}, decided,
                                    program, console, said);
  if (!read) return read.error();

  MemoryBudget memory(request.bind.memory_bytes_max, "`--max-memory` allows more");
  MemoryHold tensors;
  const double bytes = io::tensor_bytes(decided, *arguments, io::Use::kRun);
  if (const auto error = tensors.take(&memory, bytes, "what the tensors are")) {
    return io::environment_failed(console, *error).error;
  }
  io::Oracle oracle{
      .program = program, .function = *kernel, .check = request.check, .seed = options.seed};
  oracle.limits = limits_of(options, std::move(*dumps), memory, console);
  const auto ran = run_beside_reference(*backend, oracle, *arguments);
  if (!ran) return io::environment_failed(console, ran.error()).error;
  const backends::Interpreted& interpreted = ran->said.interpreted;
  const backends::Execution& execution = ran->execution;
  if (said.formula && !interpreted.outcome.outputs.empty()) {
    auto expected = io::by_formula(oracle, ran->said, *said.formula);
    if (!expected) return io::environment_failed(console, expected.error()).error;
    said.expected = std::move(*expected);
    said.needless = io::needless_rounding(decided, *said.formula);
    for (reference::Output& output : said.expected) output.is_final = said.needless.has_value();
  }
  if (execution.times) io::show_cache_note(console, execution.times->cache_note);

  io::show_progress(console, "comparing");
  RunReport report = make_report(program, decided, *ran, said);
  io::show_progress(console, "");
  report.asked = request.check;
  report.dumps = request.dumps;
  note_narrow(io::narrow_inputs(decided, *arguments), report);
  report.integers = request.bind.fill == io::Fill::kIntegers;
  report_findings(decided, report, execution, interpreted.outcome, program.diags);
  tell(options, report, *ran, console);
  const io::Exit written = write_outputs(request, interpreted.outcome, execution, console);
  if (written != io::Exit::kFine) return written;
  return program.diags.has_errors() ? io::Exit::kWrong : io::Exit::kFine;
}

}  // namespace

io::Exit run(const RunOptions& options, io::Console& console) {
  io::Program program;
  auto request = parse_request(options, program.diags);
  io::Exit exit = io::Exit::kUsage;
  if (request) {
    exit = io::compile(options.program, {.kernel = options.kernel}, program, console);
    if (exit == io::Exit::kFine) exit = run_kernel(options, *request, program, console);
  }
  io::show_briefly(console, program.diags, program.sources);
  return exit;
}

}  // namespace kiln::driver
