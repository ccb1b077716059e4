// Values that many threads ask for at once.
#include "runtime/once_map.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "support/in_threads_test.h"

namespace kiln::runtime {
namespace {

constexpr int kThreads = 8;

TEST(OnceMapTest, ManyThreadsGetOneValue) {
  OnceMap<int, int> map;
  std::atomic<int> made = 0;
  std::vector<int*> values(kThreads);
  in_threads(kThreads, [&](int i) {
    const auto value = map.find_or_make(7, [&]() -> Result<std::unique_ptr<int>> {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return std::make_unique<int>(100 + made++);
    });
    values[static_cast<std::size_t>(i)] = *value;
  });
  EXPECT_EQ(made, 1);
  for (const int* value : values) EXPECT_EQ(value, map.find(7));
  EXPECT_EQ(*map.find(7), 100);
  EXPECT_EQ(map.find(8), nullptr);
}

TEST(OnceMapTest, ValuesOfDifferentKeysAreMadeAtTheSameTime) {
  OnceMap<int, int> map;
  std::atomic<int> making = 0;
  std::atomic<int> met = 0;
  in_threads(2, [&](int key) {
    const auto value = map.find_or_make(key, [&]() -> Result<std::unique_ptr<int>> {
      ++making;
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (making < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
      met += making == 2 ? 1 : 0;
      return std::make_unique<int>(key);
    });
    EXPECT_EQ(**value, key);
  });
  EXPECT_EQ(met, 2);
}

TEST(OnceMapTest, WhatFailedIsTriedAgain) {
  OnceMap<int, int> map;
  int tries = 0;
  const auto make = [&]() -> Result<std::unique_ptr<int>> {
    if (++tries == 1) return Unexpected{Error{"not yet", {}, {}}};
    return std::make_unique<int>(tries);
  };
  const auto first = map.find_or_make(1, make);
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().what, "not yet");
  EXPECT_EQ(map.find(1), nullptr);
  EXPECT_EQ(**map.find_or_make(1, make), 2);
  EXPECT_EQ(**map.find_or_make(1, make), 2);
  EXPECT_EQ(tries, 2);
}

}  // namespace
}  // namespace kiln::runtime
