#include "runtime/map_cache.h"

#include <algorithm>
#include <cstring>

#include "support/check.h"

namespace kiln::runtime {

using cuda::DevicePtr;
using cuda::TensorMap;

namespace {

constexpr std::size_t kEntryBytes = sizeof(DevicePtr) + sizeof(TensorMap);  // for each map

}  // namespace

MapCache::MapCache(std::size_t maps)
    : maps_(maps),
      entries_(std::make_unique_for_overwrite<std::byte[]>(kEntries * maps * kEntryBytes)) {
  heads_.fill(kNone);
  next_.fill(kNone);
}

std::byte* MapCache::at(Index entry) const {
  return entries_.get() + static_cast<std::size_t>(entry) * maps_ * kEntryBytes;
}

// Addresses are multiples of something: the upper half of a product depends on all of their bits.
std::size_t MapCache::head_of(Addresses addresses) {
  std::uint64_t hash = 0;
  for (const DevicePtr address : addresses) {
    hash = (hash ^ address) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  return hash % kHeads;
}

MapCache::Index MapCache::entry_of(Addresses addresses) const {
  Index entry = heads_[head_of(addresses)];
  while (entry != kNone && std::memcmp(at(entry), addresses.data(), addresses.size_bytes()) != 0) {
    entry = next_[static_cast<std::size_t>(entry)];
  }
  return entry;
}

bool MapCache::find(Addresses addresses, std::span<TensorMap> maps) {
  KILN_CHECK(addresses.size() == maps_ && maps.size() >= maps_, "{} addresses, {} maps, not {}",
             addresses.size(), maps.size(), maps_);
  const std::lock_guard lock(mutex_);
  const Index entry = entry_of(addresses);
  if (entry == kNone) return false;
  std::memcpy(maps.data(), at(entry) + addresses.size_bytes(), maps_ * sizeof(TensorMap));
  return true;
}

// Takes the entry out of the list that it is in.
void MapCache::forget(Index entry) {
  std::array<DevicePtr, 64> addresses{};
  KILN_CHECK(maps_ <= addresses.size(), "{} maps", maps_);
  std::memcpy(addresses.data(), at(entry), maps_ * sizeof(DevicePtr));
  Index* link = &heads_[head_of(std::span(addresses).first(maps_))];
  while (*link != entry) link = &next_[static_cast<std::size_t>(*link)];
  *link = next_[static_cast<std::size_t>(entry)];
}

void MapCache::add(Addresses addresses, std::span<const TensorMap> maps) {
  KILN_CHECK(addresses.size() == maps_ && maps.size() >= maps_, "{} addresses, {} maps, not {}",
             addresses.size(), maps.size(), maps_);
  const std::lock_guard lock(mutex_);
  if (entry_of(addresses) != kNone) return;
  const auto entry = static_cast<Index>(added_ % kEntries);
  if (added_ >= kEntries) forget(entry);
  ++added_;
  std::memcpy(at(entry), addresses.data(), addresses.size_bytes());
  std::memcpy(at(entry) + addresses.size_bytes(), maps.data(), maps_ * sizeof(TensorMap));
  Index& head = heads_[head_of(addresses)];
  next_[static_cast<std::size_t>(entry)] = head;
  head = entry;
}

}  // namespace kiln::runtime
