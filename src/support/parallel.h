// Calls one function for each of many indices, on all cores.
//
//   for_each_index(candidates.size(), [&](std::size_t i) { compile(candidates[i]); });
#pragma once

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace kiln {

// Calls `work` once for each index below `count`, on as many threads as the machine has cores, the
// caller's among them; returns when all are done. Calls run at the same time, in no order.
template <class Work>
void for_each_index(std::size_t count, Work&& work) {
  std::atomic<std::size_t> next = 0;
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < std::min(cores, count); ++i) others.emplace_back(run);
  run();
  for (std::thread& each : others) each.join();
}

}  // namespace kiln
