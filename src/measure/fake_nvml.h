// A management library for tests, of one GPU that uses so many watts all the time. Built as
// libnvidia-ml.so.1, beside the test that opens it.
#pragma once

#include <atomic>

struct FakeNvml {
  std::atomic<double> watts{300};
  std::atomic<double> tick_seconds{0.02};  // of the counter of energy; 0: it stands still
  std::atomic<int> energy_status;          // what asking for it returns
  std::atomic<int> power_status;
};

extern "C" FakeNvml* fake_nvml();
