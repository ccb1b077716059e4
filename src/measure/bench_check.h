// Is the product that was measured right?
//
//   the sample    64 rows and 64 columns, chosen by the seed, one in each 64th of the matrix: their
//                 4096 elements against fp64, each within the numeric bound of its own sum
//   the whole     every element against the vendor's: no further apart than both bounds together,
//                 with |row of A| * |column of B| for the sum of the magnitudes
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "measure/product.h"
#include "reference/compare.h"

namespace kiln::measure {

// Host copies of one set of buffers.
struct Measured {
  const Tensor& a;
  const Tensor& b;
  const Tensor& c;  // ours
};

[[nodiscard]] reference::Comparison check_sample(const reference::Einsum& einsum,
                                                 const ProductOf& product, const Measured& measured,
                                                 const reference::EinsumNumerics& numerics,
                                                 std::uint64_t seed);

// How the two kernels that are compared add and round, ours and the vendor's.
struct BothNumerics {
  reference::EinsumNumerics ours;
  reference::EinsumNumerics vendor;
};

// Compares our result with the vendor's: `expected` of a mismatch is the vendor's element.
[[nodiscard]] reference::Comparison compare_with_vendor(const ProductOf& product,
                                                        const Measured& measured,
                                                        const Tensor& vendor,
                                                        const BothNumerics& numerics);

// How the vendor's kernels add and round, for types of these: the weakest instruction of any
// architecture up to `capability` that adds in f32.
[[nodiscard]] reference::EinsumNumerics vendor_numerics(const gemm::Problem& product,
                                                        int capability);

}  // namespace kiln::measure
