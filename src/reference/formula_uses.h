// What a bound formula reads of what: definitions of each other, and of the tensors they are given.
#pragma once

#include <vector>

#include "reference/formula.h"

namespace kiln::reference {

[[nodiscard]] std::int64_t elements_of(const std::vector<std::int64_t>& shape);

// Whether some definition reads definition d.
[[nodiscard]] bool is_read(const BoundFormula& formula, std::size_t d);

// Whether definition d is a plain product of what the kernel is given.
[[nodiscard]] bool is_product(const BoundFormula& formula, std::size_t d);

// Bytes of all that is kept while the formula is evaluated; `read`: the tensors that are.
[[nodiscard]] double bytes_of(const BoundFormula& formula, const std::vector<bool>& read,
                              bool sampled);

// How many terms are evaluated for all elements of the outputs, and of what they are made of.
[[nodiscard]] double terms_of(const BoundFormula& formula);

// Multiplications and additions of the sums of products, each sum made once for every place that it
// depends on: 2 H S T D for `s[h,q,t] = sum[d](...)`. What a tensor core could do of the formula.
[[nodiscard]] double flops_of(const BoundFormula& formula);

// Which tensors are read other than by a plain product, which reads for itself.
[[nodiscard]] std::vector<bool> tensors_read(const BoundFormula& formula);

}  // namespace kiln::reference
