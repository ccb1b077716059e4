// A small generator of random numbers that draws the same on every machine: splitmix64.
//
//   Random random(seed, 17);      // the stream of mutant 17
//   random.below(3)               // 0, 1 or 2
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kiln::fuzz {

class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t index)
      : state_(mixed(seed * 0x9E3779B97F4A7C15u + mixed(index))) {}

  std::uint64_t next() { return mixed(state_ += 0x9E3779B97F4A7C15u); }
  // Below `bound`; 0 when the bound is 0.
  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : next() % bound; }
  bool one_in(std::size_t n) { return below(n) == 0; }
  template <class T, std::size_t N>
  const T& of(const std::span<const T, N>& choices) {
    return choices[below(choices.size())];
  }

 private:
  static std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }

  std::uint64_t state_;
};

}  // namespace kiln::fuzz
