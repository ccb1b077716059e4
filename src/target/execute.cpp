#include "target/execute.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "support/check.h"
#include "target/arch.h"
#include "target/tile_math.h"

namespace kiln::target {

namespace {

constexpr std::size_t kElementsMax = 16 * 32;  // of an operand's tile where lanes hold them all

// A map as a list over (lane, value) of a warp: row_stride * row + col_stride * col of its element.
std::vector<std::uint16_t> places(const Mma& mma, Operand operand, int row_stride, int col_stride) {
  const Layout& map = map_of(mma, operand);
  const TileExtents tile = extents(mma, operand);
  const int values = values_of(mma, operand);
  std::vector<std::uint16_t> out;
  out.reserve(static_cast<std::size_t>(target::kWarpLanes) * static_cast<std::size_t>(values));
  for (int lane = 0; lane < target::kWarpLanes; ++lane) {
    for (int value = 0; value < values; ++value) {
      const auto index = static_cast<int>(map(lane, value));
      const int place = index % tile.rows * row_stride + index / tile.rows * col_stride;
      out.push_back(static_cast<std::uint16_t>(place));
    }
  }
  return out;
}

// Whether the places come in pairs of neighbours, as most instructions' do.
bool in_pairs(const std::vector<std::uint16_t>& places) {
  for (std::size_t i = 0; i < places.size(); i += 2) {
    if (i + 1 == places.size() || places[i + 1] != places[i] + 1) return false;
  }
  return true;
}

// Registers to their places in a tile.
void scatter(std::span<const double> values, const Places& places, double* tile) {
  const std::uint16_t* at = places.list.data();
  const std::size_t count = places.list.size();
  if (places.in_pairs) {
    for (std::size_t i = 0; i < count; i += 2) {
      std::memcpy(tile + at[i], &values[i], 2 * sizeof(double));
    }
    return;
  }
  for (std::size_t i = 0; i < count; ++i) tile[at[i]] = values[i];
}

// And back.
void gather(const double* tile, const Places& places, std::span<double> values) {
  const std::uint16_t* at = places.list.data();
  const std::size_t count = places.list.size();
  if (places.in_pairs) {
    for (std::size_t i = 0; i < count; i += 2) {
      std::memcpy(&values[i], tile + at[i], 2 * sizeof(double));
    }
    return;
  }
  for (std::size_t i = 0; i < count; ++i) values[i] = tile[at[i]];
}

// The one that instructions give: which of several NaNs a sum passes on depends on the machine.
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

double round_towards_zero_f32(double value) {
  constexpr double kLeastNormal = 0x1p-126;
  constexpr double kLeastSubnormal = 0x1p-149;
  constexpr std::uint64_t kDropped = (std::uint64_t{1} << 29) - 1;  // 52 - 23 bits
  const double magnitude = std::fabs(value);
  if (magnitude >= kLeastNormal && magnitude < 0x1p128) {
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) & ~kDropped);
  }
  if (magnitude < kLeastNormal) return std::trunc(value / kLeastSubnormal) * kLeastSubnormal;
  if (std::isnan(value)) return kNan;
  return std::copysign(std::numeric_limits<double>::infinity(), value);
}

double round_to_nearest_f16(double value) {
  constexpr double kLeastNormal = 0x1p-14;
  constexpr double kOverflow = 65520.0;  // halfway from the largest, 65504, to 2^16
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 41;  // of the last of 10 bits kept out of 52
  const double magnitude = std::fabs(value);
  if (magnitude >= kLeastNormal && magnitude < kOverflow) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const std::uint64_t odd = (bits >> 42) & 1;
    return std::bit_cast<double>((bits + (kHalf - 1) + odd) & ~(2 * kHalf - 1));
  }
  // Adding 1.5 * 2^28 leaves 2^-24, the least subnormal, as the last bit of the sum.
  if (magnitude < kLeastNormal) return std::copysign((value + 0x1.8p28) - 0x1.8p28, value);
  if (std::isnan(value)) return kNan;
  return std::copysign(std::numeric_limits<double>::infinity(), value);
}

namespace {

// Rounds to the accumulator's type as the model of execute.h says; `count` is a multiple of
// kTileStep.
void round_accumulators(DType acc, double* values, std::size_t count) {
  if (acc == DType::kF32) return round_tile_towards_zero_f32(values, count);
  for (std::size_t i = 0; i < count; ++i) {
    if (acc == DType::kF16) {
      values[i] = round_to_nearest_f16(values[i]);
    } else if (acc == DType::kS32) {  // an exact sum of at most 33 numbers of 32 bits
      values[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(values[i]));
    } else {
      values[i] = round_to(acc, values[i]);
    }
  }
}

}  // namespace

Places::Places(std::vector<std::uint16_t> of)
    : list(std::move(of)), in_pairs(target::in_pairs(list)) {}

MmaExecutor::MmaExecutor(const Mma& mma)
    : mma_(&mma),
      a_places_(places(mma, Operand::kA, extents(mma, Operand::kA).cols, 1)),
      b_places_(has_map(mma, Operand::kB) ? places(mma, Operand::kB, 1, mma.shape.n)
                                          : std::vector<std::uint16_t>{}),
      c_places_(places(mma, Operand::kC, mma.shape.n, 1)) {
  KILN_CHECK(mma.shape.n % kTileStep == 0 && mma.shape.m % kTileStep == 0, "{} has m = {}, n = {}",
             mma.name, mma.shape.m, mma.shape.n);
  for (const auto* places : {&a_places_, &b_places_, &c_places_}) {
    KILN_CHECK(mma.reads_shared || places->list.size() <= kElementsMax, "{} has a tile of {}",
               mma.name, places->list.size());
  }
  if (!mma.sparse) return;
  metadata_ = &metadata_of(mma);
  for (int row = 0; row < kWarpRows; ++row) {
    for (int group = 0; group < groups_of_row(*metadata_); ++group) {
      nibbles_.push_back(metadata_source(*metadata_, 0, {row, group}));
      KILN_CHECK(nibbles_.back().lane < target::kWarpLanes, "{}: row {} is another warp's",
                 mma.name, row);
    }
  }
}

unsigned MmaExecutor::nibble_of(int row, int group, std::span<const std::uint32_t> metadata) const {
  const int groups = groups_of_row(*metadata_);
  const MetadataSource& at = nibbles_[static_cast<std::size_t>(row * groups + group)];
  return metadata[static_cast<std::size_t>(at.lane)] >> (4 * at.nibble) & 0xfU;
}

// As multiply, over the stored elements alone: what they skip is not multiplied.
void MmaExecutor::multiply_sparse(const double* a, const double* b, double* c,
                                  std::span<const std::uint32_t> metadata) const {
  const int stored = extents(*mma_, Operand::kA).cols;
  const int kept = sparse::kept_of_group(pattern_of(*metadata_));
  const int n_extent = mma_->shape.n;
  for (int m = 0; m < kWarpRows; ++m) {
    double* sums = c + m * n_extent;
    for (int s = 0; s < stored; ++s) {
      const unsigned nibble = nibble_of(m, s / kept, metadata);
      const double factor = a[m * stored + s];
      const double* row = b + dense_column(*metadata_, s, nibble) * n_extent;
      for (int n = 0; n < n_extent; ++n) sums[n] += factor * row[n];
    }
  }
}

int MmaExecutor::row_with_illegal_metadata(std::span<const double> a,
                                           std::span<const std::uint32_t> metadata) const {
  const sparse::Pattern pattern = pattern_of(*metadata_);
  const int stored = extents(*mma_, Operand::kA).cols;
  const int kept = sparse::kept_of_group(pattern);
  for (int i = 0; i < kWarpRows * stored; ++i) {
    const int row = i / stored;
    const bool legal = sparse::is_legal(nibble_of(row, i % stored / kept, metadata), pattern);
    if (!legal && a[static_cast<std::size_t>(i)] != 0) return row;
  }
  return -1;
}

void MmaExecutor::run_sparse(std::span<const double> a, std::span<const double> b,
                             std::span<double> c, std::span<const std::uint32_t> metadata) const {
  KILN_CHECK(mma_->sparse && metadata.size() == target::kWarpLanes &&
                 a.size() == a_places_.list.size() && b.size() == b_places_.list.size() &&
                 c.size() == c_places_.list.size(),
             "{} on {}, {} and {} values", mma_->name, a.size(), b.size(), c.size());
  std::array<double, kElementsMax> a_tile;
  std::array<double, kElementsMax> b_tile;
  std::array<double, kElementsMax> c_tile;
  scatter(a, a_places_, a_tile.data());
  scatter(b, b_places_, b_tile.data());
  scatter(c, c_places_, c_tile.data());
  multiply_sparse(a_tile.data(), b_tile.data(), c_tile.data(), metadata);
  round_accumulators(mma_->acc, c_tile.data(), c.size());
  gather(c_tile.data(), c_places_, c);
}

void MmaExecutor::multiply(int rows, const double* a, const double* b, double* c) const {
  multiply_tile({rows, mma_->shape.n, mma_->shape.k}, mma_->acc == DType::kF64, a, b, c);
}

void MmaExecutor::run(std::span<const double> a, std::span<const double> b,
                      std::span<double> c) const {
  KILN_CHECK(a.size() == a_places_.list.size() && b.size() == b_places_.list.size() &&
                 c.size() == c_places_.list.size(),
             "{} on {}, {} and {} values", mma_->name, a.size(), b.size(), c.size());
  std::array<double, kElementsMax> a_tile;
  std::array<double, kElementsMax> b_tile;
  std::array<double, kElementsMax> c_tile;
  scatter(a, a_places_, a_tile.data());
  scatter(b, b_places_, b_tile.data());
  scatter(c, c_places_, c_tile.data());
  multiply(mma_->shape.m, a_tile.data(), b_tile.data(), c_tile.data());
  const auto elements = static_cast<std::size_t>(mma_->shape.m * mma_->shape.n);
  round_accumulators(mma_->acc, c_tile.data(), elements);
  gather(c_tile.data(), c_places_, c);
}

void MmaExecutor::run_warp(std::span<const double> a, std::span<const double> b,
                           std::span<double> c, std::span<const std::uint32_t> metadata) const {
  const TileExtents b_tile = extents(*mma_, Operand::kB);
  const auto a_size = static_cast<std::size_t>(kWarpRows * extents(*mma_, Operand::kA).cols);
  KILN_CHECK(mma_->reads_shared && a.size() == a_size &&
                 b.size() == static_cast<std::size_t>(b_tile.rows * b_tile.cols) &&
                 c.size() == c_places_.list.size(),
             "{} on {}, {} and {} values", mma_->name, a.size(), b.size(), c.size());
  constexpr std::size_t kRowMax = 256;  // the largest N
  std::array<double, kWarpRows * kRowMax> c_tile;
  scatter(c, c_places_, c_tile.data());
  if (mma_->sparse) {
    multiply_sparse(a.data(), b.data(), c_tile.data(), metadata);
  } else {
    multiply(kWarpRows, a.data(), b.data(), c_tile.data());
  }
  round_accumulators(mma_->acc, c_tile.data(), c.size());
  gather(c_tile.data(), c_places_, c);
}

void execute_mma(const Mma& mma, std::span<const double> a, std::span<const double> b,
                 std::span<double> c) {
  static const std::vector<MmaExecutor> kExecutors = [] {
    std::vector<MmaExecutor> out;
    for (const Mma& row : all_mmas()) {
      if (!row.reads_shared && !row.sparse) out.emplace_back(row);
    }
    return out;
  }();
  for (const MmaExecutor& executor : kExecutors) {
    if (&executor.mma() == &mma) return executor.run(a, b, c);
  }
  KILN_UNREACHABLE("{} is no row of the table", mma.name);
}

}  // namespace kiln::target
