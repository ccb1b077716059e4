#include "measure/bench_attention.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "attention/plan.h"
#include "backends/device.h"
#include "io/expect.h"
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
constexpr std::string_view kBackward = "attention-backward";
constexpr std::string_view kOf8Bits = "attention-fp8";
constexpr std::int64_t kAttentionTokens = 16384;  // batch * rows
constexpr std::int64_t kAttentionWidth = 2048;    // heads * depth
constexpr std::int64_t kAttentionDepths[] = {64, 128, 256};
constexpr std::int64_t kAttentionRows[] = {1024, 2048, 4096, 8192, 16384};
constexpr unsigned char kNanByte = 0xff;  // each byte of one

// The tensors of a problem as parts_of() has them, lse, and of 8 bits the factors of q, k and v.
struct AttentionSet {
  std::vector<DeviceBuffer> parts;
  DeviceBuffer lse;
  std::vector<DeviceBuffer> factors = {};
};

// A problem that can be started; of gradients the forward pass too, which makes what they read.
struct AttentionContest {
  const AttentionProblem& problem;
  std::unique_ptr<attention::Plan> plan;
  std::unique_ptr<attention::Plan> forward = nullptr;
  std::optional<DeviceBuffer> workspace = std::nullopt;
  std::vector<AttentionSet> sets = {};

  Result<void> start(std::size_t set, runtime::cuda::Stream stream) const;
  Result<void> start_forward(std::size_t set) const;
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

std::int64_t attention_elements(const AttentionProblem& problem) {
  return problem.batch * problem.queries * problem.heads * problem.depth;
}

std::int64_t attention_sums(const AttentionProblem& problem) {
  return problem.batch * problem.heads * problem.queries;
}

// The same for each set and each of q, k and v: some numbers around 1.
Tensor factors_of(const AttentionProblem& problem) {
  Tensor out = Tensor::zeros(DType::kF32, {problem.batch, problem.key_heads});
  for (std::int64_t i = 0; i < out.elements(); ++i) {
    out.set(static_cast<std::size_t>(i), 0.625 + 0.25 * static_cast<double>(i % 4));
  }
  return out;
}

std::size_t parts_count(const AttentionProblem& problem) {
  return problem.backward ? attention::parts_of(problem).size() : attention::kPartsOfForward;
}

std::int64_t attention_bytes(const AttentionProblem& problem) {
  std::int64_t bytes = attention_sums(problem) * size_bytes(DType::kF32);
  const auto parts = attention::parts_of(problem);
  for (std::size_t i = 0; i < parts_count(problem); ++i) {
    bytes +=
        problem.batch * parts[i].rows * parts[i].heads * problem.depth * size_bytes(parts[i].dtype);
  }
  return bytes;
}

attention::Operands operands_of(const AttentionSet& set, float scale) {
  attention::Operands out{.lse = set.lse.address(), .scale = scale};
  runtime::cuda::DevicePtr* const places[] = {&out.q,    &out.k,  &out.v,  &out.o,
                                              &out.dout, &out.dq, &out.dk, &out.dv};
  for (std::size_t i = 0; i < set.parts.size(); ++i) *places[i] = set.parts[i].address();
  runtime::cuda::DevicePtr* const factors[] = {&out.q_scale, &out.k_scale, &out.v_scale};
  for (std::size_t i = 0; i < set.factors.size(); ++i) *factors[i] = set.factors[i].address();
  return out;
}

Result<void> AttentionContest::start(std::size_t set, runtime::cuda::Stream stream) const {
  return plan->start(operands_of(sets[set], attention_scale(problem)),
                     workspace ? workspace->address() : 0, stream);
}

Result<void> AttentionContest::start_forward(std::size_t set) const {
  return forward->start(operands_of(sets[set], attention_scale(problem)), 0, nullptr);
}

Result<void> add_factors(AttentionBench& bench, const AttentionProblem& problem,
                         AttentionSet& set) {
  if (!has_8_bits(problem)) return {};
  const Tensor factors = factors_of(problem);
  for (int i = 0; i < 3; ++i) {
    auto buffer = bench.gpu.allocate(factors.bytes.size());
    if (!buffer) return Unexpected{buffer.error()};
    if (auto copied = buffer->copy_in(factors.bytes); !copied) return copied;
    set.factors.push_back(std::move(*buffer));
  }
  return {};
}

Result<AttentionSet> make_attention_set(AttentionBench& bench, const AttentionProblem& problem,
                                        std::uint64_t seed) {
  const auto parts = attention::parts_of(problem);
  std::vector<DeviceBuffer> made;
  for (std::size_t i = 0; i < parts_count(problem); ++i) {
    const auto bytes = static_cast<std::size_t>(problem.batch * parts[i].rows * parts[i].heads *
                                                problem.depth * size_bytes(parts[i].dtype));
    auto buffer = bench.gpu.allocate(bytes);
    if (!buffer) return Unexpected{buffer.error()};
    // Gradients read an o as well, which a forward pass is still to make.
    const bool is_input = !parts[i].written && std::string_view(parts[i].name) != "o";
    auto filled = is_input ? bench.device.fill_normal(*buffer, parts[i].dtype, seed * 8 + i)
                           : buffer->fill(kNanByte);
    if (!filled) return Unexpected{filled.error()};
    made.push_back(std::move(*buffer));
  }
  auto lse = bench.gpu.allocate(
      static_cast<std::size_t>(attention_sums(problem) * size_bytes(DType::kF32)));
  if (!lse) return Unexpected{lse.error()};
  if (auto filled = lse->fill(kNanByte); !filled) return Unexpected{filled.error()};
  AttentionSet out{.parts = std::move(made), .lse = std::move(*lse)};
  if (auto added = add_factors(bench, problem, out); !added) return Unexpected{added.error()};
  return out;
}

Result<void> copy_out(const DeviceBuffer& from, DType dtype, std::vector<std::int64_t> shape,
                      Tensor& to) {
  to = Tensor::zeros(dtype, std::move(shape));
  return from.copy_out(to.bytes);
}

Result<AttentionTensors> attention_tensors(const AttentionProblem& problem,
                                           const AttentionSet& set) {
  AttentionTensors out;
  Tensor* const places[] = {&out.q, &out.k, &out.v, &out.o, &out.dout, &out.dq, &out.dk, &out.dv};
  const auto parts = attention::parts_of(problem);
  for (std::size_t i = 0; i < set.parts.size(); ++i) {
    auto copied =
        copy_out(set.parts[i], parts[i].dtype,
                 {problem.batch, parts[i].rows, parts[i].heads, problem.depth}, *places[i]);
    if (!copied) return Unexpected{copied.error()};
  }
  auto copied =
      copy_out(set.lse, DType::kF32, {problem.batch, problem.heads, problem.queries}, out.lse);
  if (!copied) return Unexpected{copied.error()};
  if (has_8_bits(problem)) out.q_scale = out.k_scale = out.v_scale = factors_of(problem);
  return out;
}

void report_outside(const AttentionProblem& problem, const AttentionFound& found,
                    Diagnostics& diags) {
  if (found.result.outside == 0) return;
  const reference::Mismatch& first = *found.result.first;
  diags
      .report<diag::ResultOutside>({}, found.name, found.result.outside,
                                   format("{} elements", found.result.elements))
      .note("{}, {}", shape_of(problem), types_of(problem))
      .note("the first is {}: fp64 has {}, allowed error {:.3g}, got {}",
            shape_text(first.coordinates), first.expected, first.bound, first.actual)
      .emit();
}

// Whether nobody wrote outside of a buffer; else it is reported.
Result<void> check_zones(const AttentionProblem& problem, const char* name,
                         const DeviceBuffer& buffer, Diagnostics& diags) {
  const auto intact = buffer.zones_intact();
  if (!intact) return Unexpected{intact.error()};
  if (*intact) return {};
  diags.report<diag::OutOfBounds>({}, format("a kernel wrote outside of the memory of `{}`", name))
      .note("{}, {}", shape_of(problem), types_of(problem))
      .emit();
  return {};
}

// The largest error over its bound in the first set; what is outside is reported.
Result<double> check_attention_set(AttentionBench& bench, const AttentionContest& contest,
                                   Diagnostics& diags) {
  if (auto done = bench.gpu.synchronize(); !done) return Unexpected{done.error()};
  const AttentionProblem& problem = contest.problem;
  const AttentionSet& set = contest.sets[0];
  const auto tensors = attention_tensors(problem, set);
  if (!tensors) return Unexpected{tensors.error()};
  const AttentionNumerics numerics{.scale = attention_scale(problem),
                                   .sums = io::weakest(contest.plan->kernel().program->function())};
  double worst = 0;
  for (const AttentionFound& found :
       check_attention(problem, *tensors, numerics, bench.options.seed)) {
    report_outside(problem, found, diags);
    worst = std::max(worst, found.result.worst);
  }
  const auto parts = attention::parts_of(problem);
  for (std::size_t i = 0; i < set.parts.size(); ++i) {
    auto checked = check_zones(problem, parts[i].name, set.parts[i], diags);
    if (!checked) return Unexpected{checked.error()};
  }
  if (auto checked = check_zones(problem, "lse", set.lse, diags); !checked) {
    return Unexpected{checked.error()};
  }
  if (!contest.workspace) return worst;
  auto checked = check_zones(problem, "workspace", *contest.workspace, diags);
  if (!checked) return Unexpected{checked.error()};
  return worst;
}

BenchRow attention_row(const AttentionBench& bench, const AttentionProblem& problem,
                       const attention::Plan& plan, const runtime::LoadTimes& loads) {
  // Two products forward, five of gradients; half of each with a mask.
  const double products = (problem.backward ? 10 : 4) * (problem.causal ? 0.5 : 1);
  BenchRow row{
      .suite = bench.options.program.file,
      .kernel = plan.choice().kernel,
      .shape = shape_of(problem),
      .types = types_of(problem),
      .flops = products * static_cast<double>(problem.queries) *
               static_cast<double>(attention_elements(problem)),
      // Beside a baseline that moves others they would say nothing.
      .bytes = has_8_bits(problem) ? std::nullopt : std::optional(attention_bytes(problem))};
  for (const auto& [name, value] : plan.choice().defines) row.defines[name] = value;
  row.compile_seconds = loads.cold;
  row.warm_load_seconds = loads.warm;
  row.machine = machine_of(bench.gpu, std::string(bench.gpu.arch().name),
                           plan.kernel().kernels.nvrtc_version);
  return row;
}

Result<std::unique_ptr<attention::Plan>> plan_of(const AttentionProblem& problem) {
  const auto device = gemm::library().current_device();
  if (!device) return Unexpected{device.error().error};
  auto plan = attention::Plan::make(*device, problem);
  if (!plan) return Unexpected{plan.error().error};
  return std::move(*plan);
}

// Compiled, with so many inputs; of gradients the forward passes have run.
Result<AttentionContest> prepare(AttentionBench& bench, const AttentionProblem& problem,
                                 std::size_t count) {
  bench.progress(format("{}: compiling", shape_of(problem)));
  auto plan = plan_of(problem);
  if (!plan) return Unexpected{plan.error()};
  AttentionContest out{.problem = problem, .plan = std::move(*plan)};
  if (problem.backward) {
    AttentionProblem forward = problem;
    forward.backward = false;
    auto made = plan_of(forward);
    if (!made) return Unexpected{made.error()};
    out.forward = std::move(*made);
  }
  if (const std::size_t bytes = out.plan->workspace_bytes(); bytes > 0) {
    auto workspace = bench.gpu.allocate(bytes);
    if (!workspace) return Unexpected{workspace.error()};
    out.workspace.emplace(std::move(*workspace));
  }
  bench.progress(format("{}: inputs", shape_of(problem)));
  for (std::size_t i = 0; i < count; ++i) {
    auto set = make_attention_set(bench, problem, bench.options.seed * count + i);
    if (!set) return Unexpected{set.error()};
    out.sets.push_back(std::move(*set));
    if (!problem.backward) continue;
    if (auto started = out.start_forward(i); !started) return Unexpected{started.error()};
  }
  return out;
}

// The same problem, but for the type and what comes of it.
AttentionProblem of_bf16(AttentionProblem problem) {
  problem.dtype = DType::kBF16;
  return problem;
}

// A row when the result is right. Errors: the environment's; no kernel serves the problem.
Result<std::optional<BenchRow>> run_attention(AttentionBench& bench,
                                              const AttentionProblem& problem) {
  const std::size_t count = rotating_sets(attention_bytes(problem), bench.gpu.arch().l2_bytes);
  const auto contest = prepare(bench, problem, count);
  if (!contest) return Unexpected{contest.error()};
  const attention::Plan& plan = *contest->plan;
  const auto loads = gemm::measure_loads(bench.gpu, *plan.kernel().program);
  if (!loads) return Unexpected{loads.error()};
  bench.progress(format("{}: measuring", shape_of(problem)));
  BenchRow row = attention_row(bench, problem, plan, *loads);
  std::vector<Contender> contenders = {
      {plan.kernel_text(), [&](auto set, auto stream) { return contest->start(set, stream); }}};
  const AttentionProblem wide = of_bf16(problem);
  std::optional<AttentionContest> beside;  // of 8 bits
  if (has_8_bits(problem)) {
    auto made = prepare(bench, wide, count);
    if (!made) return Unexpected{made.error()};
    beside.emplace(std::move(*made));
    row.baseline = format("{} of {}", beside->plan->choice().kernel, name(wide.dtype));
    contenders.push_back({beside->plan->kernel_text(),
                          [&](auto set, auto stream) { return beside->start(set, stream); }});
  }
  if (auto done = measure_row(bench.gpu, bench.options, count, contenders, row); !done) {
    return Unexpected{done.error()};
  }
  bench.progress(format("{}: checking", shape_of(problem)));
  Diagnostics diags;
  const auto worst = check_attention_set(bench, *contest, diags);
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
    if (!given) continue;
    const std::string what = format("`{}`", options.program.file);
    return diags.report<diag::BenchOptionUnused>({}, name, what).emit();
  }
  const std::vector<AttentionProblem> all = attention_cases(options.program.file);
  std::vector<AttentionProblem> out = all;
  std::erase_if(out, [&](const AttentionProblem& problem) {
    return format("{} {}", shape_of(problem), types_of(problem)).find(options.only) ==
           std::string::npos;
  });
  if (!out.empty()) return out;
  return diags.report<diag::BenchNothingLeft>({}, options.program.file)
      .help("without them it has {}, from {} {} on", all.size(), shape_of(all.front()),
            types_of(all.front()))
      .emit();
}

}  // namespace

bool is_attention(const BenchOptions& options) {
  const std::string& suite = options.program.file;
  return suite == kAttention || suite == kBackward || suite == kOf8Bits;
}

std::string attention_suites() { return format("{}, {}, {}", kAttention, kBackward, kOf8Bits); }

std::vector<AttentionProblem> attention_cases(std::string_view suite) {
  const bool backward = suite == kBackward;
  std::vector<AttentionProblem> out;
  for (const std::int64_t depth : kAttentionDepths) {
    for (const std::int64_t length : kAttentionRows) {
      for (const bool causal : {false, true}) {
        const AttentionProblem problem{.dtype = suite == kOf8Bits ? DType::kE4M3 : DType::kBF16,
                                       .batch = kAttentionTokens / length,
                                       .queries = length,
                                       .keys = length,
                                       .heads = kAttentionWidth / depth,
                                       .key_heads = kAttentionWidth / depth,
                                       .depth = depth,
                                       .causal = causal,
                                       .balanced = !backward,
                                       .backward = backward};
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
  if (auto can = check_power(*gpu, options); !can) {
    return io::environment_failed(console, can.error()).error;
  }
  auto device = BenchDevice::open(*gpu);
  if (!device) return io::environment_failed(console, device.error()).error;
  AttentionBench bench{
      .options = options, .console = console, .gpu = *gpu, .device = std::move(*device)};
  const auto label = [](const AttentionProblem& problem) {
    return shape_of(problem) + ", " + types_of(problem);
  };
  const auto ran = run_problems(bench, *cases, label, run_attention);
  const std::string& suite = options.program.file;
  console.out << to_text(suite, summarise_rows(bench.rows))
              << format("beside others: python bench/peers/attention.py{}\n",
                        suite == kBackward  ? " --backward"
                        : suite == kOf8Bits ? " --type f8_e4m3"
                                            : "");
  if (!ran) return io::environment_failed(console, ran.error()).error;
  if (bench.wrong) return io::Exit::kWrong;
  return bench.failed ? io::Exit::kEnvironment : io::Exit::kFine;
}

}  // namespace kiln::measure
