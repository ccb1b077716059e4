// Runs one matrix instruction on register values, through its row's maps and nothing else.
//
//   execute_mma(*find_mma("m16n8k16.f32.f16"), a, b, c);     // c[16x8] += a[16x16] * b[8x16]^T
//
// Registers of all lanes lie as values[lane * values_of(mma, operand) + value]; every value is
// already a value of its type. The numeric model of one instruction:
//   - products are exact; each sum of `k` products and the old accumulator is taken in double;
//   - the sum is rounded once: into f32 towards zero, as tensor cores do, into f16 to nearest even;
//   - what is no number becomes the positive quiet NaN;
//   - integers wrap around at 32 bits; f64 is a chain of fused multiply-adds, each rounded.
// So its error is below 2^-23 (f32) or 2^-11 (f16) of the sum of the magnitudes, less than the
// row's acc_roundoff allows the hardware, which truncates the terms before it adds them: results
// agree to that bound and not bit by bit. Sums past the largest f32 or f16 give infinity on both.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "target/mma.h"
#include "target/sparse.h"

namespace kiln::target {

// For each (lane, value), lane after lane, the place of its element in a tile.
struct Places {
  explicit Places(std::vector<std::uint16_t> of);

  std::vector<std::uint16_t> list;
  bool in_pairs = false;  // values 2i and 2i + 1 are neighbours in the tile
};

// A row made ready to run: for each (lane, value) the place of its element in the tiles. Immutable.
class MmaExecutor {
 public:
  explicit MmaExecutor(const Mma& mma);

  // c += a * b. The spans hold lanes * values_of(operand) values (KILN_CHECK).
  void run(std::span<const double> a, std::span<const double> b, std::span<double> c) const;

  // One warp's share of a row that reads_shared, kWarpRows of its 64 rows: `a` is the tile as
  // m * K + k, `b` as k * N + n, `c` the warp's registers (32 * values_of).
  // Of a sparse row `a` has the stored elements and `metadata` the warp's registers of metadata,
  // with selector 0.
  static constexpr int kWarpRows = 16;
  void run_warp(std::span<const double> a, std::span<const double> b, std::span<double> c,
                std::span<const std::uint32_t> metadata = {}) const;

  // c += a * b on a sparse row whose operands lie in registers.
  void run_sparse(std::span<const double> a, std::span<const double> b, std::span<double> c,
                  std::span<const std::uint32_t> metadata) const;

  // The first of the warp's 16 rows with an illegal nibble for stored elements of which one is not
  // zero (zeros disturb nothing, wherever they are said to be); none: -1.
  [[nodiscard]] int row_with_illegal_metadata(std::span<const double> a,
                                              std::span<const std::uint32_t> metadata) const;
  // Where the warp's registers of A have their elements in `a`: [lane * values + value].
  [[nodiscard]] std::span<const std::uint16_t> a_places() const { return a_places_.list; }

  [[nodiscard]] const Mma& mma() const { return *mma_; }

 private:
  void multiply(int rows, const double* a, const double* b, double* c) const;
  void multiply_sparse(const double* a, const double* b, double* c,
                       std::span<const std::uint32_t> metadata) const;
  [[nodiscard]] unsigned nibble_of(int row, int group,
                                   std::span<const std::uint32_t> metadata) const;

  const Mma* mma_;
  // Of the first 32 lanes.
  Places a_places_;  // m * K + k
  Places b_places_;  // k * N + n: the inner loop runs over n
  Places c_places_;  // m * N + n
  const SparseMetadata* metadata_ = nullptr;
  std::vector<MetadataSource> nibbles_;  // row * groups + group, of 16 rows
};

// c += a * b on a row of all_mmas() whose operands lie in registers; its executor is made on the
// first call and kept. Safe from several threads.
void execute_mma(const Mma& mma, std::span<const double> a, std::span<const double> b,
                 std::span<double> c);

// The two roundings of the model, exposed for tests and for whoever must round alike.
[[nodiscard]] double round_towards_zero_f32(double value);
[[nodiscard]] double round_to_nearest_f16(double value);  // == round_to(DType::kF16, value), faster

}  // namespace kiln::target
