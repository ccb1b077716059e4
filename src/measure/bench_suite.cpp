#include "measure/bench_suite.h"

#include "backends/device.h"

#include <algorithm>

#include "gemm/plan.h"
#include "io/assignments.h"
#include "io/expect.h"
#include "measure/bench_check.h"
#include "measure/bench_machine.h"
#include "measure/bench_measure.h"
#include "measure/bench_row.h"
#include "measure/bench_run.h"
#include "measure/bench_sets.h"
#include "measure/cusparselt.h"

namespace kiln::measure {

namespace {

// Everything that is the same for all problems.
struct SuiteBench {
  const BenchOptions& options;
  io::Console& console;
  runtime::Gpu& gpu;
  BenchDevice device;
  std::vector<BenchRow> rows = {};
  std::int64_t without_kernel = 0;
  bool wrong = false;   // a result was outside its bound
  bool failed = false;  // something could not be measured

  [[nodiscard]] const std::string& suite() const { return options.program.file; }
  // Shows on the console what is being done.
  void progress(const std::string& text) const { io::show_progress(console, text); }
  void note(const gemm::Problem& problem, const std::string& text) const {
    show_note(console, problem, text);
  }
};

// A problem, ready to be started.
struct Contest {
  const gemm::Problem& problem;
  std::unique_ptr<gemm::Plan> plan;
  SuiteSets sets;
  // Of each set, so that a launch looks nothing up.
  std::vector<gemm::Operands> operands = {};
  std::optional<runtime::DeviceBuffer> workspace = std::nullopt;
  std::optional<VendorProduct> vendor = std::nullopt;        // the dense product
  std::optional<SparseVendorProduct> sparse = std::nullopt;  // of a sparse problem
  std::vector<ProductBuffers> vendor_buffers = {};
  runtime::LoadTimes loads = {};

  [[nodiscard]] Result<void> start(std::size_t set, runtime::cuda::Stream stream = nullptr) const {
    return plan->start(operands[set], workspace ? workspace->address() : 0, stream);
  }
  // With groups one after the other: the vendor's library knows no groups.
  [[nodiscard]] Result<void> start_vendor(std::size_t set,
                                          runtime::cuda::Stream stream = nullptr) const {
    if (problem.groups == 0) return vendor->start(vendor_buffers[set], stream);
    for (std::int64_t group = 0; group < problem.groups; ++group) {
      auto started = vendor->start(sets.vendor_of_group(set, group), stream);
      if (!started) return started;
    }
    return {};
  }
};

// --- measuring

Result<Contest> prepare(SuiteBench& bench, const gemm::Problem& problem,
                        const gemm::Choice& choice) {
  bench.progress(format("{}: compiling", shape_of(problem)));
  auto plan = gemm::Plan::prepare(bench.gpu, problem, choice);
  if (!plan) return Unexpected{plan.error()};
  const auto loads = (*plan)->measure_loads();
  if (!loads) return Unexpected{loads.error()};
  bench.progress(format("{}: inputs", shape_of(problem)));
  auto sets = SuiteSets::make(bench.gpu, bench.device, problem, bench.options.seed);
  if (!sets) return Unexpected{sets.error()};
  Contest out{
      .problem = problem, .plan = std::move(*plan), .sets = std::move(*sets), .loads = *loads};
  for (std::size_t set = 0; set < out.sets.count(); ++set) {
    out.operands.push_back(out.sets.operands(set));
  }
  if (const std::size_t bytes = out.plan->workspace_bytes(); bytes > 0) {
    auto workspace = bench.gpu.allocate(bytes);
    if (!workspace) return Unexpected{workspace.error()};
    out.workspace.emplace(std::move(*workspace));
  }
  // Once before all else: a kernel that fails is not the vendor's failure.
  for (std::size_t set = 0; set < out.sets.count(); ++set) {
    if (auto started = out.start(set); !started) return Unexpected{started.error()};
  }
  if (auto done = bench.gpu.synchronize(); !done) return Unexpected{done.error()};
  return out;
}

// Where the vendor has no such product, a note says why.
void find_vendor(SuiteBench& bench, Contest& contest) {
  bench.progress(format("{}: algorithms of cuBLASLt", shape_of(contest.problem)));
  contest.vendor_buffers = contest.sets.vendor();
  auto vendor = VendorProduct::prepare(bench.gpu, of_one_group(contest.problem),
                                       scale_of(contest.problem), contest.vendor_buffers);
  if (vendor) contest.vendor.emplace(std::move(*vendor));
  if (!vendor) bench.note(contest.problem, "no baseline: " + vendor.error().text());
  if (!contest.problem.a_sparse) return;
  auto sparse = SparseVendorProduct::prepare(bench.gpu, contest.problem, scale_of(contest.problem),
                                             contest.vendor_buffers);
  if (sparse) contest.sparse.emplace(std::move(*sparse));
  if (!sparse) {
    bench.note(contest.problem, "the baseline is the dense product: " + sparse.error().text());
  }
}

BenchRow row_of(const SuiteBench& bench, const Contest& contest) {
  const runtime::Kernels& kernels = contest.plan->kernels();
  BenchRow row{.suite = bench.suite(),
               .kernel = contest.plan->choice().kernel,
               .m = counted_rows(contest.problem),
               .n = contest.problem.n,
               .k = contest.problem.k,
               .shape = shape_of(contest.problem),
               .types = types_of(contest.problem)};
  for (const auto& [name, value] : contest.plan->choice().defines) row.defines[name] = value;
  row.compile_seconds = contest.loads.cold;
  row.warm_load_seconds = contest.loads.warm;
  row.machine = machine_of(bench.gpu, std::string(bench.gpu.arch().name), kernels.nvrtc_version);
  return row;
}

Result<BenchRow> measure_contest(SuiteBench& bench, const Contest& contest) {
  bench.progress(format("{}: measuring", shape_of(contest.problem)));
  std::vector<Contender> contenders = {{contest.plan->kernel_text(), [&](auto set, auto stream) {
                                          return contest.start(set, stream);
                                        }}};
  if (contest.sparse) {
    contenders.push_back({contest.sparse->library(), [&](auto set, auto stream) {
                            return contest.sparse->start(set, stream);
                          }});
  }
  if (contest.vendor) {
    contenders.push_back({contest.vendor->library(), [&](auto set, auto stream) {
                            return contest.start_vendor(set, stream);
                          }});
  }
  BenchRow row = row_of(bench, contest);
  auto measured = measure_row(bench.gpu, bench.options, contest.sets.count(), contenders, row);
  if (!measured) return Unexpected{measured.error()};
  if (contest.vendor) row.baseline = contest.vendor->library();
  // As ours: left in the tensor cores, or taken out after each block to be scaled.
  if (contest.vendor && info(contest.problem.a).bits == 8) {
    row.baseline_sums = contest.problem.block_scales ? "full" : "fast";
  }
  if (!contest.problem.a_sparse) return row;
  row.dense_baseline = row.baseline;
  if (contest.sparse) row.baseline = contest.sparse->library();
  if (contest.vendor && !contest.sparse) row.dense_ratio = row.ratio;
  return row;
}

// --- checking

void report_outside(Diagnostics& diags, const gemm::Problem& problem,
                    const reference::Comparison& found, std::string_view by) {
  if (found.outside == 0) return;
  const reference::Mismatch& first = *found.first;
  diags.report<diag::ResultOutside>({}, "c", found.outside, format("{} elements", found.elements))
      .note("{}, {}", shape_of(problem), types_of(problem))
      .note("the first is {}: {} has {}, allowed error {:.3g}, got {}",
            shape_text(first.coordinates), by, first.expected, first.bound, first.actual)
      .emit();
}

// How our kernel adds: the front end knows its instructions.
Result<reference::EinsumNumerics> numerics_of(const SuiteBench& bench, const Contest& contest) {
  const auto program = gemm::compile(contest.plan->choice(), bench.gpu.arch());
  if (!program) return Unexpected{program.error()};
  return io::weakest((*program)->function());
}

// Of one of the contest's results. The largest error over its bound.
Result<double> check_request(SuiteBench& bench, const Contest& contest, CheckRequest request,
                             bool exact, Diagnostics& diags) {
  const auto ours = numerics_of(bench, contest);
  if (!ours) return Unexpected{ours.error()};
  request.ours = *ours;
  request.theirs = vendor_numerics(request.problem, bench.gpu.arch().capability);
  request.exact = exact;
  request.seed = bench.options.seed;
  const auto found = bench.device.check(request);
  if (!found) return Unexpected{found.error()};
  report_outside(diags, contest.problem, found->sums, exact ? "exactly, fp64" : "fp64");
  report_outside(diags, contest.problem, found->whole,
                 request.vendor == 0 ? "any finite value will do, as" : contest.vendor->library());
  return std::max(found->sums.worst, found->whole.worst);
}

// Set 0 as it stands, on the GPU.
Result<double> check_set(SuiteBench& bench, const Contest& contest, bool exact,
                         Diagnostics& diags) {
  if (contest.problem.groups == 0) {
    CheckRequest request = contest.sets.request(0, contest.vendor.has_value());
    return check_request(bench, contest, std::move(request), exact, diags);
  }
  double worst = 0;
  for (std::int64_t group = 0; group < contest.problem.groups; ++group) {
    auto found =
        check_request(bench, contest, contest.sets.request_of_group(0, group), exact, diags);
    if (!found) return found;
    worst = std::max(worst, *found);
  }
  return worst;
}

// What was measured, and then the same on integers, where every bit must be right.
Result<double> check_contest(SuiteBench& bench, Contest& contest, Diagnostics& diags) {
  bench.progress(format("{}: checking", shape_of(contest.problem)));
  const auto worst = check_set(bench, contest, false, diags);
  if (!worst) return worst;
  auto filled = contest.sets.fill_exactly(bench.device, 0, bench.options.seed);
  if (!filled) return Unexpected{filled.error()};
  if (auto started = contest.start(0); !started) return Unexpected{started.error()};
  if (contest.vendor) {
    if (auto started = contest.start_vendor(0); !started) return Unexpected{started.error()};
  }
  const auto exact = check_set(bench, contest, true, diags);
  if (!exact) return exact;
  auto overrun = contest.sets.overrun();
  if (!overrun) return Unexpected{overrun.error()};
  if (contest.workspace) {
    const auto intact = contest.workspace->zones_intact();
    if (!intact) return Unexpected{intact.error()};
    if (!*intact) overrun->emplace_back("workspace");
  }
  for (const std::string& name : *overrun) {
    diags
        .report<diag::OutOfBounds>({}, format("a kernel wrote outside of the memory of `{}`", name))
        .note("{}, {}", shape_of(contest.problem), types_of(contest.problem))
        .emit();
  }
  return worst;
}

// --- a suite

// A row when the problem was measured and its result is right. Errors: the environment's.
Result<std::optional<BenchRow>> run_case(SuiteBench& bench, const gemm::Problem& problem) {
  const auto without_kernel = [&](const Error& error) {
    bench.note(problem, error.text());
    ++bench.without_kernel;
    return std::optional<BenchRow>();
  };
  const auto choice = gemm::choose(problem, bench.gpu.arch(), bench.gpu.multiprocessors());
  if (!choice) return without_kernel(choice.error());
  auto contest = prepare(bench, problem, *choice);
  if (!contest) return Unexpected{contest.error()};
  find_vendor(bench, *contest);
  auto row = measure_contest(bench, *contest);
  if (!row) return Unexpected{row.error()};
  Diagnostics diags;
  const auto worst = check_contest(bench, *contest, diags);
  if (!worst) return Unexpected{worst.error()};
  row->worst = *worst;
  bench.progress("");
  if (!diags.has_errors()) return std::optional(std::move(*row));
  io::show(bench.console, diags, {});
  bench.wrong = true;
  return std::optional<BenchRow>();
}

Result<SuiteBench> open_bench(const BenchOptions& options, io::Console& console,
                              runtime::Gpu& gpu) {
  // Before anything is measured, so that a file that cannot be written costs nothing.
  if (!options.json.empty()) {
    if (auto can = append_to_file(options.json, ""); !can) return Unexpected{can.error()};
  }
  if (auto can = check_power(gpu, options); !can) return Unexpected{can.error()};
  auto device = BenchDevice::open(gpu);
  if (!device) return Unexpected{device.error()};
  return SuiteBench{
      .options = options, .console = console, .gpu = gpu, .device = std::move(*device)};
}

bool keeps(const std::vector<io::Assignment>& shape, const gemm::Problem& problem) {
  return std::ranges::all_of(shape, [&](const io::Assignment& wanted) {
    const std::int64_t extent = wanted.name == "M"   ? problem.m
                                : wanted.name == "N" ? problem.n
                                                     : problem.k;
    return wanted.value == std::to_string(extent);
  });
}

// Each --shape, read.
Checked<std::vector<std::vector<io::Assignment>>> wanted_shapes(const BenchOptions& options,
                                                                Diagnostics& diags) {
  std::vector<std::vector<io::Assignment>> out;
  for (const std::string& text : options.shapes) {
    auto shape = io::parse_assignments("--shape", {text}, io::ListForm::kCommaSeparated, diags);
    if (!shape) return Unexpected{shape.error()};
    for (const io::Assignment& each : *shape) {
      if (each.name == "M" || each.name == "N" || each.name == "K") continue;
      return diags.report<diag::OptionChoice>({}, "--shape", each.name, "M, N, K").emit();
    }
    out.push_back(std::move(*shape));
  }
  return out;
}

}  // namespace

Checked<std::vector<gemm::Problem>> chosen_cases(const BenchOptions& options, Diagnostics& diags) {
  const std::pair<const char*, bool> of_files[] = {{"--arch", !options.program.arch.empty()},
                                                   {"-D", !options.program.defines.empty()},
                                                   {"--kernel", !options.kernel.empty()},
                                                   {"--expect", !options.expect.empty()}};
  for (const auto& [name, given] : of_files) {
    if (given) return diags.report<diag::BenchOptionUnused>({}, name, "a suite").emit();
  }
  const auto shapes = wanted_shapes(options, diags);
  if (!shapes) return Unexpected{shapes.error()};
  std::vector<gemm::Problem> out = cases_of(options.program.file);
  std::erase_if(out, [&](const gemm::Problem& problem) {
    const std::string text = format("{} {}", shape_of(problem), types_of(problem));
    if (text.find(options.only) == std::string::npos) return true;
    return !shapes->empty() &&
           std::ranges::none_of(*shapes, [&](const auto& shape) { return keeps(shape, problem); });
  });
  if (!out.empty()) return out;
  return diags.report<diag::BenchNothingLeft>({}, options.program.file)
      .help("without them it has {}, from {} on", cases_of(options.program.file).size(),
            shape_of(cases_of(options.program.file).front()))
      .emit();
}

io::Exit bench_suite(const BenchOptions& options, io::Console& console) {
  Diagnostics diags;
  const auto cases = chosen_cases(options, diags);
  if (!cases) {
    io::show(console, diags, {});
    return io::Exit::kUsage;
  }
  auto gpu = backends::open_device();
  if (!gpu) return io::environment_failed(console, gpu.error()).error;
  auto bench = open_bench(options, console, *gpu);
  if (!bench) return io::environment_failed(console, bench.error()).error;
  const auto label = [](const gemm::Problem& problem) {
    return shape_of(problem) + ", " + types_of(problem);
  };
  const auto ran = run_problems(*bench, *cases, label, run_case);
  console.out << to_text(options.program.file, summarise_rows(bench->rows));
  if (bench->without_kernel > 0) {
    console.out << format("not measured: {}, for which the library has no kernel\n",
                          bench->without_kernel);
  }
  if (!ran) return io::environment_failed(console, ran.error()).error;
  if (bench->wrong) return io::Exit::kWrong;
  if (bench->failed) return io::Exit::kEnvironment;
  return bench->rows.empty() ? io::Exit::kUsage : io::Exit::kFine;
}

}  // namespace kiln::measure
