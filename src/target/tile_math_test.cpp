// All widths of vectors give the same bits as one element after the other.
#include "target/tile_math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "support/dtype.h"
#include "target/execute.h"

namespace kiln::target {
namespace {

std::vector<std::uint64_t> bits_of(const std::vector<double>& values) {
  std::vector<std::uint64_t> out;
  for (const double value : values) out.push_back(std::bit_cast<std::uint64_t>(value));
  return out;
}

std::vector<double> draw(std::mt19937& random, DType dtype, int count) {
  std::normal_distribution<double> normal;
  std::vector<double> out;
  for (int i = 0; i < count; ++i) out.push_back(round_to(dtype, normal(random)));
  return out;
}

TEST(TileMath, EveryWidthMultipliesAlike) {
  std::mt19937 random(7);
  for (const MmaShape shape : {MmaShape{16, 8, 16}, MmaShape{16, 64, 16}, MmaShape{8, 24, 4}}) {
    const auto a = draw(random, DType::kF16, shape.m * shape.k);
    const auto b = draw(random, DType::kBF16, shape.k * shape.n);
    const auto c = draw(random, DType::kF32, shape.m * shape.n);
    std::vector<double> wanted = c;
    for (int m = 0; m < shape.m; ++m) {
      for (int n = 0; n < shape.n; ++n) {
        double& sum = wanted[static_cast<std::size_t>(m * shape.n + n)];
        for (int k = 0; k < shape.k; ++k) {
          sum += a[static_cast<std::size_t>(m * shape.k + k)] *
                 b[static_cast<std::size_t>(k * shape.n + n)];
        }
      }
    }
    for (const TileLoops& loops : tile_loops()) {
      std::vector<double> got = c;
      loops.multiply(shape, a.data(), b.data(), got.data());
      EXPECT_EQ(bits_of(got), bits_of(wanted)) << loops.vectors << ", n = " << shape.n;
    }
    std::vector<double> fused = c;
    multiply_tile(shape, true, a.data(), b.data(), fused.data());
    EXPECT_EQ(bits_of(fused), bits_of(wanted)) << "fused, n = " << shape.n;
  }
}

TEST(TileMath, EveryWidthRoundsAlike) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const double odd[] = {0.0,      -0.0,      kInfinity, -kInfinity, kNan,    -kNan,    0x1p-126,
                        0x1p-127, -0x1p-150, 0x1p127,   0x1p128,    0x1p300, -1.0e-310};
  std::mt19937 random(8);
  std::normal_distribution<double> normal;
  for (const double special : odd) {
    for (std::size_t place = 0; place < 2 * kTileStep; ++place) {
      std::vector<double> values;
      for (int i = 0; i < 2 * kTileStep; ++i) values.push_back(normal(random));
      values[place] = special;
      std::vector<double> wanted;
      for (const double value : values) wanted.push_back(round_towards_zero_f32(value));
      for (const TileLoops& loops : tile_loops()) {
        std::vector<double> got = values;
        loops.round_towards_zero(got.data(), got.size());
        EXPECT_EQ(bits_of(got), bits_of(wanted)) << loops.vectors << ", " << special;
      }
    }
  }
}

}  // namespace
}  // namespace kiln::target
