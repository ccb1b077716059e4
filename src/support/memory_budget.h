// What a run may hold in memory, asked before anything large is allocated.
//
//   MemoryBudget budget(std::uint64_t{4} << 30);
//   MemoryHold hold;
//   if (auto refused = hold.take(&budget, bytes, "the shared memory of a block")) return *refused;
//   ... allocate ...                                     given back when `hold` goes
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "support/format.h"
#include "support/result.h"

namespace kiln {

class MemoryBudget {
 public:
  // `advice`: how who asked can allow more, for messages; "" where nobody can.
  explicit MemoryBudget(std::uint64_t bytes_max, std::string advice = {})
      : bytes_max_(bytes_max), advice_(std::move(advice)) {}

  [[nodiscard]] std::uint64_t bytes_max() const { return bytes_max_; }
  [[nodiscard]] std::uint64_t bytes_held() const { return bytes_held_; }

 private:
  friend class MemoryHold;
  std::uint64_t bytes_max_;
  std::string advice_;
  std::uint64_t bytes_held_ = 0;
};

// A part of a budget, given back at the end of its life.
class MemoryHold {
 public:
  MemoryHold() = default;
  MemoryHold(const MemoryHold&) = delete;
  MemoryHold& operator=(const MemoryHold&) = delete;
  ~MemoryHold() {
    if (budget_ != nullptr) budget_->bytes_held_ -= bytes_;
  }

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  // Takes so many bytes more, or says why not; without a budget there are always enough. `bytes` is
  // a double, so that a product of extents can be no number but its own.
  [[nodiscard]] std::optional<Error> take(MemoryBudget* budget, double bytes,
                                          const std::string& what) {
    if (budget == nullptr || bytes <= 0) return std::nullopt;
    const auto held = static_cast<double>(budget->bytes_held_);
    if (held + bytes > static_cast<double>(budget->bytes_max_)) {
      return Error{format("out of memory: {} needs {:.0f} bytes, of {} allowed {} are taken", what,
                          bytes, budget->bytes_max_, budget->bytes_held_),
                   "", budget->advice_};
    }
    budget_ = budget;
    const auto whole = static_cast<std::uint64_t>(bytes);
    budget->bytes_held_ += whole;
    bytes_ += whole;
    return std::nullopt;
  }

 private:
  MemoryBudget* budget_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace kiln
