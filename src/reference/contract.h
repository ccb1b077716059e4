// A sum of products as blocked loops: what formulas and products spend their time in.
#pragma once

#include <cstddef>

namespace kiln::reference {

struct ContractExtents {
  std::size_t m = 0;
  std::size_t n = 0;
  std::size_t k = 0;
};

// c[m][n] += sum over k of a[m][k] * b[k][n], all of them row-major and without gaps. Each element
// adds its products in the order of k, four at a time.
void contract(const double* a, const double* b, double* c, ContractExtents extents);
// The same `count` times, of matrices that lie behind each other.
void contract(std::size_t count, const double* a, const double* b, double* c,
              ContractExtents extents);

}  // namespace kiln::reference
