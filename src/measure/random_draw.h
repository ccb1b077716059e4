// Draws for random problems: the same everywhere for the same seed.
#pragma once

#include <cstdint>
#include <span>

#include "io/random_bits.h"

namespace kiln::measure {

class Random : public io::RandomBits {
 public:
  using io::RandomBits::RandomBits;
  std::int64_t within(std::int64_t from, std::int64_t to) {  // both are possible
    return from + static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(to - from + 1));
  }
  bool percent(std::int64_t share) { return within(0, 99) < share; }
  template <class T>
  T one_of(std::span<const T> all) {
    return all[bits() % all.size()];
  }
  template <class T, std::size_t N>
  T one_of(const T (&all)[N]) {
    return one_of(std::span<const T>(all));
  }
};

}  // namespace kiln::measure
