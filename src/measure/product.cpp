#include "measure/product.h"

#include <algorithm>

namespace kiln::measure {

namespace {

// Where `index` stands in the term; 2 when it does not.
std::size_t place(const reference::EinsumTerm& term, const std::string& index) {
  const auto found = std::find(term.indices.begin(), term.indices.end(), index);
  return std::min<std::size_t>(static_cast<std::size_t>(found - term.indices.begin()), 2);
}

// A matrix with the index `outer`, which `other` has not, and one more: 0 or 1, where that stands.
std::optional<std::size_t> summed_place(const reference::EinsumTerm& term, const std::string& outer,
                                        const std::string& other) {
  if (term.indices.size() != 2 || term.indices[0] == term.indices[1]) return std::nullopt;
  const std::size_t at = place(term, outer);
  if (at == 2 || place(term, other) != 2) return std::nullopt;
  return 1 - at;
}

}  // namespace

std::optional<ProductOf> matrix_product(const reference::Einsum& einsum,
                                        const std::vector<reference::Named>& tensors) {
  if (einsum.factors.size() != 2 || einsum.output.indices.size() != 2) return std::nullopt;
  const std::string& m = einsum.output.indices[0];
  const std::string& n = einsum.output.indices[1];
  const bool in_order = place(einsum.factors[0], m) != 2;
  const reference::EinsumTerm& a = einsum.factors[in_order ? 0 : 1];
  const reference::EinsumTerm& b = einsum.factors[in_order ? 1 : 0];
  const auto a_k = summed_place(a, m, n);
  const auto b_k = summed_place(b, n, m);
  if (!a_k || !b_k || a.indices[*a_k] != b.indices[*b_k]) return std::nullopt;
  const auto tensor = [&](const std::string& name) -> const Tensor& {
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const auto& named) { return named.name == name; });
    KILN_CHECK(found != tensors.end(), "`{}` was checked before", name);
    return *found->tensor;
  };
  const Tensor& left = tensor(a.name);
  const Tensor& right = tensor(b.name);
  return ProductOf{.problem = {.m = left.shape[1 - *a_k],
                               .n = right.shape[1 - *b_k],
                               .k = left.shape[*a_k],
                               .a = left.dtype,
                               .b = right.dtype,
                               .c = tensor(einsum.output.name).dtype,
                               .a_along_k = *a_k == 1,
                               .b_along_k = *b_k == 1},
                   .scale = einsum.scale,
                   .a = a.name,
                   .b = b.name,
                   .c = einsum.output.name};
}

}  // namespace kiln::measure
