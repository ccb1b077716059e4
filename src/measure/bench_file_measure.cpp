#include <algorithm>

#include "io/expect.h"
#include "io/fill.h"
#include "io/oracle.h"
#include "measure/bench_check.h"
#include "measure/bench_file.h"
#include "measure/bench_machine.h"
#include "measure/bench_measure.h"
#include "measure/cublaslt.h"
#include "measure/timing.h"
#include "reference/compare.h"
#include "reference/formula_uses.h"
#include "support/escape.h"

namespace kiln::measure {

namespace {

// One problem's buffers, several times over.
struct Sets {
  std::deque<runtime::Call> calls;
  std::vector<runtime::DeviceBuffer> vendor_results;
  std::vector<ProductBuffers> vendor;         // empty: no product of two matrices
  bool vendor_ran = false;                    // its results are there
  std::vector<runtime::DeviceBuffer> copied;  // where there is no vendor: what is copied, and
  std::vector<runtime::DeviceBuffer> copies;  // where to
};

// Fills the inputs, which depend on `--seed` alone.
void fill_inputs(const FileBench& bench, FileProblem& problem) {
  const ir::Function& function = bench.function();
  for (const std::size_t i : ir::given_params(function)) {
    if (!std::holds_alternative<ir::ViewType>(function.type(function.params[i].value))) continue;
    Tensor& tensor = problem.arguments.params[i].tensor;
    if (tensor.bytes.empty()) tensor = Tensor::zeros(tensor.dtype, tensor.shape);
    io::fill_tensor_in_parts(
        tensor,
        {.fill = io::Fill::kNormal, .seed = bench.options.seed, .ordinal = i, .longest = 1});
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

Result<void> add_vendor_buffers(runtime::Gpu& gpu, const FileBench& bench, const ProductOf& product,
                                Sets& sets) {
  const runtime::Call& call = sets.calls.back();
  const auto address = [&](const std::string& name) {
    const ir::ValueId value = value_of(bench.function(), call, name);
    const runtime::DeviceBuffer* buffer = call.buffer(value);
    KILN_CHECK(buffer != nullptr, "`{}` has no buffer", name);
    return buffer->address();
  };
  const gemm::Problem& how = product.problem;
  const std::int64_t bytes = how.m * how.n * size_bytes(how.c);
  auto result = gpu.allocate(static_cast<std::size_t>(bytes));
  if (!result) return Unexpected{result.error()};
  if (auto filled = result->fill(0xff); !filled) return filled;
  sets.vendor.push_back({.a = address(product.a), .b = address(product.b), .c = result->address()});
  sets.vendor_results.push_back(std::move(*result));
  return {};
}

// Of all tensors that the function reads, writes or returns.
std::int64_t bytes_of(const FileBench& bench, const FileProblem& problem) {
  const ir::Function& function = bench.function();
  const std::vector<std::size_t> read = ir::read_params(function);
  const std::vector<std::size_t> written = ir::written_params(function);
  const auto is_idle = [&](const std::string& name) {
    const auto param = std::ranges::find(function.params, name, &ir::Param::name);
    if (param == function.params.end()) return false;
    const auto index = static_cast<std::size_t>(param - function.params.begin());
    return std::ranges::find(read, index) == read.end() &&
           std::ranges::find(written, index) == written.end();
  };
  std::int64_t bytes = 0;
  for (const reference::Named& named : problem.tensors) {
    if (!is_idle(named.name)) bytes += named.tensor->elements() * size_bytes(named.tensor->dtype);
  }
  return bytes;
}

// Makes a problem's buffers, each set with the same inputs in memory of its own; afterwards its
// arguments hold them.
Result<void> make_sets(FileDevice& device, const FileBench& bench, FileProblem& problem,
                       Sets& sets) {
  const std::size_t count = rotating_sets(bytes_of(bench, problem), device.gpu.arch().l2_bytes);
  bench.progress(format("{}: inputs", problem.shape));
  fill_inputs(bench, problem);
  for (std::size_t set = 0; set < count; ++set) {
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

// The vendor's product, or none and a note that says why.
std::optional<VendorProduct> find_vendor(FileDevice& device, const FileBench& bench,
                                         const FileProblem& problem, const Sets& sets) {
  const auto without = [&](const std::string& reason) {
    bench.progress("");
    bench.console.err << "note: no baseline for " << problem.shape << ": " << escape_lines(reason)
                      << "\n";
    return std::nullopt;
  };
  if (!problem.product) return std::nullopt;
  bench.progress(format("{}: algorithms of cuBLASLt", problem.shape));
  auto vendor = VendorProduct::prepare(device.gpu, problem.product->problem, problem.product->scale,
                                       sets.vendor);
  if (!vendor) return without(vendor.error().text());
  return std::move(*vendor);
}

const Tensor& tensor_of(const FileProblem& problem, const std::string& name) {
  const auto found = std::find_if(problem.tensors.begin(), problem.tensors.end(),
                                  [&](const auto& named) { return named.name == name; });
  return *found->tensor;
}

std::string einsum_types_of(const FileBench& bench, const FileProblem& problem) {
  std::string text;
  for (const reference::EinsumTerm& factor : bench.einsum->factors) {
    text += format("{}{}", text.empty() ? "" : " * ", name(tensor_of(problem, factor.name).dtype));
  }
  return format("{} -> {}", text, name(tensor_of(problem, bench.einsum->output.name).dtype));
}

// "bf16, f32 -> bf16": the types of the inputs and of the results, each once.
std::string types_shown(const FileBench& bench, const FileProblem& problem) {
  if (bench.einsum) return einsum_types_of(bench, problem);
  std::string text;
  const std::vector<std::string> outputs = io::output_names(bench.function());
  for (const bool is_input : {true, false}) {
    std::vector<DType> types;
    for (const reference::Named& named : problem.tensors) {
      const DType type = named.tensor->dtype;
      const bool is_output = std::ranges::find(outputs, named.name) != outputs.end();
      if (is_output == is_input || std::ranges::find(types, type) != types.end()) continue;
      text += format("{}{}", types.empty() ? "" : ", ", name(type));
      types.push_back(type);
    }
    if (is_input) text += " -> ";
  }
  return text;
}

BenchRow row_of(const FileDevice& device, const FileBench& bench, const FileProblem& problem) {
  BenchRow row{.suite = "file", .kernel = bench.function().name};
  if (problem.product) {
    const gemm::Problem& how = problem.product->problem;
    row.m = how.m;
    row.n = how.n;
    row.k = how.k;
  }
  row.shape = problem.shape;
  row.types = types_shown(bench, problem);
  if (!problem.product) row.bytes = bytes_of(bench, problem);
  if (problem.formula) {
    const double flops = reference::flops_of(*problem.formula);
    if (flops > 0) row.flops = flops;
  }
  row.compile_seconds = device.loads.cold;
  row.warm_load_seconds = device.loads.warm;
  row.machine =
      machine_of(device.gpu, std::string(bench.program.arch->name), device.kernels.nvrtc_version);
  return row;
}

// Buffers for copies of so many bytes, half of them read and half written: what memory allows a kernel
// that touches each once.
Result<void> make_copies(runtime::Gpu& gpu, std::int64_t touched, Sets& sets) {
  const auto bytes = static_cast<std::size_t>((touched + 1) / 2);
  for (std::size_t set = 0; set < sets.calls.size(); ++set) {
    for (auto* side : {&sets.copied, &sets.copies}) {
      auto buffer = gpu.allocate(bytes);
      if (!buffer) return Unexpected{buffer.error()};
      if (auto filled = buffer->fill(0x3c); !filled) return filled;
      side->push_back(std::move(*buffer));
    }
  }
  return {};
}

Result<BenchRow> measure_problem(FileDevice& device, const FileBench& bench,
                                 const FileProblem& problem, Sets& sets) {
  // Our kernel runs once before all else: one that fails is not the vendor's failure.
  for (runtime::Call& call : sets.calls) {
    if (auto started = call.start(); !started) return Unexpected{started.error()};
  }
  if (auto done = device.gpu.synchronize(); !done) return Unexpected{done.error()};
  const auto vendor = find_vendor(device, bench, problem, sets);
  std::vector<Contender> contenders = {{bench.function().name, [&](auto set, auto stream) {
                                          return sets.calls[set].start(stream);
                                        }}};
  if (vendor) {
    contenders.push_back({vendor->library(), [&](auto set, auto stream) {
                            return vendor->start(sets.vendor[set], stream);
                          }});
  } else if (!problem.product) {
    if (auto made = make_copies(device.gpu, bytes_of(bench, problem), sets); !made)
      return Unexpected{made.error()};
    contenders.push_back({"copy", [&](auto set, auto stream) {
                            return sets.copies[set].start_copy(sets.copied[set], stream);
                          }});
  }
  bench.progress(format("{}: measuring", problem.shape));
  BenchRow row = row_of(device, bench, problem);
  auto measured = measure_row(device.gpu, bench.options, sets.calls.size(), contenders, row);
  if (!measured) return Unexpected{measured.error()};
  if (vendor) row.baseline = vendor->library();
  if (!problem.product) row.baseline = "copy";
  sets.vendor_ran = vendor.has_value();
  return row;
}

// A comparison as a diagnostic, when it found something.
void report_outside(const FileBench& bench, const reference::EinsumTerm& output,
                    const reference::Comparison& found, std::string_view by) {
  if (found.elements != 0 && found.left_out == found.elements) {
    bench.program.diags.report<diag::ResultNotSampled>(output.span, output.name)
        .help("compare it with `kiln run --check full`")
        .emit();
  }
  if (found.outside == 0) return;
  auto report = bench.program.diags.report<diag::ResultOutside>(
      output.span, output.name, found.outside, format("{} elements", found.elements));
  const reference::Mismatch& first = *found.first;
  std::move(report)
      .note("the first is {}: {} has {}, allowed error {:.3g}, got {}",
            shape_text(first.coordinates), by, first.expected, first.bound, first.actual)
      .emit();
}

// Room on the host for what the kernel writes.
void make_room(const FileBench& bench, FileProblem& problem) {
  for (const std::size_t i : ir::written_params(bench.function())) {
    Tensor& tensor = problem.arguments.params[i].tensor;
    if (tensor.bytes.empty()) tensor = Tensor::zeros(tensor.dtype, tensor.shape);
  }
}

// Our result of set 0, on the host.
Result<Tensor> result_of_call(const FileBench& bench, FileProblem& problem,
                              const runtime::Call& call) {
  make_room(bench, problem);
  if (auto copied = call.copy_out(problem.arguments); !copied) return Unexpected{copied.error()};
  const auto named =
      std::find_if(problem.tensors.begin(), problem.tensors.end(),
                   [&](const auto& each) { return each.name == bench.einsum->output.name; });
  const bool returned = named->tensor == &problem.returned;
  return returned ? problem.arguments.returned.tensor : *named->tensor;
}

Result<void> check_product(FileDevice& device, const FileBench& bench, const FileProblem& problem,
                           const Sets& sets, const Tensor& result) {
  const ProductOf& product = *problem.product;
  const Measured measured{
      .a = tensor_of(problem, product.a), .b = tensor_of(problem, product.b), .c = result};
  const BothNumerics numerics{
      .ours = io::weakest(bench.function()),
      .vendor = vendor_numerics(product.problem, device.gpu.arch().capability)};
  report_outside(bench, bench.einsum->output,
                 check_sample(*bench.einsum, product, measured, numerics.ours, bench.options.seed),
                 "fp64");
  if (!sets.vendor_ran) return {};
  Tensor vendor = Tensor::zeros(result.dtype, result.shape);
  auto copied = sets.vendor_results.back().copy_out(vendor.bytes);
  if (!copied) return copied;
  report_outside(bench, bench.einsum->output,
                 compare_with_vendor(product, measured, vendor, numerics), "cuBLASLt");
  return {};
}

// Once more from the inputs of set 0, so that what a kernel both reads and writes was made of them.
Result<void> run_once_more(FileDevice& device, runtime::Call& call) {
  if (auto refilled = call.refill(); !refilled) return refilled;
  if (auto started = call.start(); !started) return started;
  return device.gpu.synchronize();
}

// What is no product of two matrices is compared as `kiln run` does: with the reference, which
// interprets a sample of the program's blocks, and with the formula where there is one.
Result<void> check_by_reference(FileDevice& device, const FileBench& bench, FileProblem& problem,
                                Sets& sets) {
  make_room(bench, problem);
  io::Oracle oracle{.program = bench.program, .function = bench.kernel, .seed = bench.options.seed};
  if (bench.console.progress) {
    oracle.limits.progress = [&](std::string_view text) { bench.progress(std::string(text)); };
  }
  const io::Said said = io::by_program(oracle, problem.arguments);
  const reference::Outcome& outcome = said.interpreted.outcome;
  if (outcome.out_of_memory) return Unexpected{*outcome.out_of_memory};
  if (outcome.gave_up) {
    return Unexpected{Error{"cannot check the result", problem.shape, outcome.gave_up->message}};
  }
  std::vector<reference::Output> stated;
  if (problem.formula) {
    auto expected = io::by_formula(oracle, said, *problem.formula);
    if (!expected) return Unexpected{expected.error()};
    stated = std::move(*expected);
  }
  if (auto run = run_once_more(device, sets.calls.back()); !run) return run;
  if (auto copied = sets.calls.back().copy_out(problem.arguments); !copied) return copied;
  for (const reference::Output& output : outcome.outputs) {
    std::vector<const reference::Output*> statements = {&output};
    for (const reference::Output& other : stated) {
      if (other.name == output.name) statements.push_back(&other);
    }
    const Tensor result = backends::result_of(problem.arguments, output);
    const reference::EinsumTerm named{output.name, bench.function().span, {}, {}};
    report_outside(bench, named, reference::compare(statements, result), "fp64");
  }
  return {};
}

// Checks our result of the last set.
Result<void> check_result(FileDevice& device, const FileBench& bench, FileProblem& problem,
                          Sets& sets) {
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
  if (!bench.einsum) return check_by_reference(device, bench, problem, sets);
  const auto result = result_of_call(bench, problem, sets.calls.back());
  if (!result) return Unexpected{result.error()};
  if (problem.product) return check_product(device, bench, problem, sets, *result);
  const auto expected = reference::evaluate(*bench.einsum, problem.tensors,
                                            io::weakest(bench.function()), bench.program.diags);
  if (expected) {
    report_outside(bench, bench.einsum->output, reference::compare(*expected, *result), "fp64");
  }
  return {};
}

}  // namespace

Result<std::optional<BenchRow>> run_problem(FileDevice& device, const FileBench& bench,
                                            FileProblem& problem) {
  const Diagnostics& diags = bench.program.diags;
  const std::size_t before = diags.all().size();
  Sets sets;
  if (auto made = make_sets(device, bench, problem, sets); !made) return Unexpected{made.error()};
  auto row = measure_problem(device, bench, problem, sets);
  if (!row) return Unexpected{row.error()};
  if (!bench.options.unchecked) {
    auto checked = check_result(device, bench, problem, sets);
    if (!checked) return Unexpected{checked.error()};
  }
  bench.progress("");
  if (diags.all().size() != before) return std::optional<BenchRow>();
  return std::optional(std::move(*row));
}

}  // namespace kiln::measure
