#include "measure/energy.h"

#include <algorithm>
#include <optional>

namespace kiln::measure {

namespace {

using Clock = std::chrono::steady_clock;

// Before a kernel's readings count: what the one before used must be out of them. Power is a mean of
// the last second.
constexpr double kCounterLead = 0.15;
constexpr double kPowerLead = 1.1;
constexpr auto kLook = std::chrono::milliseconds(1);

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Looks all the time, in a thread of its own.
class Watcher {
 public:
  Watcher(const Nvml& nvml, bool counts, Clock::time_point start)
      : thread_([this, nvml, counts, start](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            const auto value = counts ? nvml.energy_joule() : nvml.power_watt();
            if (value) readings_.push_back({.at = since(start), .value = *value});
            std::this_thread::sleep_for(kLook);
          }
        }) {}
  std::vector<EnergyReading> stop() {
    thread_.request_stop();
    thread_.join();
    return std::move(readings_);
  }

 private:
  std::vector<EnergyReading> readings_;
  std::jthread thread_;  // the last: it uses the others
};

Result<void> start_all(const Batch& batch) {
  for (std::int64_t i = 0; i < batch.starts; ++i) {
    auto started = batch.start(static_cast<std::size_t>(i) % batch.sets, nullptr);
    if (!started) return started;
  }
  return {};
}

// Runs batch after batch for so long, one always on its way while another one ends, so that the GPU
// never waits. Seconds of one launch.
Result<double> run_for(runtime::Gpu& gpu, const Batch& batch, double seconds) {
  const Clock::time_point start = Clock::now();
  Result<runtime::DeviceEvent> begin = gpu.event();
  if (!begin) return Unexpected{begin.error()};
  if (auto recorded = begin->record(); !recorded) return Unexpected{recorded.error()};
  std::optional<runtime::DeviceEvent> before;
  double batches = 0;
  do {
    if (auto started = start_all(batch); !started) return Unexpected{started.error()};
    auto end = gpu.event();
    if (!end) return Unexpected{end.error()};
    if (auto recorded = end->record(); !recorded) return Unexpected{recorded.error()};
    if (before) {
      if (auto waited = before->seconds_since(*begin); !waited) return waited;
    }
    before.emplace(std::move(*end));
    ++batches;
  } while (since(start) < seconds);
  const Result<double> all = before->seconds_since(*begin);
  if (!all) return all;
  return batch.seconds_of_one(*all) / batches;
}

}  // namespace

std::optional<double> watts_of_counter(const std::vector<EnergyReading>& readings, double begin) {
  const EnergyReading* before = nullptr;
  const EnergyReading* first = nullptr;
  const EnergyReading* last = nullptr;
  for (const EnergyReading& each : readings) {
    const bool moved = before != nullptr && each.value > before->value;
    before = &each;
    if (!moved || each.at < begin) continue;
    if (first == nullptr) first = &each;
    last = &each;
  }
  if (first == last) return std::nullopt;
  return (last->value - first->value) / (last->at - first->at);
}

std::optional<double> watts_of_power(const std::vector<EnergyReading>& readings, double begin) {
  double sum = 0;
  double count = 0;
  for (const EnergyReading& each : readings) {
    if (each.at < begin) continue;
    sum += each.value;
    ++count;
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

Result<EnergyMeter> EnergyMeter::open(const runtime::Gpu& gpu) {
  const auto nvml = Nvml::open(gpu);
  if (!nvml) {
    return Unexpected{Error{"--power cannot measure energy on", gpu.name(), nvml.error().text()}};
  }
  return open(*nvml, gpu.name());
}

Result<EnergyMeter> EnergyMeter::open(const Nvml& nvml, const std::string& name) {
  if (nvml.energy_joule()) return EnergyMeter(nvml, true, name);
  if (nvml.power_watt()) return EnergyMeter(nvml, false, name);
  return Unexpected{Error{"--power cannot measure energy on", name,
                          "NVIDIA's management library says neither energy nor power of it"}};
}

Result<double> EnergyMeter::joules_of(runtime::Gpu& gpu, const Batch& batch, double seconds) const {
  const double lead = counts_ ? kCounterLead : kPowerLead;
  Watcher watcher(nvml_, counts_, Clock::now());
  const Result<double> one = run_for(gpu, batch, lead + seconds);
  const std::vector<EnergyReading> readings = watcher.stop();
  if (!one) return one;
  const auto watts = counts_ ? watts_of_counter(readings, lead) : watts_of_power(readings, lead);
  if (watts) return *watts * *one;
  return Unexpected{
      Error{"--power cannot measure energy on", name_,
            format("its {} did not move in {:.2f} s of work, {} readings",
                   counts_ ? "counter of energy" : "power", seconds, readings.size())}};
}

Result<std::vector<double>> EnergyMeter::joules_in_turn(runtime::Gpu& gpu,
                                                        const std::vector<Batch>& batches,
                                                        double seconds) const {
  std::vector<std::vector<double>> joules(batches.size());
  for (std::size_t round = 0; round < kEnergyTurns; ++round) {
    for (std::size_t turn = 0; turn < batches.size(); ++turn) {
      const std::size_t i = (turn + round) % batches.size();
      const Result<double> one = joules_of(gpu, batches[i], seconds);
      if (!one) return Unexpected{one.error()};
      joules[i].push_back(*one);
    }
  }
  std::vector<double> out;
  for (std::vector<double>& each : joules) out.push_back(median(std::move(each)));
  return out;
}

}  // namespace kiln::measure
