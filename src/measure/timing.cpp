#include "measure/timing.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "measure/launch_graph.h"

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

// How many starts make a batch long enough; runs it, which also warms up.
Result<std::int64_t> batch_length(runtime::Gpu& gpu, Batch batch, double batch_seconds,
                                  std::int64_t starts_max) {
  batch.starts = static_cast<std::int64_t>(batch.sets);
  for (;;) {
    const Result<double> seconds = time_batch(gpu, batch);
    if (!seconds) return Unexpected{seconds.error()};
    if (*seconds >= batch_seconds || batch.starts >= starts_max) return batch.starts;
    // The first launches are slow: a little more than what they promise, never ten times as many.
    const double wanted = 1.1 * batch_seconds / std::max(*seconds, 1e-7);
    const double more = std::ceil(static_cast<double>(batch.starts) * std::min(wanted, 10.0));
    batch.starts = std::clamp(static_cast<std::int64_t>(more), batch.starts + 1, starts_max);
  }
}

// Batches whose start is a graph of launches, as many as a plain batch has and one graph holds.
Result<Batch> in_graphs(runtime::Gpu& gpu, const Contender& contender, const Batch& plain) {
  const auto sets = static_cast<std::int64_t>(plain.sets);
  const std::int64_t most = std::max<std::int64_t>(1, kGraphLaunches / sets) * sets;
  const std::int64_t launches = std::min(most, (plain.starts + sets - 1) / sets * sets);
  auto graph = LaunchGraph::capture(gpu, [&](runtime::cuda::Stream stream) -> Result<void> {
    for (std::int64_t i = 0; i < launches; ++i) {
      auto started = contender.start(static_cast<std::size_t>(i % sets), stream);
      if (!started) return started;
    }
    return {};
  });
  if (!graph) {
    return Unexpected{
        Error{"cannot measure in graphs of launches", contender.name, graph.error().text()}};
  }
  const auto shared = std::make_shared<LaunchGraph>(std::move(*graph));
  return Batch{.start = [shared](std::size_t, runtime::cuda::Stream) { return shared->start(); },
               .launches = launches};
}

Result<Batch> make_batch(runtime::Gpu& gpu, const Contender& contender,
                         const BatchOptions& options) {
  Batch out{.start = contender.start, .sets = options.sets};
  Result<std::int64_t> length = batch_length(gpu, out, options.batch_seconds, options.launches_max);
  if (!length) return Unexpected{length.error()};
  out.starts = *length;
  if (options.graphs) {
    auto graphs = in_graphs(gpu, contender, out);
    if (!graphs) return graphs;
    out = std::move(*graphs);
    const std::int64_t most = std::max<std::int64_t>(1, options.launches_max / out.launches);
    length = batch_length(gpu, out, options.batch_seconds, most);
    if (!length) return Unexpected{length.error()};
    out.starts = *length;
  }
  out.before = out.starts;
  return out;
}

}  // namespace

Result<double> time_batch(runtime::Gpu& gpu, const Batch& batch) {
  Result<runtime::DeviceEvent> begin = gpu.event();
  if (!begin) return Unexpected{begin.error()};
  Result<runtime::DeviceEvent> end = gpu.event();
  if (!end) return Unexpected{end.error()};
  for (std::int64_t i = 0; i < batch.before + batch.starts; ++i) {
    if (i == batch.before) {
      if (auto recorded = begin->record(); !recorded) return Unexpected{recorded.error()};
    }
    const auto started = batch.start(static_cast<std::size_t>(i) % batch.sets, nullptr);
    if (!started) return Unexpected{started.error()};
  }
  if (auto recorded = end->record(); !recorded) return Unexpected{recorded.error()};
  return end->seconds_since(*begin);
}

Result<std::vector<Batch>> make_batches(runtime::Gpu& gpu, const std::vector<Contender>& contenders,
                                        const BatchOptions& options) {
  std::vector<Batch> out;
  for (const Contender& contender : contenders) {
    auto batch = make_batch(gpu, contender, options);
    if (!batch) return Unexpected{batch.error()};
    out.push_back(std::move(*batch));
  }
  return out;
}

Result<std::vector<std::vector<double>>> time_in_turn(runtime::Gpu& gpu,
                                                      const std::vector<Batch>& batches,
                                                      int repeats) {
  std::vector<std::vector<double>> seconds(batches.size());
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (std::size_t turn = 0; turn < batches.size(); ++turn) {
      const std::size_t i = (turn + static_cast<std::size_t>(repeat)) % batches.size();
      const Result<double> all = time_batch(gpu, batches[i]);
      if (!all) return Unexpected{all.error()};
      seconds[i].push_back(batches[i].seconds_of_one(*all));
    }
  }
  return seconds;
}

Result<std::vector<std::vector<double>>> time_in_turn(runtime::Gpu& gpu,
                                                      const std::vector<Contender>& contenders,
                                                      const BatchOptions& options) {
  const auto batches = make_batches(gpu, contenders, options);
  if (!batches) return Unexpected{batches.error()};
  return time_in_turn(gpu, *batches, options.repeats);
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
