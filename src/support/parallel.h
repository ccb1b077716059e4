// Calls one function for each of many indices, on all cores.
//
//   for_each_index(candidates.size(), [&](std::size_t i) { compile(candidates[i]); });
#pragma once

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace kiln {

[[nodiscard]] inline std::size_t core_count() {
  return std::max(1U, std::thread::hardware_concurrency());
}

// Calls `work` once for each index below `count`, on as many threads as the machine has cores (or
// `threads`), the caller's among them; returns when all are done. Calls run at the same time, in no
// order. A thread that the system has no room for is done without.
template <class Work>
void for_each_index(std::size_t count, Work&& work, std::size_t threads = core_count()) {
  std::atomic<std::size_t> next = 0;
  auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  using Run = decltype(run);
  const auto begin = [](void* it) -> void* { return (*static_cast<Run*>(it))(), nullptr; };
  std::vector<pthread_t> others(std::max<std::size_t>(std::min(threads, count), 1) - 1);
  std::size_t begun = 0;  // std::thread would end the program instead of saying that it could not
  while (begun < others.size() && pthread_create(&others[begun], nullptr, begin, &run) == 0)
    ++begun;
  run();
  for (std::size_t i = 0; i < begun; ++i) pthread_join(others[i], nullptr);
}

}  // namespace kiln
