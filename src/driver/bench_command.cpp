// `kiln bench`: compile, bind each shape, measure beside the vendor's library, check, report.
#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>

#include "driver/bench_check.h"
#include "driver/bench_suite.h"
#include "driver/bind.h"
#include "driver/commands.h"
#include "driver/expect.h"
#include "driver/machine.h"
#include "driver/program.h"
#include "reference/compare.h"
#include "runtime/bench.h"
#include "runtime/call.h"
#include "sema/coverage.h"
#include "support/file.h"

namespace kiln::driver {

namespace {

// One problem: what `--shape` and `--expect` say together.
struct Problem {
  std::string shape;  // as given
  ir::Arguments arguments;
  Tensor returned;  // type and shape of what the function returns, when that is no parameter
  std::vector<reference::Named> tensors;
  std::optional<ProductOf> product;
};

// Everything that is the same for all problems.
struct Bench {
  const BenchOptions& options;
  Program& program;
  Console& console;
  std::size_t kernel = 0;
  reference::Einsum einsum = {};
  std::deque<Problem> problems = {};

  [[nodiscard]] const ir::Function& function() const { return program.decided.functions[kernel]; }
  void progress(const std::string& text) const;
  Stage<void> bind_problem(const std::vector<Assignment>& shapes, std::string text);
};

// Overwrites the line before; nothing when nobody watches.
void Bench::progress(const std::string& text) const {
  if (console.progress) console.err << "\r\x1b[K" << text << std::flush;
}

Stage<void> Bench::bind_problem(const std::vector<Assignment>& shapes, std::string text) {
  BindOptions how;
  how.shapes = shapes;
  how.seed = options.seed;
  how.memory_bytes_max = memory_bytes();
  how.use = Use::kBench;
  auto arguments = bind(function(), std::move(how), program.diags);
  if (!arguments) return Unexpected{Exit::kUsage};
  if (!check_entry(function(), *arguments, program.diags)) return Unexpected{Exit::kWrong};
  sema::check_coverage(program.tile.functions[kernel], arguments->vars, program.diags);
  Problem& problem = problems.emplace_back();
  problem.shape = std::move(text);
  problem.arguments = std::move(*arguments);
  problem.tensors = named_tensors(function(), problem.arguments, problem.returned);
  const bool fits = reference::check(einsum, problem.tensors, program.diags).has_value() &&
                    check_output(function(), einsum, problem.tensors, program.diags).has_value();
  if (!fits) return Unexpected{Exit::kUsage};
  problem.product = matrix_product(einsum, problem.tensors);
  return {};
}

// All mistakes of the command line are found here, before any GPU is needed.
Stage<void> prepare(Bench& bench) {
  const auto kernel = choose_kernel(bench.program, bench.options.program.file, bench.options.kernel,
                                    bench.program.diags);
  if (!kernel) return Unexpected{Exit::kUsage};
  bench.kernel = *kernel;
  if (bench.options.expect.empty()) {
    bench.program.diags.report<diag::OptionForm>({}, "--expect", "", "`c[m,n] = a[m,k] * b[n,k]`")
        .help(
            "it says what the kernel computes: results are checked by it, and the baseline is "
            "found by it")
        .emit();
    return Unexpected{Exit::kUsage};
  }
  auto einsum =
      reference::parse_einsum(bench.options.expect, bench.program.sources, bench.program.diags);
  if (!einsum) return Unexpected{Exit::kUsage};
  bench.einsum = std::move(*einsum);
  std::vector<std::string> texts = bench.options.shapes;
  if (texts.empty()) texts.emplace_back();  // reports what is missing
  for (const std::string& text : texts) {
    std::vector<Assignment> shapes;
    if (!text.empty()) {
      auto parsed =
          parse_assignments("--shape", {text}, ListForm::kCommaSeparated, bench.program.diags);
      if (!parsed) return Unexpected{Exit::kUsage};
      shapes = std::move(*parsed);
    }
    const auto bound = bench.bind_problem(shapes, text);
    if (!bound) return bound;
  }
  return {};
}

// The GPU, and the kernels on it.
struct Device {
  runtime::Gpu gpu;
  runtime::Kernels kernels;
};

// One problem's buffers, several times over.
struct Sets {
  std::deque<runtime::Call> calls;
  std::vector<runtime::DeviceBuffer> vendor_results;
  std::vector<runtime::ProductBuffers> vendor;  // empty: no product of two matrices
  bool vendor_ran = false;                      // its results are there
};

// Fills the inputs of one set. Those of set 0 depend on `--seed` alone.
void fill_inputs(const Bench& bench, Problem& problem, std::size_t set) {
  const ir::Function& function = bench.function();
  for (const std::size_t i : ir::read_params(function)) {
    if (!std::holds_alternative<ir::ViewType>(function.type(function.params[i].value))) continue;
    Tensor& tensor = problem.arguments.params[i].tensor;
    if (tensor.bytes.empty()) tensor = Tensor::zeros(tensor.dtype, tensor.shape);
    fill_tensor_in_parts(tensor, {.fill = Fill::kNormal,
                                  .seed = bench.options.seed + 1000003 * set,
                                  .ordinal = i,
                                  .longest = 1});
  }
}

// A tensor of the problem: a parameter's value, or the returned one.
ir::ValueId value_of(const ir::Function& function, const runtime::Call& call,
                     const std::string& name) {
  for (const ir::Param& param : function.params) {
    if (param.name == name) return param.value;
  }
  return call.returned();
}

Result<void> add_vendor_buffers(runtime::Gpu& gpu, const Bench& bench, const ProductOf& product,
                                Sets& sets) {
  const runtime::Call& call = sets.calls.back();
  const auto address = [&](const std::string& name) {
    const ir::ValueId value = value_of(bench.function(), call, name);
    const runtime::DeviceBuffer* buffer = call.buffer(value);
    KILN_CHECK(buffer != nullptr, "`{}` has no buffer", name);
    return buffer->address();
  };
  const runtime::MatrixProduct& how = product.product;
  const std::int64_t bytes = how.m * how.n * size_bytes(how.c);
  auto result = gpu.allocate(static_cast<std::size_t>(bytes));
  if (!result) return Unexpected{result.error()};
  if (auto filled = result->fill(0xff); !filled) return filled;
  sets.vendor.push_back({.a = address(product.a), .b = address(product.b), .c = result->address()});
  sets.vendor_results.push_back(std::move(*result));
  return {};
}

std::int64_t bytes_of(const Problem& problem) {
  std::int64_t bytes = 0;
  for (const reference::Named& named : problem.tensors) {
    bytes += named.tensor->elements() * size_bytes(named.tensor->dtype);
  }
  return bytes;
}

// Afterwards the arguments hold the inputs of set 0.
Result<void> make_sets(Device& device, const Bench& bench, Problem& problem, Sets& sets) {
  const std::size_t count = runtime::rotating_sets(bytes_of(problem), device.gpu.arch().l2_bytes);
  for (std::size_t set = count; set-- > 0;) {
    bench.progress(format("{}: inputs, {} of {}", problem.shape, count - set, count));
    fill_inputs(bench, problem, set);
    runtime::Call& call =
        sets.calls.emplace_back(device.gpu, device.kernels.module, bench.program.decided,
                                bench.function(), problem.arguments);
    if (auto copied = call.copy_in(); !copied) return copied;
    if (auto prepared = call.prepare(); !prepared) return prepared;
    if (!problem.product) continue;
    auto added = add_vendor_buffers(device.gpu, bench, *problem.product, sets);
    if (!added) return added;
  }
  return {};
}

// What is written about one problem.
struct Row {
  std::vector<double> ours;
  std::vector<double> theirs;  // empty: no baseline
  std::string baseline;        // the library, by name and version
};

// The vendor's product, or none and a note that says why.
std::optional<runtime::VendorProduct> find_vendor(Device& device, const Bench& bench,
                                                  const Problem& problem, const Sets& sets) {
  const auto without = [&](const std::string& reason) {
    bench.progress("");
    bench.console.err << "note: no baseline for " << problem.shape << ": " << reason << "\n";
    return std::nullopt;
  };
  if (!problem.product) return without("`--expect` is not a product of two matrices");
  bench.progress(format("{}: algorithms of cuBLASLt", problem.shape));
  auto vendor = runtime::VendorProduct::prepare(device.gpu, problem.product->product, sets.vendor);
  if (!vendor) return without(vendor.error().text());
  return std::move(*vendor);
}

Result<Row> measure_problem(Device& device, const Bench& bench, const Problem& problem,
                            Sets& sets) {
  // Once before all else: a kernel that fails is not the vendor's failure.
  for (runtime::Call& call : sets.calls) {
    if (auto started = call.start(); !started) return Unexpected{started.error()};
  }
  if (auto done = device.gpu.synchronize(); !done) return Unexpected{done.error()};
  const auto vendor = find_vendor(device, bench, problem, sets);
  std::vector<runtime::Start> contenders = {
      [&](std::size_t set) { return sets.calls[set].start(); }};
  if (vendor) {
    contenders.emplace_back([&](std::size_t set) { return vendor->start(sets.vendor[set]); });
  }
  bench.progress(format("{}: measuring", problem.shape));
  auto seconds = runtime::measure(device.gpu, contenders,
                                  {.sets = sets.calls.size(), .repeats = bench.options.repeats});
  if (!seconds) return Unexpected{seconds.error()};
  Row row;
  row.ours = std::move((*seconds)[0]);
  if (vendor) row.theirs = std::move((*seconds)[1]);
  if (vendor) row.baseline = vendor->library();
  sets.vendor_ran = vendor.has_value();
  return row;
}

// A comparison as a diagnostic, when it found something.
void report_outside(const Bench& bench, const reference::Comparison& found, std::string_view by) {
  if (found.outside == 0) return;
  const std::string& name = bench.einsum.output.name;
  auto report = bench.program.diags.report<diag::ResultOutside>(
      bench.einsum.output.span, name, found.outside, format("{} elements", found.elements));
  const reference::Mismatch& first = *found.first;
  std::move(report)
      .note("the first is {}: {} has {}, allowed error {:.3g}, got {}",
            shape_text(first.coordinates), by, first.expected, first.bound, first.actual)
      .emit();
}

// Our result of set 0, on the host.
Result<Tensor> result_of_call(const Bench& bench, Problem& problem, const runtime::Call& call) {
  for (const std::size_t i : ir::written_params(bench.function())) {
    Tensor& tensor = problem.arguments.params[i].tensor;
    if (tensor.bytes.empty()) tensor = Tensor::zeros(tensor.dtype, tensor.shape);
  }
  if (auto copied = call.copy_out(problem.arguments); !copied) return Unexpected{copied.error()};
  const auto named =
      std::find_if(problem.tensors.begin(), problem.tensors.end(),
                   [&](const auto& each) { return each.name == bench.einsum.output.name; });
  const bool returned = named->tensor == &problem.returned;
  return returned ? problem.arguments.returned.tensor : *named->tensor;
}

const Tensor& tensor_of(const Problem& problem, const std::string& name) {
  const auto found = std::find_if(problem.tensors.begin(), problem.tensors.end(),
                                  [&](const auto& named) { return named.name == name; });
  return *found->tensor;
}

Result<void> check_product(Device& device, const Bench& bench, const Problem& problem,
                           const Sets& sets, const Tensor& result) {
  const ProductOf& product = *problem.product;
  const Measured measured{
      .a = tensor_of(problem, product.a), .b = tensor_of(problem, product.b), .c = result};
  const BothNumerics numerics{
      .ours = weakest(bench.function()),
      .vendor = vendor_numerics(product.product, device.gpu.arch().capability)};
  report_outside(bench,
                 check_sample(bench.einsum, product, measured, numerics.ours, bench.options.seed),
                 "fp64");
  if (!sets.vendor_ran) return {};
  Tensor vendor = Tensor::zeros(result.dtype, result.shape);
  auto copied = sets.vendor_results.back().copy_out(vendor.bytes);
  if (!copied) return copied;
  report_outside(bench, compare_with_vendor(product, measured, vendor, numerics), "cuBLASLt");
  return {};
}

// Set 0 was made last.
Result<void> check_result(Device& device, const Bench& bench, Problem& problem, const Sets& sets) {
  bench.progress(format("{}: checking", problem.shape));
  for (const runtime::Call& call : sets.calls) {
    const auto overrun = call.overrun();
    if (!overrun) return Unexpected{overrun.error()};
    for (const std::string& name : *overrun) {
      bench.program.diags
          .report<diag::OutOfBounds>(bench.function().span,
                                     format("a kernel wrote outside of the memory of `{}`", name))
          .emit();
    }
  }
  const auto result = result_of_call(bench, problem, sets.calls.back());
  if (!result) return Unexpected{result.error()};
  if (problem.product) return check_product(device, bench, problem, sets, *result);
  const auto expected = reference::evaluate(bench.einsum, problem.tensors,
                                            weakest(bench.function()), bench.program.diags);
  if (expected) report_outside(bench, reference::compare(*expected, *result), "fp64");
  return {};
}

// The kernel driver's version as the system tells it, else what CUDA the driver serves.
std::string driver_version(const runtime::Gpu& gpu) {
  auto text = read_file("/sys/module/nvidia/version");
  if (!text || text->empty()) return format("CUDA {}", gpu.driver_cuda());
  while (!text->empty() && text->back() == '\n') text->pop_back();
  return *text;
}

std::string types_text(const Bench& bench, const Problem& problem) {
  std::string text;
  for (const reference::EinsumTerm& factor : bench.einsum.factors) {
    text += format("{}{}", text.empty() ? "" : " * ", name(tensor_of(problem, factor.name).dtype));
  }
  return format("{} -> {}", text, name(tensor_of(problem, bench.einsum.output.name).dtype));
}

// Of one launch; only where `--expect` is a product of matrices.
std::optional<double> tflops(const Problem& problem, double seconds) {
  if (!problem.product) return std::nullopt;
  const runtime::MatrixProduct& how = problem.product->product;
  return 2e-12 * static_cast<double>(how.m) * static_cast<double>(how.n) *
         static_cast<double>(how.k) / seconds;
}

using Json = nlohmann::ordered_json;

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

std::string row_json(const Device& device, const Bench& bench, const Problem& problem,
                     const Row& row) {
  const double seconds = runtime::median(row.ours);
  Json out = {{"suite", "file"}, {"kernel", bench.function().name}};
  const bool product = problem.product.has_value();
  out["m"] = product ? Json(problem.product->product.m) : Json(nullptr);
  out["n"] = product ? Json(problem.product->product.n) : Json(nullptr);
  out["k"] = product ? Json(problem.product->product.k) : Json(nullptr);
  out["shape"] = problem.shape;
  out["types"] = types_text(bench, problem);
  out["tflops"] = or_null(tflops(problem, seconds));
  for (const char* key : {"baseline_tflops", "ratio", "spread", "baseline", "baseline_seconds"}) {
    out[key] = nullptr;
  }
  out["seconds"] = seconds;
  if (!row.theirs.empty()) {
    const runtime::Summary summary = runtime::summarise(row.ours, row.theirs);
    out["baseline_tflops"] = or_null(tflops(problem, summary.theirs));
    out["ratio"] = summary.ratio;
    out["spread"] = summary.spread;
    out["baseline"] = row.baseline;
    out["baseline_seconds"] = summary.theirs;
  }
  out["repeats"] = row.ours.size();
  out["compile_seconds"] = device.kernels.emit_seconds + device.kernels.compile_seconds;
  out["arch"] = bench.program.arch->name;
  out["device"] = device.gpu.name();
  out["clock_mhz"] = device.gpu.clock_mhz();
  out["driver"] = driver_version(device.gpu);
  out["toolkit"] = device.kernels.nvrtc_version;
  out["version"] = KILN_VERSION;
  return out.dump() + "\n";
}

// One line of fixed columns: it is printed as soon as it is known.
std::string row_text(const Bench& bench, const Problem& problem, const Row& row) {
  const double seconds = runtime::median(row.ours);
  const auto speed = tflops(problem, seconds);
  if (!speed) return format("{:<28} {:>10.2f} us\n", problem.shape, seconds * 1e6);
  std::string text = format("{:<28} {}  {:>10.2f} us  {:>7.1f} TFLOP/s", problem.shape,
                            types_text(bench, problem), seconds * 1e6, *speed);
  if (row.theirs.empty()) return text + "\n";
  const runtime::Summary summary = runtime::summarise(row.ours, row.theirs);
  return text + format("  {} {:>7.1f}  ratio {:.3f} (spread {:.3f})\n", row.baseline,
                       *tflops(problem, summary.theirs), summary.ratio, summary.spread);
}

// Measures, checks and tells. A wrong result is in the diagnostics, and has no row.
Result<std::string> run_problem(Device& device, const Bench& bench, Problem& problem) {
  const Diagnostics& diags = bench.program.diags;
  const std::size_t before = diags.all().size();
  Sets sets;
  if (auto made = make_sets(device, bench, problem, sets); !made) return Unexpected{made.error()};
  const auto row = measure_problem(device, bench, problem, sets);
  if (!row) return Unexpected{row.error()};
  auto checked = check_result(device, bench, problem, sets);
  if (!checked) return Unexpected{checked.error()};
  bench.progress("");
  if (diags.all().size() != before) return std::string();
  bench.console.out << row_text(bench, problem, *row) << std::flush;
  return row_json(device, bench, problem, *row);
}

Result<Device> open_device(const Bench& bench) {
  auto gpu = runtime::Gpu::open();
  if (!gpu) return Unexpected{Error{"no GPU that kiln can use", {}, gpu.error().text()}};
  bench.progress("compiling");
  auto kernels =
      runtime::load_kernels(*gpu, bench.program.decided, bench.function(), bench.program.sources);
  bench.progress("");
  if (!kernels) return Unexpected{kernels.error()};
  return Device{.gpu = std::move(*gpu), .kernels = std::move(*kernels)};
}

Exit run_all(Bench& bench) {
  auto device = open_device(bench);
  if (!device) return environment_failed(bench.console, device.error()).error;
  std::string lines;
  for (Problem& problem : bench.problems) {
    // Before each measurement, so that a file that cannot be written costs none.
    const std::string& path = bench.options.json;
    if (const auto written = path.empty() ? Result<void>() : write_file(path, lines); !written) {
      return environment_failed(bench.console, written.error()).error;
    }
    auto line = run_problem(*device, bench, problem);
    bench.progress("");
    if (!line) return environment_failed(bench.console, line.error()).error;
    lines += *line;
    for (ir::Arguments::Value& value : problem.arguments.params) value.tensor.bytes = {};
  }
  if (!bench.options.json.empty()) {
    const Exit written = write_text(bench.console, bench.options.json, lines);
    if (written != Exit::kFine) return written;
  }
  return bench.program.diags.has_errors() ? Exit::kWrong : Exit::kFine;
}

}  // namespace

Exit bench(const BenchOptions& options, Console& console) {
  if (is_suite(options.program.file)) return bench_suite(options, console);
  Program program;
  Exit exit = compile(options.program, {}, program, console);
  if (exit == Exit::kFine) {
    Bench bench{.options = options, .program = program, .console = console};
    const auto prepared = prepare(bench);
    exit = prepared ? run_all(bench) : prepared.error();
  }
  show_briefly(console, program.diags, program.sources);
  return exit;
}

}  // namespace kiln::driver
