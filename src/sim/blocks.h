// The blocks of a launch in the order in which they run, without a list of them: a grid may have
// billions.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace kiln::sim {

using Grid = std::array<std::int64_t, 3>;  // x, y, z

// A block to run, and how many it counts for.
struct ChosenBlock {
  Grid at = {};
  std::int64_t weight = 1;
};

class Blocks {
 public:
  // All blocks of the grid, x fastest. `representative`: of each axis that has more than three
  // coordinates the first, the middle one, which counts for all between the ends, and the last.
  Blocks(const Grid& grid, bool representative);

  // Puts them into an order that `random`, which gives 64 random bits, decides.
  template <class Random>
  void shuffle(Random&& random) {
    const auto count = static_cast<std::uint64_t>(count_);
    if (count > kListed) {
      factor_ = random();
      offset_ = random() % count;
      make_bijective();
      return;
    }
    order_.resize(count);
    for (std::uint64_t i = 0; i < count; ++i) order_[i] = static_cast<std::uint32_t>(i);
    for (std::uint64_t i = count; i > 1; --i) std::swap(order_[i - 1], order_[random() % i]);
  }

  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] ChosenBlock operator[](std::int64_t i) const;

 private:
  // Grids up to here are shuffled as a list; number i of a larger one is i * factor + offset.
  static constexpr std::uint64_t kListed = 1 << 16;

  void make_bijective();

  Grid grid_;
  Grid samples_ = {};  // coordinates of each axis that run
  bool representative_;
  std::int64_t count_ = 0;
  std::vector<std::uint32_t> order_;
  std::uint64_t factor_ = 1;
  std::uint64_t offset_ = 0;
};

}  // namespace kiln::sim
