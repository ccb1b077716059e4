#include "measure/bench_random.h"

#include "backends/device.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "io/expect.h"
#include "measure/random_run.h"

namespace kiln::measure {

namespace {

using Clock = std::chrono::steady_clock;
using gemm::LoadedKernel;
using gemm::Plan;

constexpr int kUsualCount = 10000;
constexpr std::uint64_t kDrawsForEach = 50;  // at most, before a run ends with fewer problems
constexpr std::size_t kShownFailures = 20;
constexpr std::size_t kShownRefusals = 12;

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
  const BenchOptions& options;
  io::Console& console;
  runtime::Gpu& gpu;
  int count = kUsualCount;                           // of problems that are wanted
  std::map<std::string, SharedKernel> kernels = {};  // by text(choice); they stay in place
  std::map<std::string, std::int64_t> refusals = {};
  std::map<std::string, std::int64_t> by_types = {};
  std::map<std::string, std::int64_t> by_kernel = {};
  std::uint64_t drawn = 0;
  std::int64_t refused = 0;
  std::int64_t checked = 0;
  std::int64_t outside = 0;
  double compile_seconds = 0;

  void progress(const std::string& text) const { io::show_progress(console, text); }
};

// Calls `work(i)` for each i below `count` on all cores; the calling thread shows how far they are.
void for_each_in_parallel(const RandomBench& bench, std::string_view what, std::size_t count,
                          const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::atomic<std::size_t> done = 0;
  const auto work_on = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      work(i);
      ++done;
    }
  };
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < std::min(cores, count); ++i) threads.emplace_back(work_on);
  while (bench.console.progress && done < count) {
    bench.progress(io::progress_bar(what, done, count));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  threads.clear();
  bench.progress("");
}

SharedKernel* kernel_of(RandomBench& bench, gemm::Choice choice) {
  const std::string name = gemm::text(choice);
  const auto [at, added] = bench.kernels.try_emplace(name);
  if (added) at->second.choice = std::move(choice);
  return &at->second;
}

void refuse(RandomBench& bench, const std::string& reason) {
  ++bench.refused;
  ++bench.refusals[reason];
}

// Nothing when no kernel serves it, which is counted.
std::optional<Ready> chosen(RandomBench& bench, const RandomProblem& problem) {
  const runtime::Gpu& gpu = bench.gpu;
  const int multiprocessors = gpu.multiprocessors();
  auto choice = gemm::choose(problem.problem, gpu.arch(), multiprocessors);
  if (!choice) {
    refuse(bench, refusal_text(choice.error()));
    return std::nullopt;
  }
  Ready out{.problem = problem, .kernel = kernel_of(bench, std::move(*choice))};
  if (problem.first_rows == 0) return out;
  auto first = gemm::choose(with_first_rows(problem), gpu.arch(), multiprocessors);
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
  for_each_in_parallel(bench, "compiling", wanted.size(),
                       [&](std::size_t i) { compile_kernel(bench.gpu, *wanted[i]); });
  bench.compile_seconds += seconds_since(start);
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
  for_each_in_parallel(bench, "preparing", some.size(),
                       [&](std::size_t i) { prepare(bench.gpu, some[i]); });
  for (const Ready& ready : some) {
    if (!ready.refusal.empty()) refuse(bench, ready.refusal);
  }
  std::erase_if(some, [](const Ready& ready) { return !ready.refusal.empty(); });
}

// As many problems as are wanted, each with a plan, in the order in which they were drawn.
std::vector<Ready> draw_all(RandomBench& bench) {
  const auto count = static_cast<std::size_t>(bench.count);
  const std::uint64_t draws_max = kDrawsForEach * count;
  std::vector<Ready> out;
  while (out.size() < count && bench.drawn < draws_max) {
    bench.progress("drawing");
    std::vector<Ready> some;
    while (out.size() + some.size() < count && bench.drawn < draws_max) {
      auto ready = chosen(bench, draw_problem(bench.options.seed, bench.drawn++));
      if (ready) some.push_back(std::move(*ready));
    }
    prepare_all(bench, some);
    std::ranges::move(some, std::back_inserter(out));
  }
  return out;
}

// With --only: the one problem whose text it is, or those of the draw that have it.
std::vector<Ready> wanted_problems(RandomBench& bench) {
  const auto given = parse_problem(bench.options.only);
  std::vector<Ready> out;
  if (!given) {
    out = draw_all(bench);
    std::erase_if(out, [&](const Ready& ready) {
      return text(ready.problem).find(bench.options.only) == std::string::npos;
    });
    return out;
  }
  bench.drawn = 1;
  if (auto ready = chosen(bench, *given)) out.push_back(std::move(*ready));
  prepare_all(bench, out);
  return out;
}

void report_failure(RandomBench& bench, const Ready& ready, const std::string& fault) {
  ++bench.outside;
  if (static_cast<std::size_t>(bench.outside) > kShownFailures) return;
  bench.progress("");
  bench.console.err << format("error: {}: {} ({})\n", text(ready.problem), fault,
                              gemm::text(ready.kernel->choice));
}

Result<void> check_one(RandomBench& bench, RandomRun& run, Ready& ready) {
  ++bench.by_types[types_text(ready.problem.problem)];
  ++bench.by_kernel[ready.kernel->choice.kernel];
  ++bench.checked;
  if (!ready.failure.empty()) {
    report_failure(bench, ready, ready.failure);
    return {};
  }
  const auto faults = run.check({.problem = ready.problem,
                                 .plan = *ready.plan,
                                 .first = ready.first.get(),
                                 .numerics = ready.kernel->numerics});
  if (!faults) {
    report_failure(bench, ready, faults.error().text());
    return Unexpected{faults.error()};
  }
  if (!faults->empty()) {
    report_failure(bench, ready, join(*faults, "; ", [](const auto& fault) { return fault; }));
  }
  return {};
}

// Ends early when the driver fails: nothing runs in its context any more.
Result<void> check_all(RandomBench& bench, RandomDevice& device, std::vector<Ready>& all) {
  RandomRun run(device);
  Clock::time_point shown = Clock::now();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (seconds_since(shown) > 0.1) {
      bench.progress(io::progress_bar("checking", i, all.size()));
      shown = Clock::now();
    }
    if (auto done = check_one(bench, run, all[i]); !done) return done;
    all[i].plan.reset();
    all[i].first.reset();
  }
  bench.progress("");
  return {};
}

void print_counts(io::Console& console, std::string_view title,
                  const std::map<std::string, std::int64_t>& counts) {
  console.out << title << "\n";
  for (const auto& [name, count] : counts) console.out << format("  {:>7}  {}\n", count, name);
}

void print_refusals(const RandomBench& bench) {
  if (bench.refused == 0) return;
  std::vector<std::pair<std::int64_t, std::string>> all;
  for (const auto& [reason, count] : bench.refusals) all.emplace_back(count, reason);
  std::ranges::sort(all, std::greater());
  bench.console.out << format("refused: {} of {} drawn, for {} reasons\n", bench.refused,
                              bench.drawn, all.size());
  for (std::size_t i = 0; i < std::min(all.size(), kShownRefusals); ++i) {
    bench.console.out << format("  {:>7}  {}\n", all[i].first, all[i].second);
  }
}

void summarise(const RandomBench& bench, double seconds) {
  print_counts(bench.console, "types", bench.by_types);
  print_counts(bench.console, "kernels", bench.by_kernel);
  print_refusals(bench);
  bench.console.out << format(
      "{} problems checked, {} outside, {} kernels, {:.1f} s, of which {:.1f} s compiling\n",
      bench.checked, bench.outside, bench.kernels.size(), seconds, bench.compile_seconds);
}

Checked<void> check_options(const BenchOptions& options, Diagnostics& diags) {
  const std::pair<const char*, bool> of_others[] = {
      {"--arch", !options.program.arch.empty()}, {"-D", !options.program.defines.empty()},
      {"--kernel", !options.kernel.empty()},     {"--shape", !options.shapes.empty()},
      {"--json", !options.json.empty()},         {"--expect", !options.expect.empty()}};
  for (const auto& [name, given] : of_others) {
    if (given) return diags.report<diag::BenchOptionUnused>({}, name, "`random`").emit();
  }
  return {};
}

io::Exit nothing_left(const RandomBench& bench) {
  print_refusals(bench);
  Diagnostics diags;
  diags.report<diag::BenchNothingLeft>({}, "random")
      .help("{} problems were drawn, {} of them served", bench.drawn,
            static_cast<std::int64_t>(bench.drawn) - bench.refused)
      .emit();
  io::show(bench.console, diags, {});
  return io::Exit::kUsage;
}

}  // namespace

bool is_random(const BenchOptions& options) { return options.program.file == "random"; }

std::string refusal_text(const Error& error) {
  std::set<std::string> reasons;
  std::string rest = error.reason + "; ";
  for (std::size_t end = rest.find("; "); end != std::string::npos; end = rest.find("; ")) {
    std::string one = rest.substr(0, end);
    rest.erase(0, end + 2);
    if (const std::size_t colon = one.find(": "); colon != std::string::npos) {
      one.erase(0, colon + 2);
    }
    std::string plain;
    for (const char c : one) {
      const bool digit = c >= '0' && c <= '9';
      if (!digit) plain += c;
      if (digit && (plain.empty() || plain.back() != 'N')) plain += 'N';
    }
    reasons.insert(plain);
  }
  return join(reasons, "; ", [](const std::string& reason) { return reason; });
}

io::Exit bench_random(const BenchOptions& options, io::Console& console) {
  Diagnostics diags;
  if (!check_options(options, diags)) {
    io::show(console, diags, {});
    return io::Exit::kUsage;
  }
  const Clock::time_point start = Clock::now();
  auto gpu = backends::open_device();
  if (!gpu) return io::environment_failed(console, gpu.error()).error;
  auto device = RandomDevice::open(*gpu);
  if (!device) return io::environment_failed(console, device.error()).error;
  RandomBench bench{.options = options, .console = console, .gpu = *gpu};
  if (options.count != 0) bench.count = options.count;
  std::vector<Ready> all = wanted_problems(bench);
  if (all.empty()) return nothing_left(bench);
  const auto done = check_all(bench, *device, all);
  summarise(bench, seconds_since(start));
  const bool fewer = options.only.empty() && bench.checked < bench.count;
  if (!done || bench.outside > 0 || fewer) return io::Exit::kWrong;
  return io::Exit::kFine;
}

}  // namespace kiln::measure
