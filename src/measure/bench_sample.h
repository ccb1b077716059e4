// How a product is checked on the GPU: what the check kernels (bench_kernels.cuh) are given.
//
//   whole     products of up to 2^34 multiplications: every element against fp64
//   sample    larger ones: 32 rows and 32 columns, whole, chosen by the seed, one in each 32nd of C
//
//   choose_sample({.m = 8192, .n = 8192, .k = 8192}, 0)    32 rows, 32 columns: 524,288 elements
#pragma once

#include <cstdint>
#include <vector>

#include "gemm/problem.h"
#include "measure/bench_values.cuh"
#include "reference/einsum.h"

namespace kiln::measure {

inline constexpr std::int64_t kWholeUpTo = std::int64_t{1} << 34;  // multiplications
inline constexpr std::int64_t kSampledLines = 32;                  // rows, and as many columns

struct Sample {
  bool whole = false;
  std::vector<bench::Index> rows = {};  // of C, ascending; none when it is whole
  std::vector<bench::Index> columns = {};
};
[[nodiscard]] Sample choose_sample(const gemm::Problem& product, std::uint64_t seed);

// One index in each of `count` equal stretches of the extent; all when there are no more.
[[nodiscard]] std::vector<bench::Index> spread_indices(std::int64_t extent, std::int64_t count,
                                                       std::uint64_t seed);

// Of floats and signed integers of 8, 16 and 32 bits, tf32 among them (KILN_CHECK).
[[nodiscard]] bench::Format bench_format(DType dtype);

// The factors of a product at these addresses; no scales.
[[nodiscard]] bench::Factor factor_a(const gemm::Problem& product, const void* data);
[[nodiscard]] bench::Factor factor_b(const gemm::Problem& product, const void* data);

// reference::product_bound for the product's sums, as the kernels evaluate it.
[[nodiscard]] bench::Bound bench_bound(const reference::EinsumNumerics& numerics,
                                       const gemm::Problem& product);
// Of sums that every accumulator holds exactly: only C's rounding is left.
[[nodiscard]] bench::Bound exact_bound(const gemm::Problem& product);

// `density` of kiln_fill_integers with which sums of k products are exact: their magnitudes add up
// to about 1000, in f16 and in the tensor cores' sums of 8-bit floats 2048 is exact still.
[[nodiscard]] float integer_density(std::int64_t k);

// A row of C: from column 0 on; for a column of C the factors have changed places.
[[nodiscard]] bench::Part part_of_rows(const gemm::Problem& product, const bench::Index* rows,
                                       std::int64_t count);
[[nodiscard]] bench::Part part_of_columns(const gemm::Problem& product, const bench::Index* columns,
                                          std::int64_t count);
[[nodiscard]] bench::Part part_of_element(const gemm::Problem& product, std::int64_t element);

}  // namespace kiln::measure
