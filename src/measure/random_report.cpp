#include "measure/random_report.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include "support/format.h"

namespace kiln::measure {

namespace {

constexpr std::int64_t kShownFailures = 20;
constexpr std::size_t kShownRefusals = 12;
constexpr double kTellSeconds = 30;

void print_counts(io::Console& console, std::string_view title,
                  const std::map<std::string, std::int64_t>& counts) {
  console.out << title << "\n";
  for (const auto& [name, count] : counts) console.out << format("  {:>7}  {}\n", count, name);
}

}  // namespace

double RandomReport::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool RandomReport::stop() {
  stopped = stopped || (options.seconds > 0 && checked > 0 && seconds() > options.seconds);
  return stopped;
}

void RandomReport::tell(std::int64_t wanted) {
  const double now = seconds();
  if (console.progress || now - told < kTellSeconds) return;
  told = now;
  console.err << format("{:.0f} s: {} of {} problems checked, {} outside\n", now, checked, wanted,
                        outside)
              << std::flush;
}

void RandomReport::refuse(const std::string& reason) {
  ++refused;
  ++refusals[reason];
}

void RandomReport::fail(const std::string& problem, const std::string& kernel,
                        const std::string& fault) {
  if (++outside > kShownFailures) return;
  progress("");
  console.err << format("error: {}: {} ({})\n", problem, fault, kernel);
}

void RandomReport::print_refusals() const {
  if (refused == 0) return;
  std::vector<std::pair<std::int64_t, std::string>> all;
  for (const auto& [reason, count] : refusals) all.emplace_back(count, reason);
  std::ranges::sort(all, std::greater());
  console.out << format("refused: {} of {} drawn, for {} reasons\n", refused, drawn, all.size());
  for (std::size_t i = 0; i < std::min(all.size(), kShownRefusals); ++i) {
    console.out << format("  {:>7}  {}\n", all[i].first, all[i].second);
  }
}

void RandomReport::summarise(std::int64_t wanted) const {
  print_counts(console, "types", by_types);
  print_counts(console, "kernels", by_kernel);
  print_refusals();
  if (stopped)
    console.out << format("stopped after {} s, {} problems were wanted\n", options.seconds, wanted);
  console.out << format(
      "{} problems checked, {} outside, {} kernels, {:.1f} s, of which {:.1f} s compiling\n",
      checked, outside, kernels, seconds(), compile_seconds);
}

// Calls `work(i)` for each i below `count` on all cores; the calling thread shows how far they are.
void for_each_shown(const RandomReport& report, std::string_view what, std::size_t count,
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
  while (report.console.progress && done < count) {
    report.progress(io::progress_bar(what, done, count));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  threads.clear();
  report.progress("");
}

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

}  // namespace kiln::measure
