#include "target/execute.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "support/check.h"
#include "target/arch.h"

namespace kiln::target {

namespace {

constexpr int kNBlock = 8;  // every row's n is a multiple of it: the inner loop has a fixed length
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

void scatter(std::span<const double> values, const std::vector<std::uint16_t>& places,
             double* tile) {
  for (std::size_t i = 0; i < places.size(); ++i) tile[places[i]] = values[i];
}

// c[m][n] += sum over k of a[m][k] * b[k][n], for one block of n; the old c comes first. Products
// of all types but f64 are exact in double.
template <bool kFused>
void multiply_block(const MmaShape& shape, const double* a, const double* b, double* c) {
  for (int m = 0; m < shape.m; ++m) {
    std::array<double, kNBlock> sum;
    for (int n = 0; n < kNBlock; ++n) sum[static_cast<std::size_t>(n)] = c[m * shape.n + n];
    for (int k = 0; k < shape.k; ++k) {
      const double factor = a[m * shape.k + k];
      const double* row = b + k * shape.n;
      for (int n = 0; n < kNBlock; ++n) {
        double& to = sum[static_cast<std::size_t>(n)];
        to = kFused ? std::fma(factor, row[n], to) : to + factor * row[n];
      }
    }
    for (int n = 0; n < kNBlock; ++n) c[m * shape.n + n] = sum[static_cast<std::size_t>(n)];
  }
}

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
  return std::isnan(value) ? value : std::copysign(std::numeric_limits<double>::infinity(), value);
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
  return std::isnan(value) ? value : std::copysign(std::numeric_limits<double>::infinity(), value);
}

namespace {

// Rounds to the accumulator's type as the model of execute.h says.
double round_accumulator(DType acc, double value) {
  if (acc == DType::kF32) return round_towards_zero_f32(value);
  if (acc == DType::kF16) return round_to_nearest_f16(value);
  // An exact sum of at most 33 numbers of 32 bits.
  if (acc == DType::kS32) return static_cast<std::int32_t>(static_cast<std::int64_t>(value));
  return round_to(acc, value);
}

}  // namespace

MmaExecutor::MmaExecutor(const Mma& mma)
    : mma_(&mma),
      a_places_(places(mma, Operand::kA, extents(mma, Operand::kA).cols, 1)),
      b_places_(has_map(mma, Operand::kB) ? places(mma, Operand::kB, 1, mma.shape.n)
                                          : std::vector<std::uint16_t>{}),
      c_places_(places(mma, Operand::kC, mma.shape.n, 1)) {
  KILN_CHECK(mma.shape.n % kNBlock == 0, "{} has n = {}", mma.name, mma.shape.n);
  for (const auto* list : {&a_places_, &b_places_, &c_places_}) {
    KILN_CHECK(mma.reads_shared || list->size() <= kElementsMax, "{} has a tile of {}", mma.name,
               list->size());
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

// As multiply_block, over the stored elements alone: what they skip is not multiplied.
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
                 a.size() == a_places_.size() && b.size() == b_places_.size() &&
                 c.size() == c_places_.size(),
             "{} on {}, {} and {} values", mma_->name, a.size(), b.size(), c.size());
  std::array<double, kElementsMax> a_tile;
  std::array<double, kElementsMax> b_tile;
  std::array<double, kElementsMax> c_tile;
  scatter(a, a_places_, a_tile.data());
  scatter(b, b_places_, b_tile.data());
  scatter(c, c_places_, c_tile.data());
  multiply_sparse(a_tile.data(), b_tile.data(), c_tile.data(), metadata);
  for (std::size_t i = 0; i < c.size(); ++i) {
    c[i] = round_accumulator(mma_->acc, c_tile[c_places_[i]]);
  }
}

void MmaExecutor::multiply(int rows, const double* a, const double* b, double* c) const {
  const auto multiply = mma_->acc == DType::kF64 ? multiply_block<true> : multiply_block<false>;
  const MmaShape shape = {rows, mma_->shape.n, mma_->shape.k};
  for (int n = 0; n < shape.n; n += kNBlock) multiply(shape, a, b + n, c + n);
}

void MmaExecutor::run(std::span<const double> a, std::span<const double> b,
                      std::span<double> c) const {
  KILN_CHECK(
      a.size() == a_places_.size() && b.size() == b_places_.size() && c.size() == c_places_.size(),
      "{} on {}, {} and {} values", mma_->name, a.size(), b.size(), c.size());
  std::array<double, kElementsMax> a_tile;
  std::array<double, kElementsMax> b_tile;
  std::array<double, kElementsMax> c_tile;
  scatter(a, a_places_, a_tile.data());
  scatter(b, b_places_, b_tile.data());
  scatter(c, c_places_, c_tile.data());
  multiply(mma_->shape.m, a_tile.data(), b_tile.data(), c_tile.data());
  for (std::size_t i = 0; i < c.size(); ++i) {
    c[i] = round_accumulator(mma_->acc, c_tile[c_places_[i]]);
  }
}

void MmaExecutor::run_warp(std::span<const double> a, std::span<const double> b,
                           std::span<double> c, std::span<const std::uint32_t> metadata) const {
  const TileExtents b_tile = extents(*mma_, Operand::kB);
  const auto a_size = static_cast<std::size_t>(kWarpRows * extents(*mma_, Operand::kA).cols);
  KILN_CHECK(mma_->reads_shared && a.size() == a_size &&
                 b.size() == static_cast<std::size_t>(b_tile.rows * b_tile.cols) &&
                 c.size() == c_places_.size(),
             "{} on {}, {} and {} values", mma_->name, a.size(), b.size(), c.size());
  constexpr std::size_t kRowMax = 256;  // the largest N
  std::array<double, kWarpRows * kRowMax> c_tile;
  scatter(c, c_places_, c_tile.data());
  if (mma_->sparse) {
    multiply_sparse(a.data(), b.data(), c_tile.data(), metadata);
  } else {
    multiply(kWarpRows, a.data(), b.data(), c_tile.data());
  }
  for (std::size_t i = 0; i < c.size(); ++i) {
    c[i] = round_accumulator(mma_->acc, c_tile[c_places_[i]]);
  }
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
