// Typed indices. Nodes refer to each other by `Id<Tag>` (a 32-bit index into an array of the
// owner), never by pointer, so that a value id cannot be mistaken for a region id.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "support/check.h"

namespace kiln {

template <class Tag>
struct Id {
  static constexpr std::uint32_t kNone = UINT32_MAX;
  std::uint32_t index = kNone;

  [[nodiscard]] constexpr bool valid() const { return index != kNone; }
  constexpr explicit operator bool() const { return valid(); }
  friend constexpr auto operator<=>(Id, Id) = default;
};

namespace detail {
[[noreturn]] void no_such_id(std::size_t index, std::size_t size);
}  // namespace detail

// An array addressed by one kind of id only; with `Items` a deque its elements never move.
template <class IdType, class T, class Items = std::vector<T>>
class IdVector {
 public:
  IdType push(T item) {
    items_.push_back(std::move(item));
    return IdType{static_cast<std::uint32_t>(items_.size() - 1)};
  }
  T& operator[](IdType id) {
    check(id);
    return items_[id.index];
  }
  const T& operator[](IdType id) const {
    check(id);
    return items_[id.index];
  }
  [[nodiscard]] std::size_t size() const { return items_.size(); }
  [[nodiscard]] bool empty() const { return items_.empty(); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  // Every id is checked, so what a check costs to compile counts: the message is made elsewhere.
  void check(IdType id) const {
    if (id.index >= items_.size()) detail::no_such_id(id.index, items_.size());
  }

  Items items_;
};

}  // namespace kiln
