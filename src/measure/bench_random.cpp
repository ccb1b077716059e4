#include "measure/bench_random.h"

#include "backends/device.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "io/expect.h"
#include "measure/random_attention.h"
#include "measure/random_report.h"
#include "measure/random_run.h"

namespace kiln::measure {

namespace {

using Clock = std::chrono::steady_clock;
using gemm::LoadedKernel;
using gemm::Plan;

constexpr std::int64_t kUsualCount = 10000;
constexpr std::int64_t kAttentionPart = 32;  // one of so many problems
constexpr std::int64_t kTogether = 1024;  // of which kernels are compiled at once and then checked
constexpr std::uint64_t kDrawsForEach = 200;  // at most, before a run ends with fewer problems
// Compiling a kernel takes as long as checking a hundred problems. So of the problems that one file's kernels serve each has
// a kernel of its own only while there are so few of them as this, or as a tenth of these problems; in the place of a further
// one another is drawn that a kernel of this file serves which is there, or after so many draws any that the file serves.
constexpr std::int64_t kProblemsPerKernel = 10;
constexpr std::int64_t kKernelsMin = 20;
constexpr int kDrawsForOne = 20;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A kernel that some of the problems share.
struct SharedKernel {
  gemm::Choice choice;
  std::shared_ptr<const LoadedKernel> loaded = nullptr;
  reference::EinsumNumerics numerics = {};
  std::string failure = {};  // why it could not be compiled
};

// A problem with all that computes it.
struct Ready {
  RandomProblem problem;
  SharedKernel* kernel = nullptr;
  SharedKernel* first_kernel = nullptr;  // of its first rows
  std::unique_ptr<Plan> plan = nullptr;
  std::unique_ptr<Plan> first = nullptr;
  std::string refusal = {};  // the kernel does not fit after all
  std::string failure = {};
};

struct RandomBench {
  RandomReport& report;
  runtime::Gpu& gpu;
  std::int64_t count = 0;                            // of problems that are wanted
  std::map<std::string, SharedKernel> kernels = {};  // by text(choice); they stay in place
  std::uint64_t drawn = 0;

  // Of one file of kernels, by its name.
  struct Family {
    std::int64_t drawn = 0;  // problems that it serves, not counting those drawn in another's place
    std::int64_t kernels = 0;
  };
  std::map<std::string, Family> families = {};
  std::string wanted = {};  // the family that a problem is drawn of in another's place; empty: any
  int tries = 0;            // for that one
  std::int64_t taken = 0;   // of the problems drawn

  [[nodiscard]] std::uint64_t draws_max() const {
    return kDrawsForEach * static_cast<std::uint64_t>(count);
  }
  [[nodiscard]] bool is_done() const { return taken >= count || drawn >= draws_max(); }

  // Whether the problem may have this kernel: it is there, or may be compiled.
  [[nodiscard]] bool has_room(const gemm::Choice& choice) {
    const Family& family = families[choice.kernel];
    return family.kernels < std::max(kKernelsMin, family.drawn / kProblemsPerKernel) ||
           kernels.contains(gemm::text(choice));
  }
};

SharedKernel* kernel_of(RandomBench& bench, gemm::Choice choice) {
  const std::string name = gemm::text(choice);
  const auto [at, added] = bench.kernels.try_emplace(name);
  if (added) {
    ++bench.families[choice.kernel].kernels;
    at->second.choice = std::move(choice);
  }
  return &at->second;
}

// Whether a problem with these kernels is taken; if not, others of the first one's file are looked for.
bool takes(RandomBench& bench, const gemm::Choice& choice, const gemm::Choice* first) {
  const bool any = bench.wanted.empty();
  if (any) {
    ++bench.families[choice.kernel].drawn;
    bench.wanted = choice.kernel;
    bench.tries = 0;
  } else if (bench.wanted != choice.kernel) {
    ++bench.tries;
    return false;
  }
  const bool fits = bench.has_room(choice) && (first == nullptr || bench.has_room(*first));
  if (!fits && bench.tries++ < kDrawsForOne) return false;
  bench.wanted.clear();
  return true;
}

// Nothing when no kernel serves it, which is counted, or it would be one too many.
std::optional<Ready> chosen(RandomBench& bench, const RandomProblem& problem) {
  const runtime::Gpu& gpu = bench.gpu;
  const int multiprocessors = gpu.multiprocessors();
  auto choice = gemm::choose(problem.problem, gpu.arch(), multiprocessors);
  if (!choice) {
    bench.report.refuse(refusal_text(choice.error()));
    return std::nullopt;
  }
  if (problem.first_rows == 0) {
    if (!takes(bench, *choice, nullptr)) return std::nullopt;
    return Ready{.problem = problem, .kernel = kernel_of(bench, std::move(*choice))};
  }
  auto first = gemm::choose(with_first_rows(problem), gpu.arch(), multiprocessors);
  if (!takes(bench, *choice, first ? &*first : nullptr)) return std::nullopt;
  Ready out{.problem = problem, .kernel = kernel_of(bench, std::move(*choice))};
  if (first) {
    out.first_kernel = kernel_of(bench, std::move(*first));
  } else {
    out.failure =
        format("its first {} rows are refused: {}", problem.first_rows, first.error().text());
  }
  return out;
}

void compile_kernel(runtime::Gpu& gpu, SharedKernel& kernel) {
  auto program = gemm::compile(kernel.choice, gpu.arch());
  if (!program) {
    kernel.failure = program.error().text();
    return;
  }
  kernel.numerics = io::weakest((*program)->function());
  auto loaded = gemm::load_kernel(gpu, std::move(*program));
  if (loaded) {
    kernel.loaded = std::move(*loaded);
  } else {
    kernel.failure = loaded.error().text();
  }
}

// Those that are new.
void compile_kernels(RandomBench& bench) {
  const Clock::time_point start = Clock::now();
  std::vector<SharedKernel*> wanted;
  for (auto& [name, kernel] : bench.kernels) {
    if (kernel.loaded == nullptr && kernel.failure.empty()) wanted.push_back(&kernel);
  }
  for_each_shown(bench.report, "compiling", wanted.size(),
                 [&](std::size_t i) { compile_kernel(bench.gpu, *wanted[i]); });
  bench.report.compile_seconds += seconds_since(start);
}

std::unique_ptr<Plan> plan_of(runtime::Gpu& gpu, const gemm::Problem& problem,
                              const SharedKernel& kernel, Ready& ready) {
  if (!kernel.failure.empty()) {
    ready.failure = kernel.failure;
    return nullptr;
  }
  auto plan = Plan::prepare(gpu, problem, kernel.choice, kernel.loaded);
  if (plan) return std::move(*plan);
  ready.refusal = refusal_text(plan.error());
  return nullptr;
}

void prepare(runtime::Gpu& gpu, Ready& ready) {
  ready.plan = plan_of(gpu, ready.problem.problem, *ready.kernel, ready);
  if (ready.plan == nullptr || ready.first_kernel == nullptr) return;
  ready.first = plan_of(gpu, with_first_rows(ready.problem), *ready.first_kernel, ready);
  if (ready.first != nullptr || ready.refusal.empty()) return;
  ready.failure = format("its first {} rows are refused: {}", ready.problem.first_rows,
                         std::exchange(ready.refusal, {}));
}

// Compiles and prepares; drops what is refused.
void prepare_all(RandomBench& bench, std::vector<Ready>& some) {
  compile_kernels(bench);
  for_each_shown(bench.report, "preparing", some.size(),
                 [&](std::size_t i) { prepare(bench.gpu, some[i]); });
  for (const Ready& ready : some) {
    if (!ready.refusal.empty()) bench.report.refuse(ready.refusal);
  }
  std::erase_if(some, [](const Ready& ready) { return !ready.refusal.empty(); });
}

// So many problems, fewer where no more are wanted, each with a plan, in the order in which they were drawn.
std::vector<Ready> draw_some(RandomBench& bench, std::int64_t most) {
  const auto count = static_cast<std::size_t>(std::min(bench.count - bench.taken, most));
  std::vector<Ready> out;
  while (out.size() < count && bench.drawn < bench.draws_max()) {
    bench.report.progress("drawing");
    std::vector<Ready> some;
    while (out.size() + some.size() < count && bench.drawn < bench.draws_max()) {
      auto ready = chosen(bench, draw_problem(bench.report.options.seed, bench.drawn++));
      if (ready) some.push_back(std::move(*ready));
    }
    prepare_all(bench, some);
    std::ranges::move(some, std::back_inserter(out));
  }
  bench.taken += std::ssize(out);
  return out;
}

// With --only: the one problem whose text it is, or those of the draw that have it.
std::vector<Ready> wanted_problems(RandomBench& bench) {
  const std::string& only = bench.report.options.only;
  const auto given = parse_problem(only);
  std::vector<Ready> out;
  if (!given) {
    out = draw_some(bench, kTogether - kTogether / kAttentionPart);
    std::erase_if(out, [&](const Ready& ready) {
      return text(ready.problem).find(only) == std::string::npos;
    });
    return out;
  }
  bench.count = bench.taken = 1;
  bench.drawn = 1;
  if (auto ready = chosen(bench, *given)) out.push_back(std::move(*ready));
  prepare_all(bench, out);
  return out;
}

void report_failure(RandomReport& report, const Ready& ready, const std::string& fault) {
  report.fail(text(ready.problem), gemm::text(ready.kernel->choice), fault);
}

Result<void> check_one(RandomBench& bench, RandomRun& run, Ready& ready) {
  ++bench.report.by_types[types_text(ready.problem.problem)];
  ++bench.report.by_kernel[ready.kernel->choice.kernel];
  ++bench.report.checked;
  if (!ready.failure.empty()) {
    report_failure(bench.report, ready, ready.failure);
    return {};
  }
  const auto faults = run.check({.problem = ready.problem,
                                 .plan = *ready.plan,
                                 .first = ready.first.get(),
                                 .numerics = ready.kernel->numerics});
  if (!faults) {
    report_failure(bench.report, ready, faults.error().text());
    return Unexpected{faults.error()};
  }
  if (!faults->empty()) {
    report_failure(bench.report, ready,
                   join(*faults, "; ", [](const auto& fault) { return fault; }));
  }
  return {};
}

// Ends early when the driver fails: nothing runs in its context any more.
Result<void> check_all(RandomBench& bench, RandomRun& run, std::vector<Ready>& all) {
  Clock::time_point shown = Clock::now();
  for (std::size_t i = 0; i < all.size() && !bench.report.stop(); ++i) {
    if (seconds_since(shown) > 0.1) {
      bench.report.progress(io::progress_bar("checking", i, all.size()));
      shown = Clock::now();
    }
    if (auto done = check_one(bench, run, all[i]); !done) return done;
    all[i].plan.reset();
    all[i].first.reset();
  }
  bench.report.progress("");
  return {};
}

Checked<void> check_options(const BenchOptions& options, Diagnostics& diags) {
  const std::pair<const char*, bool> of_others[] = {{"--arch", !options.program.arch.empty()},
                                                    {"-D", !options.program.defines.empty()},
                                                    {"--kernel", !options.kernel.empty()},
                                                    {"--shape", !options.shapes.empty()},
                                                    {"--json", !options.json.empty()},
                                                    {"--expect", !options.expect.empty()},
                                                    {"--graphs", options.graphs},
                                                    {"--power", options.power}};
  for (const auto& [name, given] : of_others) {
    if (given) return diags.report<diag::BenchOptionUnused>({}, name, "`random`").emit();
  }
  return {};
}

io::Exit nothing_left(const RandomReport& report) {
  report.print_refusals();
  Diagnostics diags;
  diags.report<diag::BenchNothingLeft>({}, "random")
      .help("{} problems were drawn, {} of them served", report.drawn,
            report.drawn - report.refused)
      .emit();
  io::show(report.console, diags, {});
  return io::Exit::kUsage;
}

// How many problems there are to be of each kind. Attention has a part of all where this GPU has a
// kernel for it, and with --only what that names.
struct Shares {
  std::int64_t products = 0;
  std::int64_t attention = 0;

  [[nodiscard]] std::int64_t all() const { return products + attention; }
};

Shares shares_of(const BenchOptions& options, const runtime::Gpu& gpu) {
  const std::int64_t wanted = options.count;
  if (options.only.starts_with(kAttentionWord)) {
    return {.attention = wanted == 0 ? kUsualCount / kAttentionPart : wanted};
  }
  const std::int64_t all = wanted == 0 ? kUsualCount : wanted;
  if (!options.only.empty() || !has_attention(gpu)) return {.products = all};
  return {.products = all - all / kAttentionPart, .attention = all / kAttentionPart};
}

// Products and attention in turns, so that both have their part of the time that is given.
Result<void> check_in_turns(RandomReport& report, runtime::Gpu& gpu, const Shares& shares) {
  std::optional<RandomDevice> device;
  std::optional<RandomRun> run;
  if (shares.products > 0) {
    auto opened = RandomDevice::open(gpu);
    if (!opened) return Unexpected{opened.error()};
    run.emplace(device.emplace(std::move(*opened)));
  }
  RandomBench products{.report = report, .gpu = gpu, .count = shares.products};
  RandomAttentions attention(report, gpu, shares.attention);
  Result<void> done;
  while (done && !(products.is_done() && attention.is_done()) && !report.stop()) {
    if (!products.is_done()) {
      std::vector<Ready> some = wanted_problems(products);
      done = check_all(products, *run, some);
      report.tell(shares.all());
    }
    if (!done || attention.is_done() || report.stop()) continue;
    done = attention.check_some(kTogether / kAttentionPart);
    report.tell(shares.all());
  }
  report.drawn += static_cast<std::int64_t>(products.drawn) + attention.drawn();
  report.kernels += products.kernels.size() + attention.kernels();
  return done;
}

}  // namespace

bool is_random(const BenchOptions& options) { return options.program.file == "random"; }

io::Exit bench_random(const BenchOptions& options, io::Console& console) {
  Diagnostics diags;
  if (!check_options(options, diags)) {
    io::show(console, diags, {});
    return io::Exit::kUsage;
  }
  auto gpu = backends::open_device();
  if (!gpu) return io::environment_failed(console, gpu.error()).error;
  RandomReport report{.options = options, .console = console};
  const Shares shares = shares_of(options, *gpu);
  const Result<void> done = check_in_turns(report, *gpu, shares);
  // Before anything was checked it is the machine; later the problem was told.
  if (!done && report.checked == 0) return io::environment_failed(console, done.error()).error;
  if (report.checked == 0) return nothing_left(report);
  report.summarise(shares.all());
  const bool fewer = options.only.empty() && !report.stopped && report.checked < shares.all();
  if (!done || report.outside > 0 || fewer) return io::Exit::kWrong;
  return io::Exit::kFine;
}

}  // namespace kiln::measure
