#include "measure/timing.h"

#include <algorithm>
#include <cmath>

namespace kiln::measure {

namespace {

constexpr std::int64_t kSetsMax = 512;

// The value that stands at this fraction of the way through the values once they are sorted.
double quantile(std::vector<double> values, double fraction) {
  KILN_CHECK(!values.empty(), "no values");
  std::ranges::sort(values);
  const double at = fraction * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], at - static_cast<double>(below));
}

// How many launches make a batch long enough; runs it once, which also warms up.
Result<std::int64_t> batch_length(runtime::Gpu& gpu, const Start& start,
                                  const BatchOptions& options) {
  auto launches = static_cast<std::int64_t>(options.sets);
  for (;;) {
    const Result<double> seconds = time_batch(gpu, start, options.sets, launches);
    if (!seconds) return Unexpected{seconds.error()};
    if (*seconds >= options.batch_seconds || launches >= options.launches_max) return launches;
    // The first launches are slow: a little more than what they promise, never ten times as many.
    const double wanted = 1.1 * options.batch_seconds / std::max(*seconds, 1e-7);
    const double more = std::ceil(static_cast<double>(launches) * std::min(wanted, 10.0));
    launches = std::clamp(static_cast<std::int64_t>(more), launches + 1, options.launches_max);
  }
}

}  // namespace

Result<double> time_batch(runtime::Gpu& gpu, const Start& start, std::size_t sets,
                          std::int64_t launches) {
  Result<runtime::DeviceEvent> begin = gpu.event();
  if (!begin) return Unexpected{begin.error()};
  Result<runtime::DeviceEvent> end = gpu.event();
  if (!end) return Unexpected{end.error()};
  if (auto recorded = begin->record(); !recorded) return Unexpected{recorded.error()};
  for (std::int64_t i = 0; i < launches; ++i) {
    const auto started = start(static_cast<std::size_t>(i) % sets);
    if (!started) return Unexpected{started.error()};
  }
  if (auto recorded = end->record(); !recorded) return Unexpected{recorded.error()};
  return end->seconds_since(*begin);
}

Result<std::vector<std::vector<double>>> time_in_turn(runtime::Gpu& gpu,
                                                      const std::vector<Start>& contenders,
                                                      const BatchOptions& options) {
  std::vector<std::int64_t> launches;
  for (const Start& start : contenders) {
    const Result<std::int64_t> length = batch_length(gpu, start, options);
    if (!length) return Unexpected{length.error()};
    launches.push_back(*length);
  }
  std::vector<std::vector<double>> seconds(contenders.size());
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    for (std::size_t turn = 0; turn < contenders.size(); ++turn) {
      const std::size_t i = (turn + static_cast<std::size_t>(repeat)) % contenders.size();
      const Result<double> all = time_batch(gpu, contenders[i], options.sets, launches[i]);
      if (!all) return Unexpected{all.error()};
      seconds[i].push_back(*all / static_cast<double>(launches[i]));
    }
  }
  return seconds;
}

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

double interquartile(std::vector<double> values) {
  const double low = quantile(values, 0.25);
  return quantile(std::move(values), 0.75) - low;
}

Summary summarise(const std::vector<double>& ours, const std::vector<double>& theirs) {
  KILN_CHECK(ours.size() == theirs.size(), "{} and {} repeats", ours.size(), theirs.size());
  std::vector<double> ratios;
  for (std::size_t i = 0; i < ours.size(); ++i) ratios.push_back(theirs[i] / ours[i]);
  return {.ours = median(ours),
          .theirs = median(theirs),
          .ratio = median(ratios),
          .spread = interquartile(ratios)};
}

std::size_t rotating_sets(std::int64_t bytes, std::int64_t l2_bytes) {
  const std::int64_t each = std::max<std::int64_t>(bytes, 1);
  const std::int64_t wanted = (2 * l2_bytes + each - 1) / each;
  return static_cast<std::size_t>(std::clamp<std::int64_t>(wanted, 2, kSetsMax));
}

}  // namespace kiln::measure
