// Choices of a generator: the same for the same seed on every machine.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "io/random_bits.h"

namespace kiln::programs {

class Draw : public io::RandomBits {
 public:
  using RandomBits::RandomBits;

  // Both ends are possible.
  int within(int from, int to) {
    return from + static_cast<int>(bits() % static_cast<std::uint64_t>(to - from + 1));
  }
  bool chance(int percent) { return within(0, 99) < percent; }
  template <class T>
  T of(std::initializer_list<T> all) {
    return all.begin()[static_cast<std::size_t>(within(0, static_cast<int>(all.size()) - 1))];
  }
  template <class T>
  const T& of(const std::vector<T>& all) {
    return all[static_cast<std::size_t>(within(0, static_cast<int>(all.size()) - 1))];
  }
};

}  // namespace kiln::programs
