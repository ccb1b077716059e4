#include "measure/bench_file.h"

#include "backends/device.h"
#include "coverage/coverage.h"
#include "io/bind.h"
#include "io/expect.h"
#include "io/machine.h"
#include "io/oracle.h"
#include "measure/bench_machine.h"
#include "measure/bench_measure.h"

namespace kiln::measure {

// Shows on the console what is being done.
void FileBench::progress(const std::string& text) const { io::show_progress(console, text); }

io::Stage<void> FileBench::bind_problem(const std::vector<io::Assignment>& shapes,
                                        std::string text) {
  io::BindOptions how;
  how.shapes = shapes;
  how.seed = options.seed;
  how.memory_bytes_max = io::memory_allowed();
  how.use = io::Use::kBench;
  auto arguments = io::bind(function(), std::move(how), program.diags);
  if (!arguments) return Unexpected{io::Exit::kUsage};
  if (!io::check_entry(function(), *arguments, program.diags)) return Unexpected{io::Exit::kWrong};
  coverage::check_coverage(program.tile.functions[kernel], arguments->vars, program.diags);
  FileProblem& problem = problems.emplace_back();
  problem.shape = std::move(text);
  problem.arguments = std::move(*arguments);
  problem.tensors = io::named_tensors(function(), problem.arguments, problem.returned);
  if (einsum) {
    const bool fits =
        reference::check(*einsum, problem.tensors, program.diags).has_value() &&
        io::check_output(function(), einsum->output, problem.tensors, program.diags).has_value();
    if (!fits) return Unexpected{io::Exit::kUsage};
    problem.product = matrix_product(*einsum, problem.tensors);
  } else if (!options.expect.empty()) {
    auto formula =
        io::read_expect(options.expect, function(), problem.arguments, problem.returned, program);
    if (!formula) return Unexpected{io::Exit::kUsage};
    problem.formula = std::move(*formula);
  }
  return {};
}

namespace {

// All mistakes of the command line are found here, before any GPU is needed.
io::Stage<void> prepare(FileBench& bench) {
  const auto kernel = io::choose_kernel(bench.program, bench.options.program.file,
                                        bench.options.kernel, bench.program.diags);
  if (!kernel) return Unexpected{io::Exit::kUsage};
  bench.kernel = *kernel;
  if (!bench.options.expect.empty()) {
    const auto formula =
        reference::parse_formula(bench.options.expect, bench.program.sources, bench.program.diags);
    if (!formula) return Unexpected{io::Exit::kUsage};
    if (formula->definitions.size() == 1) {
      bench.einsum = reference::plain_product(*formula, formula->definitions[0]);
    }
  }
  std::vector<std::string> texts = bench.options.shapes;
  if (texts.empty()) texts.emplace_back();  // reports what is missing
  for (const std::string& text : texts) {
    std::vector<io::Assignment> shapes;
    if (!text.empty()) {
      auto parsed = io::parse_assignments("--shape", {text}, io::ListForm::kCommaSeparated,
                                          bench.program.diags);
      if (!parsed) return Unexpected{io::Exit::kUsage};
      shapes = std::move(*parsed);
    }
    const auto bound = bench.bind_problem(shapes, text);
    if (!bound) return bound;
  }
  return {};
}

Result<FileDevice> open_device(const FileBench& bench) {
  auto gpu = backends::open_device();
  if (!gpu) return Unexpected{gpu.error()};
  if (auto can = check_power(*gpu, bench.options); !can) return Unexpected{can.error()};
  bench.progress("compiling");
  const backends::Job job{.module = bench.program.decided,
                          .function = bench.function(),
                          .sources = bench.program.sources};
  const auto loads = backends::device().measure_loads(*gpu, job);
  if (!loads) return Unexpected{loads.error()};
  auto kernels = backends::device().load(*gpu, job);
  bench.progress("");
  if (!kernels) return Unexpected{kernels.error()};
  return FileDevice{.gpu = std::move(*gpu), .kernels = std::move(*kernels), .loads = *loads};
}

io::Exit run_all(FileBench& bench) {
  auto device = open_device(bench);
  if (!device) return io::environment_failed(bench.console, device.error()).error;
  const std::string& path = bench.options.json;
  for (FileProblem& problem : bench.problems) {
    // The file is opened before each measurement, so that a file that cannot be written costs none.
    auto written = path.empty() ? Result<void>() : append_to_file(path, "");
    if (!written) return io::environment_failed(bench.console, written.error()).error;
    const auto row = run_problem(*device, bench, problem);
    bench.progress("");
    if (!row) return io::environment_failed(bench.console, row.error()).error;
    for (ir::Arguments::Value& value : problem.arguments.params) value.tensor.bytes = {};
    if (!*row) continue;
    bench.console.out << to_text(**row) << std::flush;
    if (!path.empty()) written = append_to_file(path, to_json(**row));
    if (!written) return io::environment_failed(bench.console, written.error()).error;
  }
  return bench.program.diags.has_errors() ? io::Exit::kWrong : io::Exit::kFine;
}

}  // namespace

io::Exit bench_file(const BenchOptions& options, io::Console& console) {
  io::Program program;
  io::Exit exit = io::compile(options.program, {.kernel = options.kernel}, program, console);
  if (exit == io::Exit::kFine) {
    FileBench bench{.options = options, .program = program, .console = console};
    const auto prepared = prepare(bench);
    exit = prepared ? run_all(bench) : prepared.error();
  }
  io::show_briefly(console, program.diags, program.sources);
  return exit;
}

}  // namespace kiln::measure
