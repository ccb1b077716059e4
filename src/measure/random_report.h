// What `kiln bench random` counts and tells, whatever kind of problem it draws.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "io/console.h"
#include "measure/options.h"
#include "support/result.h"

namespace kiln::measure {

struct RandomReport {
  const BenchOptions& options;
  io::Console& console;
  std::map<std::string, std::int64_t> refusals = {};
  std::map<std::string, std::int64_t> by_types = {};
  std::map<std::string, std::int64_t> by_kernel = {};
  std::int64_t drawn = 0;
  std::int64_t refused = 0;
  std::int64_t checked = 0;
  std::int64_t outside = 0;
  std::size_t kernels = 0;
  double compile_seconds = 0;
  bool stopped = false;  // --seconds were up before all were checked
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  double told = 0;  // seconds() of the last line that tell() printed

  [[nodiscard]] double seconds() const;  // since the start
  // Whether --seconds are up and something was checked; notes that.
  [[nodiscard]] bool stop();
  // Now and then a line on standard error, where no progress is shown: how many of those wanted are checked.
  void tell(std::int64_t wanted);
  void progress(const std::string& text) const { io::show_progress(console, text); }
  void refuse(const std::string& reason);
  // A problem's line on standard error; after many of them none.
  void fail(const std::string& problem, const std::string& kernel, const std::string& fault);
  void print_refusals() const;
  void summarise(std::int64_t wanted) const;
};

// Calls `work(i)` for each i below `count` on all cores; the calling thread shows how far they are.
void for_each_shown(const RandomReport& report, std::string_view what, std::size_t count,
                    const std::function<void(std::size_t)>& work);

// Why a kernel was refused, without what differs from problem to problem: numbers become N, the
// names of kernels go, and each reason stands once.
[[nodiscard]] std::string refusal_text(const Error& error);

}  // namespace kiln::measure
