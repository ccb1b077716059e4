// Numbers that look random and are the same everywhere.
#pragma once

#include <cstdint>

namespace kiln::io {

// SplitMix64 (Steele, Lea, Flood 2014): a counter, mixed. Good enough for test data, and ours.
class RandomBits {
 public:
  explicit RandomBits(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

}  // namespace kiln::io
