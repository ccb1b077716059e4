#include "measure/bench_measure.h"

namespace kiln::measure {

void fill_times(const std::vector<std::vector<double>>& seconds, BenchRow& row) {
  row.seconds = median(seconds[0]);
  row.tflops = tflops_of(row, row.seconds);
  row.repeats = static_cast<std::int64_t>(seconds[0].size());
  if (seconds.size() < 2) return;
  const Summary summary = summarise(seconds[0], seconds[1]);
  row.baseline_seconds = summary.theirs;
  row.baseline_tflops = tflops_of(row, summary.theirs);
  row.ratio = summary.ratio;
  row.spread = summary.spread;
  if (seconds.size() > 2) row.dense_ratio = summarise(seconds[0], seconds[2]).ratio;
}

Result<void> measure_row(runtime::Gpu& gpu, const BenchOptions& options, std::size_t sets,
                         const Contenders& contenders, BenchRow& row) {
  const auto nvml = Nvml::open(gpu);
  ClockSampler sampler(nvml ? std::optional(*nvml) : std::nullopt);
  const auto seconds = time_in_turn(
      gpu, contenders,
      {.sets = sets, .repeats = options.repeats, .batch_seconds = options.batch_seconds});
  const ClockSamples clocks = sampler.stop();
  if (!seconds) return Unexpected{seconds.error()};
  row.sm_mhz = clocks.sm_mhz;
  row.power_watt = clocks.power_watt;
  fill_times(*seconds, row);
  return {};
}

}  // namespace kiln::measure
