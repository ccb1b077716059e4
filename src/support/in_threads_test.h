// Several threads that begin together, for tests.
#pragma once

#include <barrier>
#include <thread>
#include <vector>

namespace kiln {

// Calls `work(i)` in `count` threads, in each when all have come.
template <class Work>
void in_threads(int count, const Work& work) {
  std::barrier together(count);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      together.arrive_and_wait();
      work(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace kiln
