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
  const bool simulated = kiln::host::device().is_simulated();
  const int repeat = simulated ? 1 : std::max(1, option.repeat);
  for (int i = 0; !simulated && i < option.warmup; ++i) function(args...);
  kiln::host::device().synchronise();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < repeat; ++i) {
    function(args...);
    if (option.sync) kiln::host::device().synchronise();
  }
  kiln::host::device().synchronise();
  const std::chrono::duration<double, std::milli> all = std::chrono::steady_clock::now() - begin;
  return all.count() / repeat;
}

}  // namespace choreo
