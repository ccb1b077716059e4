#include "measure/fake_nvml.h"

#include <chrono>
#include <cmath>

#define FAKE extern "C" __attribute__((visibility("default"))) int

namespace {

FakeNvml state;
constexpr unsigned kMegahertz = 1755;

}  // namespace

extern "C" __attribute__((visibility("default"))) FakeNvml* fake_nvml() { return &state; }

FAKE nvmlInit_v2() { return 0; }
FAKE nvmlDeviceGetHandleByPciBusId_v2(const char*, void** device) { return *device = &state, 0; }
FAKE nvmlDeviceGetClockInfo(void*, int, unsigned* mhz) { return *mhz = kMegahertz, 0; }
FAKE nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  return *milliwatts = static_cast<unsigned>(state.watts * 1e3), state.power_status;
}
FAKE nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* millijoules) {
  const double tick = state.tick_seconds;
  const double now =
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  const double seconds = tick == 0 ? 1 : std::floor(now / tick) * tick;
  return *millijoules = static_cast<unsigned long long>(state.watts * seconds * 1e3),
         state.energy_status;
}
