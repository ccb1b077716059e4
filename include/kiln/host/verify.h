// Products compared with sums in f32: of all rows and columns up to a count, or of samples.
// `row_row`: b is [N, K]; `row_col`: b is [K, N].
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iostream>

#include "kiln/host/check.h"
#include "kiln/host/number.h"

namespace choreo {

struct SampledVerifierConfig {
  std::size_t num_samples = 512;
  float base_tol = 1.0F;
  float rel_tol = 0.01F;
  bool verbose = false;
};

namespace detail {

struct Tolerance {
  float base;
  float relative;
};

template <bool kByRows, class A, class B>
float product_element(const A& a, const B& b, std::size_t i, std::size_t j) {
  float sum = 0;
  for (std::size_t k = 0; k < a.shape()[1]; ++k) {
    if constexpr (kByRows) {
      sum += to_f32(a[i][k]) * to_f32(b[j][k]);
    } else {
      sum += to_f32(a[i][k]) * to_f32(b[k][j]);
    }
  }
  return sum;
}

// Whether element (i, j) is right; says what it should be when it is not.
template <bool kByRows, class A, class B, class C>
bool element_is_right(const A& a, const B& b, const C& c, std::array<std::size_t, 2> at,
                      Tolerance tolerance) {
  const float expected = product_element<kByRows>(a, b, at[0], at[1]);
  const float found = to_f32(c[at[0]][at[1]]);
  if (std::fabs(found - expected) <= tolerance.base + tolerance.relative * std::fabs(expected)) {
    return true;
  }
  std::cerr << "element [" << at[0] << ", " << at[1] << "] is " << found << ", expected "
            << expected << "\n";
  return false;
}

template <bool kByRows, class A, class B, class C>
void verify_subset(const A& a, const B& b, const C& c, Tolerance tolerance,
                   std::array<std::size_t, 2> count) {
  for (std::size_t i = 0; i < std::min(count[0], c.shape()[0]); ++i) {
    for (std::size_t j = 0; j < std::min(count[1], c.shape()[1]); ++j) {
      choreo_assert(element_is_right<kByRows>(a, b, c, {i, j}, tolerance), "the product is wrong");
    }
  }
}

// Samples are spread by a multiplier without a common factor with powers of 2.
template <bool kByRows, class A, class B, class C>
void verify_sampled(const A& a, const B& b, const C& c, const SampledVerifierConfig& config) {
  const std::size_t columns = c.shape()[1];
  const std::size_t all = c.shape()[0] * columns;
  const std::size_t count = std::min(config.num_samples, all);
  const Tolerance tolerance{config.base_tol, config.rel_tol};
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = count == all ? i : i * 2654435761U % all;
    if (!element_is_right<kByRows>(a, b, c, {at / columns, at % columns}, tolerance)) ++wrong;
  }
  if (config.verbose) std::cout << count - wrong << " of " << count << " samples are right\n";
  choreo_assert(wrong == 0, "the product is wrong");
}

}  // namespace detail

template <class A, class B, class C>
void verify_matmul_row_row_subset(const A& a, const B& b, const C& c, float base_tol, float rel_tol,
                                  std::size_t rows, std::size_t columns) {
  detail::verify_subset<true>(a, b, c, {base_tol, rel_tol}, {rows, columns});
}
template <class A, class B, class C>
void verify_matmul_row_col_subset(const A& a, const B& b, const C& c, float base_tol, float rel_tol,
                                  std::size_t rows, std::size_t columns) {
  detail::verify_subset<false>(a, b, c, {base_tol, rel_tol}, {rows, columns});
}
template <class A, class B, class C>
void verify_matmul_row_row_sampled(const A& a, const B& b, const C& c,
                                   const SampledVerifierConfig& config = {}) {
  detail::verify_sampled<true>(a, b, c, config);
}
template <class A, class B, class C>
void verify_matmul_row_col_sampled(const A& a, const B& b, const C& c,
                                   const SampledVerifierConfig& config = {}) {
  detail::verify_sampled<false>(a, b, c, config);
}
// `a` is the matrix before it was packed.
template <class A, class B, class C>
void verify_spmm_sampled(const A& a, const B& b, const C& c,
                         const SampledVerifierConfig& config = {}) {
  detail::verify_sampled<true>(a, b, c, config);
}

}  // namespace choreo
