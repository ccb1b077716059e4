#include "runtime/map_cache.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace kiln::runtime {
namespace {

using cuda::DevicePtr;
using cuda::TensorMap;

constexpr std::size_t kMaps = 3;
using Addresses = std::array<DevicePtr, kMaps>;
using Maps = std::array<TensorMap, kMaps>;

// Those of a caller that takes its buffers in turn.
Addresses addresses_of(std::size_t turn) {
  return {(1 << 20) + 4096 * turn, (1 << 24) + 4096 * turn, 1 << 28};
}

// Maps that say whose they are.
Maps maps_of(std::size_t turn) {
  Maps out;
  for (std::size_t i = 0; i < kMaps; ++i) {
    const std::size_t bits = 10 * turn + i + 1;
    std::memcpy(out[i].bytes.data() + 120, &bits, sizeof bits);
  }
  return out;
}

bool same(const Maps& left, const Maps& right) {
  return std::memcmp(left.data(), right.data(), sizeof(Maps)) == 0;
}

bool has(MapCache& cache, std::size_t turn) {
  Maps found;
  if (!cache.find(addresses_of(turn), found)) return false;
  EXPECT_TRUE(same(found, maps_of(turn))) << turn;
  return true;
}

TEST(MapCache, KeepsAsManyAsItSays) {
  MapCache cache(kMaps);
  for (std::size_t turn = 0; turn < MapCache::kEntries; ++turn) {
    EXPECT_FALSE(has(cache, turn));
    cache.add(addresses_of(turn), maps_of(turn));
  }
  for (int round = 0; round < 2; ++round) {
    for (std::size_t turn = 0; turn < MapCache::kEntries; ++turn) {
      ASSERT_TRUE(has(cache, turn)) << turn;
    }
  }
}

TEST(MapCache, TheOldestGoFirst) {
  MapCache cache(kMaps);
  constexpr std::size_t kTurns = 1000;
  for (std::size_t turn = 0; turn < kTurns; ++turn) {
    cache.add(addresses_of(turn), maps_of(turn));
    ASSERT_TRUE(has(cache, turn));
  }
  for (std::size_t turn = 0; turn < kTurns; ++turn) {
    ASSERT_EQ(has(cache, turn), turn >= kTurns - MapCache::kEntries) << turn;
  }
}

TEST(MapCache, EveryAddressCounts) {
  MapCache cache(kMaps);
  cache.add(addresses_of(1), maps_of(1));
  for (std::size_t i = 0; i < kMaps; ++i) {
    Addresses other = addresses_of(1);
    other[i] += 16;
    Maps found;
    EXPECT_FALSE(cache.find(other, found)) << i;
  }
}

TEST(MapCache, WhatIsThereStays) {
  MapCache cache(kMaps);
  for (int i = 0; i < 1000; ++i) cache.add(addresses_of(1), maps_of(1));
  cache.add(addresses_of(1), maps_of(2));
  EXPECT_TRUE(has(cache, 1));
  // It was kept once: the others have not driven anything out.
  for (std::size_t turn = 2; turn <= MapCache::kEntries; ++turn) {
    cache.add(addresses_of(turn), maps_of(turn));
  }
  EXPECT_TRUE(has(cache, 1));
}

TEST(MapCache, ThreadsSeeWholeEntries) {
  MapCache cache(kMaps);
  std::vector<std::jthread> threads;
  std::array<std::size_t, 4> found{};
  for (std::size_t thread = 0; thread < found.size(); ++thread) {
    threads.emplace_back([&, thread] {
      std::minstd_rand random(static_cast<unsigned>(thread + 1));
      for (int i = 0; i < 20000; ++i) {
        const std::size_t turn = random() % 400;  // more than it keeps
        if (has(cache, turn)) {
          ++found[thread];
        } else {
          cache.add(addresses_of(turn), maps_of(turn));
        }
      }
    });
  }
  threads.clear();
  for (const std::size_t count : found) EXPECT_GT(count, 0U);
}

}  // namespace
}  // namespace kiln::runtime
