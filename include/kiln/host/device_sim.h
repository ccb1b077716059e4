// The simulated device: its memory is the host's, and every use of it is held against what was
// allocated. Calls of tile functions run when they are made, so there is nothing to wait for.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "kiln/host/findings.h"

namespace kiln::host {

inline constexpr bool kSimulated = true;

struct Stream {};
struct Event {
  std::chrono::steady_clock::time_point time;
};

// Where the program says that memory lies.
struct Place {
  void* data;
  bool on_device;
};

// The allocations of the simulated device.
class Memory {
 public:
  void* take(std::size_t bytes, bool is_managed) {
    void* data = std::malloc(bytes == 0 ? 1 : bytes);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (data != nullptr) blocks_[address(data)] = {bytes, is_managed};
    return data;
  }

  bool give_back(void* data) {
    if (data == nullptr) return true;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (blocks_.erase(address(data)) == 0) return false;
    }
    std::free(data);
    return true;
  }

  enum class Is { kHost, kDevice, kManaged, kTooShort };
  // What `bytes` bytes from `data` on are.
  Is find(const void* data, std::size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto after = blocks_.upper_bound(address(data));
    if (after == blocks_.begin()) return Is::kHost;
    const auto& [begin, block] = *--after;
    const std::uintptr_t offset = address(data) - begin;
    if (offset > block.bytes || (offset == block.bytes && bytes != 0)) return Is::kHost;
    if (bytes > block.bytes - offset) return Is::kTooShort;
    return block.is_managed ? Is::kManaged : Is::kDevice;
  }

 private:
  struct Block {
    std::size_t bytes;
    bool is_managed;
  };
  static std::uintptr_t address(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

  std::mutex mutex_;
  std::map<std::uintptr_t, Block> blocks_;
};

inline Memory& memory() {
  static Memory all;
  return all;
}

inline void* allocate(std::size_t bytes) { return memory().take(bytes, false); }
inline void* allocate_managed(std::size_t bytes) { return memory().take(bytes, true); }
inline bool release(void* data) { return memory().give_back(data); }

// Why these bytes cannot be what the program says they are; "" when they can.
inline std::string misplaced(Place place, std::size_t bytes) {
  if (bytes == 0) return "";
  switch (memory().find(place.data, bytes)) {
    case Memory::Is::kHost: return place.on_device ? "is memory of the host" : "";
    case Memory::Is::kDevice: return place.on_device ? "" : "is memory of the device";
    case Memory::Is::kManaged: return "";
    case Memory::Is::kTooShort: return "ends before " + std::to_string(bytes) + " bytes";
  }
  return "";
}

inline bool copy(Place to, Place from, std::size_t bytes, Site site) {
  const std::string target = misplaced(to, bytes);
  const std::string source = misplaced(from, bytes);
  if (!target.empty()) report(site, "error: the target of the copy " + target);
  if (!source.empty()) report(site, "error: the source of the copy " + source);
  if (!target.empty() || !source.empty()) return false;
  if (bytes != 0) std::memmove(to.data, from.data, bytes);
  return true;
}

inline bool fill(Place to, int value, std::size_t bytes, Site site) {
  const std::string target = misplaced(to, bytes);
  if (!target.empty()) report(site, "error: what is to be filled " + target);
  if (target.empty() && bytes != 0) std::memset(to.data, value, bytes);
  return target.empty();
}

inline bool synchronise_device() { return true; }
inline Stream* create_stream() { return new Stream; }
inline void destroy(Stream* stream) { delete stream; }
inline bool synchronise(Stream*) { return true; }

inline Event* create_event() { return new Event; }
inline void destroy(Event* event) { delete event; }
inline void record(Event* event, Stream*) { event->time = std::chrono::steady_clock::now(); }
inline void synchronise(Event*) {}
inline float milliseconds(const Event* begin, const Event* end) {
  return std::chrono::duration<float, std::milli>(end->time - begin->time).count();
}

}  // namespace kiln::host
