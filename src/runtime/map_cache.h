// The tensor maps of one launch as they were encoded for the last 256 sets of operands. Encoding
// costs as much as a launch; a look-up is a hash, a few compares and a copy under a lock.
//
//   MapCache cache(3);                          three maps for each set of addresses
//   if (!cache.find(addresses, maps)) { ...encode...; cache.add(addresses, maps); }
//
// Once made, it allocates nothing. Memory is touched as entries are used. Any number of threads may
// use it at once.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "runtime/cuda_api.h"

namespace kiln::runtime {

class MapCache {
 public:
  static constexpr std::size_t kEntries = 256;
  using Addresses = std::span<const cuda::DevicePtr>;

  // Of so many maps each, with an address each.
  explicit MapCache(std::size_t maps);

  // Fills in `maps` if they were added for these addresses and are still there.
  [[nodiscard]] bool find(Addresses addresses, std::span<cuda::TensorMap> maps);
  // In the place of the oldest when all are taken. Addresses that are there already (two threads
  // did not find them) stay as they are.
  void add(Addresses addresses, std::span<const cuda::TensorMap> maps);

 private:
  using Index = std::int16_t;
  static constexpr Index kNone = -1;
  static constexpr std::size_t kHeads = 2 * kEntries;

  [[nodiscard]] static std::size_t head_of(Addresses addresses);
  [[nodiscard]] Index entry_of(Addresses addresses) const;
  void forget(Index entry);
  [[nodiscard]] std::byte* at(Index entry) const;

  std::mutex mutex_;
  std::size_t maps_;
  std::unique_ptr<std::byte[]> entries_;  // of each: its addresses, then its maps
  std::array<Index, kHeads> heads_;       // of lists of entries with equal hashes
  std::array<Index, kEntries> next_;
  std::size_t added_ = 0;
};

}  // namespace kiln::runtime
