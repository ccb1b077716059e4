// The simulated device: its memory is the host's, and every use of it is held against what was
// allocated. Calls of tile functions run when they are made, so there is nothing to wait for.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "kiln/host/device.h"

namespace kiln::host {

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

class SimDevice final : public Device {
 public:
  bool is_simulated() const override { return true; }
  std::string error_text(int error) override {
    return error == kFine            ? "no error"
           : error == kInvalidValue  ? "invalid argument"
           : error == kOutOfMemory   ? "out of memory"
           : error == kInvalidDevice ? "invalid device ordinal"
                                     : "unknown error";
  }

  int count() override { return 1; }
  int current() override { return 0; }
  int choose(int number) override { return number == 0 ? kFine : kInvalidDevice; }

  void* allocate(std::size_t bytes) override { return memory_.take(bytes, false); }
  void* allocate_managed(std::size_t bytes) override { return memory_.take(bytes, true); }
  void* allocate_host(std::size_t bytes) override { return std::malloc(bytes == 0 ? 1 : bytes); }
  int release(void* data) override { return memory_.give_back(data) ? kFine : kInvalidValue; }
  int release_host(void* data) override {
    std::free(data);
    return kFine;
  }

  std::string misplaced(Place place, std::size_t bytes) override {
    if (bytes == 0) return "";
    switch (memory_.find(place.data, bytes)) {
      case Memory::Is::kHost:
        return place.on_device && !place.is_either ? "is memory of the host" : "";
      case Memory::Is::kDevice:
        return place.on_device || place.is_either ? "" : "is memory of the device";
      case Memory::Is::kManaged: return "";
      case Memory::Is::kTooShort: return "ends before " + std::to_string(bytes) + " bytes";
    }
    return "";
  }
  int copy(Place to, Place from, std::size_t bytes, Stream*) override {
    if (bytes != 0) std::memmove(to.data, from.data, bytes);
    return kFine;
  }
  int fill(void* to, int value, std::size_t bytes, Stream*) override {
    if (bytes != 0) std::memset(to, value, bytes);
    return kFine;
  }

  int synchronise() override { return kFine; }
  // A stream is only an address of its own.
  Stream* create_stream() override { return reinterpret_cast<Stream*>(new char); }
  int destroy(Stream* stream) override {
    delete reinterpret_cast<char*>(stream);
    return kFine;
  }
  int synchronise(Stream*) override { return kFine; }

  Event* create_event() override { return reinterpret_cast<Event*>(new Time); }
  int destroy(Event* event) override {
    delete &time(event);
    return kFine;
  }
  int record(Event* event, Stream*) override {
    time(event) = std::chrono::steady_clock::now();
    return kFine;
  }
  int synchronise(Event*) override { return kFine; }
  int milliseconds(float& out, Event* begin, Event* end) override {
    out = std::chrono::duration<float, std::milli>(time(end) - time(begin)).count();
    return kFine;
  }

 private:
  using Time = std::chrono::steady_clock::time_point;
  static Time& time(Event* event) { return *reinterpret_cast<Time*>(event); }

  Memory memory_;
};

}  // namespace kiln::host
