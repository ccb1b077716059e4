#include "sim/blocks.h"

#include <numeric>

namespace kiln::sim {

namespace {

constexpr std::int64_t kSamples = 3;

// One coordinate of the grid, and how many it stands for.
struct Sample {
  std::int64_t at = 0;
  std::int64_t weight = 1;
};

Sample sample(std::int64_t extent, std::int64_t i, bool representative) {
  if (!representative || extent <= kSamples) return {i, 1};
  if (i == 1) return {extent / 2, extent - 2};
  return {i == 0 ? 0 : extent - 1, 1};
}

}  // namespace

Blocks::Blocks(const Grid& grid, bool representative)
    : grid_(grid), representative_(representative) {
  count_ = 1;
  for (std::size_t axis = 0; axis < grid.size(); ++axis) {
    samples_[axis] = representative && grid[axis] > kSamples ? kSamples : grid[axis];
    count_ *= samples_[axis];
  }
}

void Blocks::make_bijective() {
  const auto count = static_cast<std::uint64_t>(count_);
  factor_ %= count;
  while (std::gcd(factor_, count) != 1) factor_ = (factor_ + 1) % count;
}

ChosenBlock Blocks::operator[](std::int64_t i) const {
  auto number = static_cast<std::uint64_t>(i);
  if (!order_.empty()) {
    number = order_[number];
  } else if (count_ != 0) {
    using Wide = unsigned __int128;
    number = static_cast<std::uint64_t>((Wide{number} * factor_ + offset_) %
                                        static_cast<std::uint64_t>(count_));
  }
  ChosenBlock out;
  auto rest = static_cast<std::int64_t>(number);
  for (std::size_t axis = 0; axis < grid_.size(); ++axis) {
    const Sample found = sample(grid_[axis], rest % samples_[axis], representative_);
    out.at[axis] = found.at;
    out.weight *= found.weight;
    rest /= samples_[axis];
  }
  return out;
}

}  // namespace kiln::sim
