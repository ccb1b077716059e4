// What a launch costs in joules: power while nothing but its kernel runs, times its time.
//
//   Result<EnergyMeter> meter = EnergyMeter::open(gpu);
//   meter->joules_in_turn(gpu, batches, 0.5)     of a launch of each, medians of three turns
//
// The GPU's counter of energy moves every 20 to 100 milliseconds and nobody says when. So it is looked
// at all the time, and what counts are the first and the last move that were seen while the kernel ran.
#pragma once

#include <chrono>
#include <string_view>
#include <thread>
#include <vector>

#include "measure/nvml.h"
#include "measure/timing.h"

namespace kiln::measure {

inline constexpr double kEnergySeconds = 0.5;  // that a kernel runs for, at least
inline constexpr int kEnergyTurns = 3;

// What the library said, and when.
struct EnergyReading {
  double at = 0;     // seconds
  double value = 0;  // joules of the counter, or watts
};

// Watts from `begin` on: the counter's readings between its first and its last move, where it moved at
// least twice; none otherwise.
[[nodiscard]] std::optional<double> watts_of_counter(const std::vector<EnergyReading>& readings,
                                                     double begin);
// The mean of what was said from `begin` on; none where nothing was.
[[nodiscard]] std::optional<double> watts_of_power(const std::vector<EnergyReading>& readings,
                                                   double begin);

class EnergyMeter {
 public:
  // Errors: no management library; it says neither energy nor power of this GPU.
  static Result<EnergyMeter> open(const runtime::Gpu& gpu);
  // The same of a library that is open; `name` is the GPU's.
  static Result<EnergyMeter> open(const Nvml& nvml, const std::string& name);

  // "counter": of energy; "power": its mean times the time.
  [[nodiscard]] std::string_view source() const { return counts_ ? "counter" : "power"; }

  // Joules of a launch, by batch: each runs for `seconds`, three times, in turns that begin with
  // another one each time; before that for a while that does not count. Errors: what the driver says;
  // a counter that does not move.
  [[nodiscard]] Result<std::vector<double>> joules_in_turn(runtime::Gpu& gpu,
                                                           const std::vector<Batch>& batches,
                                                           double seconds) const;

 private:
  EnergyMeter(const Nvml& nvml, bool counts, std::string name)
      : nvml_(nvml), counts_(counts), name_(std::move(name)) {}
  Result<double> joules_of(runtime::Gpu& gpu, const Batch& batch, double seconds) const;

  Nvml nvml_;
  bool counts_ = true;
  std::string name_;
};

}  // namespace kiln::measure
