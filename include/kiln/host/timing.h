// The mean time of a call in milliseconds.
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

#include "kiln/host/runtime.h"

namespace choreo {

struct TimerOption {
  int warmup = 10;
  int repeat = 100;
  bool sync = true;
};

// In the simulator the function is called once: how long that takes says nothing of a GPU.
template <class F, class... Args>
double timing(F&& function, const TimerOption& option = {}, Args&&... args) {
  const int repeat = kiln::host::kSimulated ? 1 : std::max(1, option.repeat);
  for (int i = 0; !kiln::host::kSimulated && i < option.warmup; ++i) function(args...);
  kiln::host::synchronise_device();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < repeat; ++i) {
    function(args...);
    if (option.sync) kiln::host::synchronise_device();
  }
  kiln::host::synchronise_device();
  const std::chrono::duration<double, std::milli> all = std::chrono::steady_clock::now() - begin;
  return all.count() / repeat;
}

}  // namespace choreo
