// Values made once for each key, by whichever thread asks first; the others wait for it. Values of
// different keys are made at the same time. A value that could not be made is made anew when it is
// asked for again.
//
//   OnceMap<int, Plan> plans;
//   Result<const Plan*> plan = plans.find_or_make(7, [] { return make_plan(7); });
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "support/result.h"

namespace kiln::runtime {

template <class Key, class Value, class E = Error>
class OnceMap {
 public:
  // The value, or null when it is not there yet. Does not wait.
  [[nodiscard]] Value* find(const Key& key) const {
    const std::shared_lock lock(mutex_);
    const auto found = slots_.find(key);
    return found == slots_.end() ? nullptr : found->second.ready.load(std::memory_order_acquire);
  }

  // `make` gives Result<std::unique_ptr<Value>, E>. The value lives as long as the map.
  template <class Make>
  Result<Value*, E> find_or_make(const Key& key, Make&& make) {
    if (Value* value = find(key)) return value;
    Slot& slot = slot_of(key);
    const std::lock_guard lock(slot.making);
    if (Value* value = slot.ready.load(std::memory_order_acquire)) return value;
    Result<std::unique_ptr<Value>, E> made = make();
    if (!made) return Unexpected{made.error()};
    slot.value = std::move(*made);
    slot.ready.store(slot.value.get(), std::memory_order_release);
    return slot.value.get();
  }

 private:
  struct Slot {
    std::mutex making;
    std::unique_ptr<Value> value;
    std::atomic<Value*> ready = nullptr;
  };
  Slot& slot_of(const Key& key) {
    const std::unique_lock lock(mutex_);
    return slots_[key];
  }
  mutable std::shared_mutex mutex_;  // of the map's shape
  std::map<Key, Slot> slots_;        // whose slots stay where they are
};

}  // namespace kiln::runtime
