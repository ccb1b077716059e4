// What the GPU's clock and power were while something ran: NVIDIA's management library, opened at
// run time.
//
//   Result<Nvml> nvml = Nvml::open(gpu);
//   ClockSampler sampler(*nvml);               a thread that looks every few milliseconds
//   ...
//   sampler.stop().sm_mhz                      the median; power_watt likewise
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "runtime/gpu.h"

namespace kiln::measure {

struct Nvml {
  using Status = int;  // nvmlReturn_t; 0 is success
  using Device = struct NvmlDeviceTag*;

  // The management library's view of this GPU. Errors: the library is not on this machine, does not
  // know the GPU, or says something else.
  static Result<Nvml> open(const runtime::Gpu& gpu);

  // None when the library does not say.
  [[nodiscard]] std::optional<double> sm_mhz() const;
  [[nodiscard]] std::optional<double> power_watt() const;
  // Since the driver was loaded; the counter moves every 20 to 100 milliseconds.
  [[nodiscard]] std::optional<double> energy_joule() const;

  Device device = nullptr;
  Status (*clock)(Device device, int which, unsigned* mhz) = nullptr;
  Status (*power)(Device device, unsigned* milliwatts) = nullptr;
  Status (*energy)(Device device, unsigned long long* millijoules) = nullptr;  // null: none
};

// What was seen; none where nothing was.
struct ClockSamples {
  std::optional<double> sm_mhz;
  std::optional<double> power_watt;
};

// Of the samples' medians.
[[nodiscard]] ClockSamples medians(const std::vector<double>& mhz,
                                   const std::vector<double>& watts);

class ClockSampler {
 public:
  // Without the library it samples nothing.
  explicit ClockSampler(const std::optional<Nvml>& nvml);
  // Ends the thread. Once.
  [[nodiscard]] ClockSamples stop();

 private:
  std::vector<double> mhz_;
  std::vector<double> watts_;
  std::jthread thread_;  // the last: it uses the others
};

}  // namespace kiln::measure
