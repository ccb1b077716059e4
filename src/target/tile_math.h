// The loops over tiles of doubles that a simulated matrix instruction spends its time in, as wide as
// this machine's vectors. The numbers are the same on every machine, bit by bit: each element is
// computed by itself, in one order, and where a machine fuses a multiplication with an addition the
// product is exact anyway.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "target/mma.h"

namespace kiln::target {

// The loops for one width of vectors.
struct TileLoops {
  std::string_view vectors;  // "avx2"
  // As multiply_tile, for exact products, and round_tile_towards_zero_f32.
  void (*multiply)(const MmaShape& shape, const double* a, const double* b, double* c);
  void (*round_towards_zero)(double* values, std::size_t count);
};
// Those that this machine can run, the widest first: that one is used.
[[nodiscard]] const std::vector<TileLoops>& tile_loops();

inline constexpr int kTileStep = 8;  // of rows and columns

// c[m][n] += sum over k of a[m][k] * b[k][n], with the old c first and k ascending, each addition
// rounded to a double. Products are exact in a double, or (`fused`) each is added without being
// rounded before. m and n are multiples of kTileStep.
void multiply_tile(const MmaShape& shape, bool fused, const double* a, const double* b, double* c);

// round_towards_zero_f32 of each; `count` is a multiple of kTileStep.
void round_tile_towards_zero_f32(double* values, std::size_t count);

}  // namespace kiln::target
