#include "support/unfinished.h"

#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstring>

namespace kiln {

namespace {

// More are written at once by nobody; what is one too many is not removed, that is all.
constexpr std::size_t kSlots = 64;

enum class State : int { kFree, kClaimed, kSet };

struct Slot {
  std::atomic<State> state{State::kFree};
  char path[PATH_MAX] = {};
};

Slot slots[kSlots];  // of the process, as signals are

static_assert(std::atomic<State>::is_always_lock_free);

}  // namespace

UnfinishedFile::UnfinishedFile(const std::string& path) : slot_(kSlots) {
  if (path.size() >= PATH_MAX) return;
  for (std::size_t i = 0; i < kSlots; ++i) {
    State expected = State::kFree;
    if (!slots[i].state.compare_exchange_strong(expected, State::kClaimed)) continue;
    std::memcpy(slots[i].path, path.c_str(), path.size() + 1);
    slots[i].state = State::kSet;
    slot_ = i;
    return;
  }
}

UnfinishedFile::~UnfinishedFile() {
  if (slot_ < kSlots) slots[slot_].state = State::kFree;
}

void remove_unfinished_files() noexcept {
  for (const Slot& slot : slots) {
    if (slot.state == State::kSet) unlink(slot.path);
  }
}

}  // namespace kiln
