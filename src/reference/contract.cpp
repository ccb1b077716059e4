#include "reference/contract.h"

#include <algorithm>

namespace kiln::reference {

namespace {

// A block of b that stays in the first-level cache.
constexpr std::size_t kBlockColumns = 128;
constexpr std::size_t kBlockDepth = 16;

void add_four(const double* a, const double* b, std::size_t stride, double* c,
              std::size_t columns) {
  const double a0 = a[0];
  const double a1 = a[1];
  const double a2 = a[2];
  const double a3 = a[3];
  const double* b0 = b;
  const double* b1 = b + stride;
  const double* b2 = b + 2 * stride;
  const double* b3 = b + 3 * stride;
  for (std::size_t n = 0; n < columns; ++n) {
    c[n] += (a0 * b0[n] + a1 * b1[n]) + (a2 * b2[n] + a3 * b3[n]);
  }
}

// The products of one block of b, for all rows of a.
void add_depth(const double* a, const double* b, double* c, ContractExtents block,
               ContractExtents all) {
  for (std::size_t m = 0; m < all.m; ++m) {
    const double* left = a + m * all.k;
    double* to = c + m * all.n;
    std::size_t k = 0;
    for (; k + 4 <= block.k; k += 4) add_four(left + k, b + k * all.n, all.n, to, block.n);
    for (; k < block.k; ++k) {
      for (std::size_t n = 0; n < block.n; ++n) to[n] += left[k] * b[k * all.n + n];
    }
  }
}

}  // namespace

void contract(const double* a, const double* b, double* c, ContractExtents extents) {
  for (std::size_t n = 0; n < extents.n; n += kBlockColumns) {
    const std::size_t columns = std::min(kBlockColumns, extents.n - n);
    for (std::size_t k = 0; k < extents.k; k += kBlockDepth) {
      const std::size_t depth = std::min(kBlockDepth, extents.k - k);
      add_depth(a + k, b + k * extents.n + n, c + n, {extents.m, columns, depth}, extents);
    }
  }
}

void contract(std::size_t count, const double* a, const double* b, double* c,
              ContractExtents extents) {
  for (std::size_t i = 0; i < count; ++i) {
    contract(a + i * extents.m * extents.k, b + i * extents.k * extents.n,
             c + i * extents.m * extents.n, extents);
  }
}

}  // namespace kiln::reference
