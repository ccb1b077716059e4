#include "measure/bench_sample.h"

#include <algorithm>
#include <cmath>

namespace kiln::measure {

namespace {

// SplitMix64's mixing of a counter.
std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

std::vector<bench::Index> spread_indices(std::int64_t extent, std::int64_t count,
                                         std::uint64_t seed) {
  count = std::min(extent, count);
  std::vector<bench::Index> out;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t begin = extent * i / count;
    const std::int64_t length = extent * (i + 1) / count - begin;
    const std::uint64_t random =
        mixed((seed + 1) * 0x9e3779b97f4a7c15 + static_cast<std::uint64_t>(i));
    out.push_back(begin + static_cast<std::int64_t>(random % static_cast<std::uint64_t>(length)));
  }
  return out;
}

Sample choose_sample(const gemm::Problem& product, std::uint64_t seed) {
  if (product.m * product.n <= kWholeUpTo / product.k) return {.whole = true};
  return {.rows = spread_indices(product.m, kSampledLines, 2 * seed),
          .columns = spread_indices(product.n, kSampledLines, 2 * seed + 1)};
}

bench::Format bench_format(DType dtype) {
  const DTypeInfo& type = info(dtype == DType::kTF32 ? DType::kF32 : dtype);
  const bool fits = type.bits == 8 || type.bits == 16 || type.bits == 32;
  if (type.kind == NumberKind::kSigned && fits) {
    return {.bytes = type.bits / 8,
            .shift = 0,
            .up = 0,
            .not_finite = 1U << (type.bits - 1),
            .ignored = 0};
  }
  KILN_CHECK(fits && type.kind == NumberKind::kFloat && type.exponent_bits > 0,
             "{} is checked on no GPU", type.name);
  // Without infinities the top exponent has numbers too, and only all ones is NaN.
  const unsigned top = (1U << (type.bits - 1)) - (1U << type.mantissa_bits);
  const unsigned not_finite = type.ieee ? top : (1U << (type.bits - 1)) - 1;
  const int dropped = type.mantissa_bits - info(dtype).mantissa_bits;
  return {.bytes = type.bits / 8,
          .shift = 23 - type.mantissa_bits,
          .up = std::ldexp(1.0F, 127 - type.bias),
          .not_finite = not_finite,
          .ignored = (1U << dropped) - 1};
}

bench::Factor factor_a(const gemm::Problem& product, const void* data) {
  const bool along = product.a_along_k;
  return {.data = data,
          .format = bench_format(product.a),
          .outer_step = along ? product.k : 1,
          .k_step = along ? 1 : product.m,
          .scales = nullptr,
          .scale_outer = 1,
          .scale_k = 1,
          .scale_outer_step = 0,
          .scale_k_step = 0};
}

bench::Factor factor_b(const gemm::Problem& product, const void* data) {
  const bool along = product.b_along_k;
  return {.data = data,
          .format = bench_format(product.b),
          .outer_step = along ? product.k : 1,
          .k_step = along ? 1 : product.n,
          .scales = nullptr,
          .scale_outer = 1,
          .scale_k = 1,
          .scale_outer_step = 0,
          .scale_k_step = 0};
}

bench::Bound exact_bound(const gemm::Problem& product) {
  if (!is_float(product.c)) return {.relative = 0, .floor = 0, .roundoff = 0, .smallest = 0};
  return {.relative = 0,
          .floor = 0,
          .roundoff = roundoff(product.c),
          .smallest = smallest(product.c) / 2};
}

bench::Bound bench_bound(const reference::EinsumNumerics& numerics, const gemm::Problem& product) {
  bench::Bound bound = exact_bound(product);
  if (!is_float(product.c)) return bound;
  // In fp64, so that nothing but the sum is in it. The bound is linear in the magnitudes.
  const auto of = [&](double magnitude) {
    return reference::product_bound({.value = 0,
                                     .magnitude = magnitude,
                                     .length = static_cast<double>(product.k),
                                     .largest = 1},
                                    numerics, product.a, DType::kF64);
  };
  bound.floor = of(0);
  bound.relative = of(1) - bound.floor;
  return bound;
}

float integer_density(std::int64_t k) {
  if (4 * k < 2048) return 0;
  return static_cast<float>(std::sqrt(1000.0 / static_cast<double>(k)));
}

bench::Part part_of_rows(const gemm::Problem& product, const bench::Index* rows,
                         std::int64_t count) {
  return {.rows = rows,
          .row_begin = 0,
          .row_count = count,
          .column_begin = 0,
          .column_count = product.n,
          .row_step = product.n,
          .column_step = 1};
}

bench::Part part_of_columns(const gemm::Problem& product, const bench::Index* columns,
                            std::int64_t count) {
  return {.rows = columns,
          .row_begin = 0,
          .row_count = count,
          .column_begin = 0,
          .column_count = product.m,
          .row_step = 1,
          .column_step = product.n};
}

bench::Part part_of_element(const gemm::Problem& product, std::int64_t element) {
  return {.rows = nullptr,
          .row_begin = element / product.n,
          .row_count = 1,
          .column_begin = element % product.n,
          .column_count = 1,
          .row_step = product.n,
          .column_step = 1};
}

}  // namespace kiln::measure
