#include "measure/nvml.h"

#include <chrono>

#include "measure/timing.h"
#include "runtime/library.h"

namespace kiln::measure {

namespace {

constexpr int kClockSm = 1;  // nvmlClockType_t
// Short against a batch, long against what asking costs.
constexpr auto kPause = std::chrono::milliseconds(10);

template <class Function>
Result<void> find(const runtime::Library& library, const char* name, Function& to) {
  const Result<void*> address = library.symbol(name);
  if (!address) return Unexpected{address.error()};
  to = reinterpret_cast<Function>(*address);
  return {};
}

}  // namespace

Result<Nvml> Nvml::open(const runtime::Gpu& gpu) {
  const Result<runtime::Library> library = runtime::Library::open(
      "NVIDIA's management library", {"libnvidia-ml.so.1", "libnvidia-ml.so"});
  if (!library) return Unexpected{library.error()};
  Nvml out;
  Status (*init)() = nullptr;
  Status (*by_bus)(const char* bus, Device* device) = nullptr;
  for (const auto& found : {find(*library, "nvmlInit_v2", init),
                            find(*library, "nvmlDeviceGetHandleByPciBusId_v2", by_bus),
                            find(*library, "nvmlDeviceGetClockInfo", out.clock),
                            find(*library, "nvmlDeviceGetPowerUsage", out.power)}) {
    if (!found) return Unexpected{found.error()};
  }
  // Older than Volta there is none.
  if (!find(*library, "nvmlDeviceGetTotalEnergyConsumption", out.energy)) out.energy = nullptr;
  // Never shut down: the library counts, and the process ends soon.
  Status status = init();
  const std::string bus = gpu.bus_id();
  if (status == 0) status = by_bus(bus.c_str(), &out.device);
  if (status == 0) return out;
  return Unexpected{Error{"cannot ask for the clocks of", gpu.name(), format("status {}", status)}};
}

std::optional<double> Nvml::sm_mhz() const {
  unsigned mhz = 0;
  if (clock(device, kClockSm, &mhz) != 0) return std::nullopt;
  return mhz;
}

std::optional<double> Nvml::power_watt() const {
  unsigned milliwatts = 0;
  if (power(device, &milliwatts) != 0) return std::nullopt;
  return milliwatts * 1e-3;
}

std::optional<double> Nvml::energy_joule() const {
  unsigned long long millijoules = 0;
  if (energy == nullptr || energy(device, &millijoules) != 0) return std::nullopt;
  return static_cast<double>(millijoules) * 1e-3;
}

ClockSamples medians(const std::vector<double>& mhz, const std::vector<double>& watts) {
  ClockSamples out;
  if (!mhz.empty()) out.sm_mhz = median(mhz);
  if (!watts.empty()) out.power_watt = median(watts);
  return out;
}

ClockSampler::ClockSampler(const std::optional<Nvml>& nvml) {
  if (!nvml) return;
  thread_ = std::jthread([this, nvml = *nvml](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (const auto mhz = nvml.sm_mhz()) mhz_.push_back(*mhz);
      if (const auto watts = nvml.power_watt()) watts_.push_back(*watts);
      std::this_thread::sleep_for(kPause);
    }
  });
}

ClockSamples ClockSampler::stop() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
  return medians(mhz_, watts_);
}

}  // namespace kiln::measure
