#include "measure/bench_measure.h"

#include "measure/energy.h"

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

void fill_energy(const std::vector<double>& joules, BenchRow& row) {
  // Of 1e12 operations a second, so many make a launch.
  const std::optional<double> tflop = tflops_of(row, 1);
  row.joules = joules[0];
  if (tflop) row.joules_per_tflop = joules[0] / *tflop;
  if (joules.size() < 2) return;
  row.baseline_joules = joules[1];
  if (tflop) row.baseline_joules_per_tflop = joules[1] / *tflop;
}

Result<void> check_power(const runtime::Gpu& gpu, const BenchOptions& options) {
  if (!options.power) return {};
  const auto meter = EnergyMeter::open(gpu);
  return meter ? Result<void>() : Unexpected{meter.error()};
}

namespace {

Result<void> measure_energy(runtime::Gpu& gpu, const BenchOptions& options,
                            std::vector<Batch> batches, BenchRow& row) {
  const auto meter = EnergyMeter::open(gpu);
  if (!meter) return Unexpected{meter.error()};
  batches.resize(std::min<std::size_t>(batches.size(), 2));
  const auto joules =
      meter->joules_in_turn(gpu, batches, std::max(kEnergySeconds, options.batch_seconds));
  if (!joules) return Unexpected{joules.error()};
  fill_energy(*joules, row);
  row.energy_source = meter->source();
  return {};
}

}  // namespace

Result<void> measure_row(runtime::Gpu& gpu, const BenchOptions& options, std::size_t sets,
                         const std::vector<Contender>& contenders, BenchRow& row) {
  const auto batches = make_batches(gpu, contenders,
                                    {.sets = sets,
                                     .repeats = options.repeats,
                                     .batch_seconds = options.batch_seconds,
                                     .graphs = options.graphs});
  if (!batches) return Unexpected{batches.error()};
  const auto nvml = Nvml::open(gpu);
  ClockSampler sampler(nvml ? std::optional(*nvml) : std::nullopt);
  const auto seconds = time_in_turn(gpu, *batches, options.repeats);
  const ClockSamples clocks = sampler.stop();
  if (!seconds) return Unexpected{seconds.error()};
  row.sm_mhz = clocks.sm_mhz;
  row.power_watt = clocks.power_watt;
  row.graphs = options.graphs;
  fill_times(*seconds, row);
  return options.power ? measure_energy(gpu, options, *batches, row) : Result<void>();
}

}  // namespace kiln::measure
