#include "measure/bench_attention.h"

#include <cmath>

#include "attention/plan.h"
#include "backends/device.h"
#include "measure/attention_check.h"
#include "measure/bench_device.h"
#include "measure/bench_machine.h"
#include "measure/bench_measure.h"
#include "measure/bench_row.h"
#include "measure/bench_run.h"

namespace kiln::measure {

namespace {

using AttentionProblem = attention::Problem;
using runtime::DeviceBuffer;

constexpr std::string_view kAttention = "attention";
constexpr std::int64_t kAttentionTokens = 16384;  // batch * rows
constexpr std::int64_t kAttentionWidth = 2048;    // heads * depth
constexpr std::int64_t kAttentionDepths[] = {64, 128, 256};
constexpr std::int64_t kAttentionRows[] = {1024, 2048, 4096, 8192, 16384};
constexpr unsigned char kNanByte = 0xff;  // each byte of one

struct AttentionSet {
  DeviceBuffer q;
  DeviceBuffer k;
  DeviceBuffer v;
  DeviceBuffer o;
  DeviceBuffer lse;
};

struct AttentionBench {
  const BenchOptions& options;
  io::Console& console;
  runtime::Gpu& gpu;
  BenchDevice device;
  std::vector<BenchRow> rows = {};
  bool wrong = false;
  bool failed = false;

  void progress(const std::string& text) const { io::show_progress(console, text); }
};

float attention_scale(const AttentionProblem& problem) {
  return static_cast<float>(1 / std::sqrt(static_cast<double>(problem.depth)));
}

std::vector<std::int64_t> shape_of_rows(const AttentionProblem& problem) {
  return {problem.batch, problem.queries, problem.heads, problem.depth};
}

std::int64_t attention_elements(const AttentionProblem& problem) {
  return problem.batch * problem.queries * problem.heads * problem.depth;
}

std::int64_t attention_sums(const AttentionProblem& problem) {
  return problem.batch * problem.heads * problem.queries;
}

std::int64_t attention_bytes(const AttentionProblem& problem) {
  return 4 * attention_elements(problem) * size_bytes(problem.dtype) +
         attention_sums(problem) * size_bytes(DType::kF32);
}

Result<AttentionSet> make_attention_set(AttentionBench& bench, const AttentionProblem& problem,
                                        std::uint64_t seed) {
  const auto bytes =
      static_cast<std::size_t>(attention_elements(problem) * size_bytes(problem.dtype));
  std::vector<DeviceBuffer> made;
  for (int i = 0; i < 5; ++i) {
    const bool sums = i == 4;
    auto buffer = bench.gpu.allocate(
        sums ? static_cast<std::size_t>(attention_sums(problem) * size_bytes(DType::kF32)) : bytes);
    if (!buffer) return Unexpected{buffer.error()};
    const bool is_input = i < 3;
    auto filled = is_input ? bench.device.fill_normal(*buffer, problem.dtype,
                                                      seed * 3 + static_cast<std::uint64_t>(i))
                           : buffer->fill(kNanByte);
    if (!filled) return Unexpected{filled.error()};
    made.push_back(std::move(*buffer));
  }
  return AttentionSet{std::move(made[0]), std::move(made[1]), std::move(made[2]),
                      std::move(made[3]), std::move(made[4])};
}

Result<Tensor> attention_tensor(const DeviceBuffer& from, DType dtype,
                                std::vector<std::int64_t> shape) {
  Tensor out = Tensor::zeros(dtype, std::move(shape));
  if (auto copied = from.copy_out(out.bytes); !copied) return Unexpected{copied.error()};
  return out;
}

Result<AttentionTensors> attention_tensors(const AttentionProblem& problem,
                                           const AttentionSet& set) {
  AttentionTensors out;
  const std::pair<const DeviceBuffer*, Tensor*> rows[] = {
      {&set.q, &out.q}, {&set.k, &out.k}, {&set.v, &out.v}, {&set.o, &out.o}};
  for (const auto& [from, to] : rows) {
    auto copy = attention_tensor(*from, problem.dtype, shape_of_rows(problem));
    if (!copy) return Unexpected{copy.error()};
    *to = std::move(*copy);
  }
  auto lse =
      attention_tensor(set.lse, DType::kF32, {problem.batch, problem.heads, problem.queries});
  if (!lse) return Unexpected{lse.error()};
  out.lse = std::move(*lse);
  return out;
}

// The largest error over its bound; what is outside is reported.
Result<double> check_attention_set(AttentionBench& bench, const AttentionProblem& problem,
                                   const AttentionSet& set, Diagnostics& diags) {
  if (auto done = bench.gpu.synchronize(); !done) return Unexpected{done.error()};
  const auto tensors = attention_tensors(problem, set);
  if (!tensors) return Unexpected{tensors.error()};
  const reference::Comparison found =
      check_attention(problem, *tensors, attention_scale(problem), bench.options.seed);
  if (found.outside > 0) {
    const reference::Mismatch& first = *found.first;
    diags
        .report<diag::ResultOutside>({}, first.coordinates.size() == 3 ? "lse" : "o", found.outside,
                                     format("{} elements", found.elements))
        .note("{}, {}", shape_of(problem), types_of(problem))
        .note("the first is {}: fp64 has {}, allowed error {:.3g}, got {}",
              shape_text(first.coordinates), first.expected, first.bound, first.actual)
        .emit();
  }
  const std::pair<const char*, const DeviceBuffer*> written[] = {{"o", &set.o}, {"lse", &set.lse}};
  for (const auto& [name, buffer] : written) {
    const auto intact = buffer->zones_intact();
    if (!intact) return Unexpected{intact.error()};
    if (*intact) continue;
    diags
        .report<diag::OutOfBounds>({}, format("a kernel wrote outside of the memory of `{}`", name))
        .note("{}, {}", shape_of(problem), types_of(problem))
        .emit();
  }
  return found.worst;
}

BenchRow attention_row(const AttentionBench& bench, const AttentionProblem& problem,
                       const attention::Plan& plan, const runtime::LoadTimes& loads) {
  const double products = problem.causal ? 2 : 4;
  BenchRow row{.suite = std::string(kAttention),
               .kernel = plan.choice().kernel,
               .shape = shape_of(problem),
               .types = types_of(problem),
               .flops = products * static_cast<double>(problem.queries) *
                        static_cast<double>(attention_elements(problem)),
               .bytes = attention_bytes(problem)};
  for (const auto& [name, value] : plan.choice().defines) row.defines[name] = value;
  row.compile_seconds = loads.cold;
  row.warm_load_seconds = loads.warm;
  row.machine = machine_of(bench.gpu, std::string(bench.gpu.arch().name),
                           plan.kernel().kernels.nvrtc_version);
  return row;
}

// A row when the result is right. Errors: the environment's; no kernel serves the problem.
Result<std::optional<BenchRow>> run_attention(AttentionBench& bench,
                                              const AttentionProblem& problem) {
  bench.progress(format("{}: compiling", shape_of(problem)));
  const auto device = gemm::library().current_device();
  if (!device) return Unexpected{device.error().error};
  const auto plan = attention::Plan::make(*device, problem);
  if (!plan) return Unexpected{plan.error().error};
  const auto loads = gemm::measure_loads(bench.gpu, *(*plan)->kernel().program);
  if (!loads) return Unexpected{loads.error()};
  bench.progress(format("{}: inputs", shape_of(problem)));
  std::vector<AttentionSet> sets;
  const std::size_t count = rotating_sets(attention_bytes(problem), bench.gpu.arch().l2_bytes);
  for (std::size_t i = 0; i < count; ++i) {
    auto set = make_attention_set(bench, problem, bench.options.seed * count + i);
    if (!set) return Unexpected{set.error()};
    sets.push_back(std::move(*set));
  }
  const auto start = [&](std::size_t i) {
    const AttentionSet& set = sets[i];
    return (*plan)->start({.q = set.q.address(),
                           .k = set.k.address(),
                           .v = set.v.address(),
                           .o = set.o.address(),
                           .lse = set.lse.address(),
                           .scale = attention_scale(problem)},
                          nullptr);
  };
  bench.progress(format("{}: measuring", shape_of(problem)));
  BenchRow row = attention_row(bench, problem, **plan, *loads);
  if (auto done = measure_row(bench.gpu, bench.options, sets.size(), {start}, row); !done) {
    return Unexpected{done.error()};
  }
  bench.progress(format("{}: checking", shape_of(problem)));
  Diagnostics diags;
  const auto worst = check_attention_set(bench, problem, sets[0], diags);
  if (!worst) return Unexpected{worst.error()};
  row.worst = *worst;
  bench.progress("");
  if (!diags.has_errors()) return std::optional(std::move(row));
  io::show(bench.console, diags, {});
  bench.wrong = true;
  return std::optional<BenchRow>();
}

Checked<std::vector<AttentionProblem>> wanted_attentions(const BenchOptions& options,
                                                         Diagnostics& diags) {
  const std::pair<const char*, bool> of_others[] = {
      {"--arch", !options.program.arch.empty()}, {"-D", !options.program.defines.empty()},
      {"--kernel", !options.kernel.empty()},     {"--shape", !options.shapes.empty()},
      {"--count", options.count != 0},           {"--expect", !options.expect.empty()}};
  for (const auto& [name, given] : of_others) {
    if (given) return diags.report<diag::BenchOptionUnused>({}, name, "`attention`").emit();
  }
  std::vector<AttentionProblem> out = attention_cases();
  std::erase_if(out, [&](const AttentionProblem& problem) {
    return format("{} {}", shape_of(problem), types_of(problem)).find(options.only) ==
           std::string::npos;
  });
  if (!out.empty()) return out;
  return diags.report<diag::BenchNothingLeft>({}, std::string(kAttention))
      .help("without them it has {}, from {} {} on", attention_cases().size(),
            shape_of(attention_cases().front()), types_of(attention_cases().front()))
      .emit();
}

}  // namespace

bool is_attention(const BenchOptions& options) { return options.program.file == kAttention; }

std::vector<AttentionProblem> attention_cases() {
  std::vector<AttentionProblem> out;
  for (const std::int64_t depth : kAttentionDepths) {
    for (const std::int64_t length : kAttentionRows) {
      for (const bool causal : {false, true}) {
        const AttentionProblem problem{.batch = kAttentionTokens / length,
                                       .queries = length,
                                       .keys = length,
                                       .heads = kAttentionWidth / depth,
                                       .key_heads = kAttentionWidth / depth,
                                       .depth = depth,
                                       .causal = causal};
        auto whole = attention::normalised(problem);
        KILN_CHECK(whole.has_value(), "{} is none", text(problem));
        out.push_back(*whole);
      }
    }
  }
  return out;
}

std::string shape_of(const AttentionProblem& problem) {
  return format("D={},S={},B={},H={}", problem.depth, problem.queries, problem.batch,
                problem.heads);
}

std::string types_of(const AttentionProblem& problem) {
  return format("{}, {}", name(problem.dtype), problem.causal ? "causal" : "full");
}

io::Exit bench_attention(const BenchOptions& options, io::Console& console) {
  Diagnostics diags;
  const auto cases = wanted_attentions(options, diags);
  if (!cases) {
    io::show(console, diags, {});
    return io::Exit::kUsage;
  }
  auto gpu = backends::open_device();
  if (!gpu) return io::environment_failed(console, gpu.error()).error;
  // Before anything is measured, so that a file that cannot be written costs nothing.
  if (!options.json.empty()) {
    if (auto can = append_to_file(options.json, ""); !can) {
      return io::environment_failed(console, can.error()).error;
    }
  }
  auto device = BenchDevice::open(*gpu);
  if (!device) return io::environment_failed(console, device.error()).error;
  AttentionBench bench{
      .options = options, .console = console, .gpu = *gpu, .device = std::move(*device)};
  const auto label = [](const AttentionProblem& problem) {
    return shape_of(problem) + ", " + types_of(problem);
  };
  const auto ran = run_problems(bench, *cases, label, run_attention);
  console.out << to_text(std::string(kAttention), summarise_rows(bench.rows))
              << "beside others: python bench/peers/attention.py\n";
  if (!ran) return io::environment_failed(console, ran.error()).error;
  if (bench.wrong) return io::Exit::kWrong;
  return bench.failed ? io::Exit::kEnvironment : io::Exit::kFine;
}

}  // namespace kiln::measure
