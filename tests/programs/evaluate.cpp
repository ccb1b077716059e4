#include "programs/evaluate.h"

#include <cmath>
#include <cstring>
#include <optional>

#include "backends/backend.h"
#include "io/bind.h"
#include "io/expect.h"
#include "io/random_bits.h"
#include "passes/pass_table.h"
#include "programs/census.h"
#include "reference/compare.h"
#include "runtime/call.h"
#include "runtime/run.h"
#include "sema/sema.h"
#include "syntax/parser.h"

namespace kiln::programs {

namespace {

using io::Fill;

struct Compiled {
  Sources sources;
  Diagnostics diags;
  ir::Module tile;
  ir::Module decided;

  [[nodiscard]] const ir::Function& function() const { return decided.functions[0]; }
};

Verdict fault(std::string kind, std::string what, std::string detail) {
  return {.kind = std::move(kind), .what = std::move(what), .detail = std::move(detail)};
}

Verdict refused(const Diagnostics& diags, std::string kind) {
  for (const Diagnostic& each : diags.all()) {
    if (each.severity == Severity::kError) {
      return fault(std::move(kind), std::string(info(each.id).name), each.message);
    }
  }
  return fault(std::move(kind), "?", "no error was reported");
}

bool compile(const Sample& sample, Compiled& out) {
  const FileId file = out.sources.add("program.co", text(sample));
  const ast::Ast tree = parse_file(out.sources, file, {.definitions = sample.defines}, out.diags);
  auto module = sema::analyse(tree, *target::find_arch(sample.arch), out.sources, out.diags);
  if (!module) return false;
  out.tile = std::move(*module);
  out.decided = out.tile;
  const auto done = passes::run_passes(out.decided, out.diags);
  return done && !out.diags.has_errors() && out.decided.functions.size() == 1;
}

// The bits of a byte that a value may have: a truth value has one, a float without a sign seven.
unsigned bits_of(DType dtype) {
  if (dtype == DType::kBool) return 0x01;
  return dtype == DType::kUE4M3 ? 0x7f : 0xff;
}

// Any bits that are a value.
void fill_bits(Tensor& tensor, std::uint64_t seed) {
  io::RandomBits random(seed);
  const unsigned bits = bits_of(tensor.dtype);
  for (std::byte& each : tensor.bytes) each = static_cast<std::byte>(random.bits() & bits);
}

// Metadata of a sparse operand: each half byte names two places of a group of four in order, or one
// place of a group of two twice as wide (PTX ISA, "Matrix multiply-accumulate operation using
// mma.sp").
void fill_metadata(Tensor& tensor, bool pairs, std::uint64_t seed) {
  constexpr unsigned kTwoOfFour[] = {0x4, 0x8, 0xc, 0x9, 0xd, 0xe};
  constexpr unsigned kOneOfTwo[] = {0x4, 0xe};
  io::RandomBits random(seed);
  const auto half = [&] {
    return pairs ? kOneOfTwo[random.bits() % 2] : kTwoOfFour[random.bits() % 6];
  };
  for (std::byte& each : tensor.bytes) each = static_cast<std::byte>(half() | half() << 4);
}

// The fills of one sample: what is exact gets all bit patterns once.
struct Filling {
  Fill fill = Fill::kIntegers;
  bool bits = false;
};

std::vector<Filling> fillings(const Sample& sample, int count) {
  std::vector<Filling> out = {{Fill::kIntegers}};
  if (sample.exact) {
    out.push_back({Fill::kNormal, true});
    out.push_back({Fill::kAdversarial});
  } else {
    out.push_back({(sample.number & 1) != 0 ? Fill::kAdversarial : Fill::kNormal});
    out.push_back({(sample.number & 1) == 0 ? Fill::kAdversarial : Fill::kNormal});
  }
  out.resize(std::min(out.size(), static_cast<std::size_t>(std::max(count, 1))));
  return out;
}

std::optional<ir::Arguments> bind(const Sample& sample, const Compiled& compiled, Filling filling,
                                  Diagnostics& diags) {
  const ir::Function& function = compiled.function();
  auto bound = io::bind(
      function, {.shapes = sample.shape, .fill = filling.fill, .seed = sample.number}, diags);
  if (!bound || !io::check_entry(function, *bound, diags)) return std::nullopt;
  if (filling.bits) {
    for (const std::size_t i : ir::read_params(function)) {
      Tensor& tensor = bound->params[i].tensor;
      if (!tensor.bytes.empty()) fill_bits(tensor, sample.number * 64 + i);
    }
  }
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    const std::string& name = function.values[function.params[i].value].name;
    const bool pairs = name.starts_with("pairs");
    if (pairs || name.starts_with("meta")) {
      fill_metadata(bound->params[i].tensor, pairs, sample.number * 64 + i);
    }
  }
  return std::move(*bound);
}

reference::Numerics numerics_of(const ir::Function& decided) {
  return [&decided](ir::OpId id) {
    return io::accumulation_of(*std::get<ir::Mma>(decided.ops[id].data).atom);
  };
}

std::string element(const reference::Output& output, std::size_t at, double actual) {
  return format("{}[number {}] of {} in {}: expected {} +- {}, got {}", output.name, at,
                shape_text(output.shape), name(output.dtype), output.expected[at], output.bound[at],
                actual);
}

// Every output inside of its bounds.
Verdict against_reference(const reference::Outcome& reference, const ir::Arguments& arguments,
                          const std::string& place) {
  Verdict out;
  for (const reference::Output& output : reference.outputs) {
    const Tensor actual = backends::result_of(arguments, output);
    const reference::Comparison seen = reference::compare(output, actual);
    out.compared += seen.elements;
    out.not_compared += seen.not_compared;
    if (seen.outside == 0 || !out.kind.empty()) continue;
    std::size_t at = 0;
    if (seen.first) {
      for (std::size_t d = 0; d < output.shape.size(); ++d) {
        at = at * static_cast<std::size_t>(output.shape[d]) +
             static_cast<std::size_t>(seen.first->coordinates[d]);
      }
    }
    out.kind = place + "-outside";
    out.what = std::string(name(output.dtype));
    out.detail = format("{} of {} elements; ", seen.outside, seen.elements) +
                 element(output, at, actual.get(at));
  }
  return out;
}

Verdict reports_of(const sim::Outcome& outcome) {
  if (outcome.reports.empty()) return {};
  const sim::Report& report = outcome.reports.front();
  std::string detail = report.message;
  for (const sim::Access& access : report.accesses) detail += "; " + access.what;
  return fault("sim-report", std::string(sim::name(report.kind)),
               detail + format("; schedule {}", report.schedule_seed));
}

// Not a number is not a number; everything else to the bit.
bool same_bits(const Tensor& a, const Tensor& b, std::size_t at) {
  const auto size = static_cast<std::size_t>(size_bytes(a.dtype));
  if (std::memcmp(a.bytes.data() + at * size, b.bytes.data() + at * size, size) == 0) return true;
  return is_float(a.dtype) && std::isnan(a.get(at)) && std::isnan(b.get(at));
}

Verdict same(const reference::Outcome& reference, const ir::Arguments& sim,
             const ir::Arguments& gpu) {
  for (const reference::Output& output : reference.outputs) {
    const Tensor a = backends::result_of(sim, output);
    const Tensor b = backends::result_of(gpu, output);
    for (std::size_t i = 0; i < static_cast<std::size_t>(a.elements()); ++i) {
      if (same_bits(a, b, i)) continue;
      return fault("gpu-differs", std::string(name(a.dtype)),
                   element(output, i, b.get(i)) + format(", simulated {}", a.get(i)));
    }
  }
  return {};
}

// The process's GPU and what a sample was compiled to for it.
class Device {
 public:
  explicit Device(const Compiled& compiled) : compiled_(compiled) {}

  // Empty when all is well.
  Verdict load() {
    static Result<runtime::Gpu> gpu = runtime::Gpu::open();
    if (!gpu) return fault("gpu-none", "open", gpu.error().text());
    gpu_ = &*gpu;
    auto kernels =
        runtime::load_kernels(*gpu_, compiled_.decided, compiled_.function(), compiled_.sources);
    if (!kernels) return fault("nvrtc", "compile", kernels.error().text());
    kernels_.emplace(std::move(*kernels));
    return {};
  }

  Verdict run(ir::Arguments& arguments) {
    arguments.vars.resize(compiled_.function().vars.size());
    runtime::Call call(*gpu_, kernels_->module, compiled_.decided, compiled_.function(), arguments);
    const auto all = [&]() -> Result<void> {
      if (auto copied = call.copy_in(); !copied) return copied;
      if (auto prepared = call.prepare(); !prepared) return prepared;
      if (auto started = call.start(); !started) return started;
      if (auto waited = gpu_->synchronize(); !waited) return waited;
      return call.copy_out(arguments);
    };
    if (const auto done = all(); !done) return fault("gpu-failed", "run", done.error().text());
    const auto overrun = call.overrun();
    if (!overrun) return fault("gpu-failed", "overrun", overrun.error().text());
    if (!overrun->empty()) return fault("gpu-overrun", overrun->front(), "wrote outside");
    return {};
  }

 private:
  const Compiled& compiled_;
  runtime::Gpu* gpu_ = nullptr;
  std::optional<runtime::Kernels> kernels_;
};

class Evaluation {
 public:
  Evaluation(const Sample& sample, const EvaluateOptions& options)
      : sample_(sample), options_(options) {}

  Verdict run() {
    if (!compile(sample_, compiled_)) return refused(compiled_.diags, "refused");
    out_.census = census(compiled_.tile, compiled_.decided);
    std::optional<Device> device;
    if (options_.on == On::kGpu) {
      device.emplace(compiled_);
      if (Verdict loaded = device->load(); !loaded.kind.empty()) return with_counts(loaded);
    } else if (options_.on == On::kNvrtc) {
      const auto cubin = runtime::compile_to_cubin_only(compiled_.decided, compiled_.sources);
      if (!cubin) return with_counts(fault("nvrtc", "compile", cubin.error().text()));
    }
    for (const Filling& filling : fillings(sample_, options_.fills)) {
      Verdict one = run_filling(filling, device);
      if (!one.kind.empty()) {
        one.detail += format("; fill {}",
                             filling.bits ? "bits" : format("{}", static_cast<int>(filling.fill)));
        return with_counts(one);
      }
    }
    return out_;
  }

 private:
  Verdict with_counts(Verdict verdict) {
    verdict.census = out_.census;
    verdict.compared = out_.compared;
    verdict.not_compared = out_.not_compared;
    return verdict;
  }

  Verdict run_filling(const Filling& filling, std::optional<Device>& device) {
    const auto arguments = bind(sample_, compiled_, filling, compiled_.diags);
    if (!arguments) return refused(compiled_.diags, "not-bound");
    const reference::Outcome reference = reference::interpret(
        compiled_.tile.functions[0], *arguments, numerics_of(compiled_.function()));
    if (reference.failed_assert)
      return fault("reference", "assert", reference.failed_assert->message);
    if (!reference.stuck_at.empty()) return fault("reference", "stuck", "everybody waits");
    if (reference.outside_accesses != 0) return fault("reference", "outside", "an element access");
    ir::Arguments simulated = *arguments;
    if (options_.simulate) {
      if (Verdict one = simulate(reference, simulated); !one.kind.empty()) return one;
    }
    if (!device) return {};
    ir::Arguments on_gpu = *arguments;
    if (Verdict ran = device->run(on_gpu); !ran.kind.empty()) return ran;
    Verdict seen = against_reference(reference, on_gpu, "gpu");
    if (!seen.kind.empty()) return seen;
    return sample_.exact && options_.simulate ? same(reference, simulated, on_gpu) : Verdict{};
  }

  Verdict simulate(const reference::Outcome& reference, ir::Arguments& arguments) {
    arguments.vars.resize(compiled_.function().vars.size());
    sim::Options how;
    how.schedules = options_.schedules;
    const auto outcome = sim::run(compiled_.decided, compiled_.function(), arguments, how);
    if (!outcome) return fault("sim-failed", "run", outcome.error().text());
    if (Verdict reported = reports_of(*outcome); !reported.kind.empty()) return reported;
    Verdict seen = against_reference(reference, arguments, "sim");
    out_.compared += seen.compared;
    out_.not_compared += seen.not_compared;
    return seen;
  }

  const Sample& sample_;
  const EvaluateOptions& options_;
  Compiled compiled_;
  Verdict out_;
};

}  // namespace

Verdict evaluate(const Sample& sample, const EvaluateOptions& options) {
  return Evaluation(sample, options).run();
}

}  // namespace kiln::programs
