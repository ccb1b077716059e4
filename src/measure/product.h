// Which product of two matrices an einsum is, if it is one: what a library of products can do too.
//
//   c[m,n] = a[m,k] * b[n,k]     C = A B^T, both along k
//   c[m,n] = b[k,n] * a[k,m]     C = A^T B: a is the factor with the rows, in whatever order
//   c[m]   = a[m,k] * b[k]       none
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gemm/problem.h"
#include "reference/einsum.h"

namespace kiln::measure {

struct ProductOf {
  gemm::Problem problem;  // without an epilogue
  double scale = 1;       // of all of C
  std::string a;          // the tensors' names
  std::string b;
  std::string c;
};

// The einsum must have passed reference::check with these tensors.
[[nodiscard]] std::optional<ProductOf> matrix_product(const reference::Einsum& einsum,
                                                      const std::vector<reference::Named>& tensors);

}  // namespace kiln::measure
