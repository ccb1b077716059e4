// A product of tensors, summed over what is not on the left: the plainest formula of `--expect`, and
// the only one that `kiln bench` and `kiln tune` take.
//
//   output[m,n] = lhs[m,k] * rhs[n,k]        sums over k, which is not on the left
//   y[i] = 2 * x[i]                          numbers may be factors
//
// The right side is evaluated in fp64 from the inputs; the bound of each element is
//   (K/k + 2) * u * sum |product| + roundoff(output) * |value|
// with K the product of the summed extents. Sums of integers that the accumulator holds exactly
// have bound 0. Factors that the operands' type does not hold bring its roundoff along.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "diag/diagnostics.h"
#include "reference/interpreter.h"
#include "support/tensor.h"

namespace kiln::reference {

struct EinsumTerm {
  std::string name;
  Span span;
  std::vector<std::string> indices;
  std::vector<Span> index_spans;
};

struct Einsum {
  EinsumTerm output;
  std::vector<EinsumTerm> factors;
  double scale = 1;  // the product of the numeric factors
};

// Reads a formula (formula.h) that must be one such product; spans point into the text, which is
// added to `sources` as "--expect".
[[nodiscard]] Checked<Einsum> parse_einsum(const std::string& text, Sources& sources,
                                           Diagnostics& diags);

// A tensor the statement may name.
struct Named {
  std::string name;
  const Tensor* tensor = nullptr;
  bool has_contents = true;  // false: the kernel makes it, so it may stand on the left only
};

// How the kernel adds: its weakest matrix instruction.
struct EinsumNumerics {
  Accumulation accumulation{.roundoff = 0x1p-24, .depth = 1};
  DType accumulator = DType::kF32;
  // What the operands are rounded to before they are multiplied: tf32 for f32.
  std::optional<DType> operand = std::nullopt;
  bool cut_off = false;  // not rounded but cut: twice the error
};

// Checks names, ranks and extents against the tensors, whose contents are not read.
[[nodiscard]] Checked<void> check(const Einsum& einsum, const std::vector<Named>& tensors,
                                  Diagnostics& diags);

// A sum of `length` products of two factors, seen from outside: magnitudes of products add up to at
// most `magnitude`, no factor is larger than `largest`.
struct ProductSum {
  double value = 0;
  double magnitude = 0;
  double length = 0;
  double largest = 0;
};

// How far such a sum, rounded to `output`, may be from its value: never less than what `evaluate`
// gives for the element. `factors` is the factors' type.
[[nodiscard]] double product_bound(const ProductSum& sum, const EinsumNumerics& numerics,
                                   DType factors, DType output);

// Checks names, ranks and extents against the tensors, then evaluates. The output must be one of
// `tensors` (its contents are not read).
[[nodiscard]] Checked<Output> evaluate(const Einsum& einsum, const std::vector<Named>& tensors,
                                       const EinsumNumerics& numerics, Diagnostics& diags);

// Which elements to evaluate, and whom to tell how far it is.
struct EinsumShare {
  std::vector<ElementRun> runs;
  std::function<void(std::size_t done, std::size_t all)> progress = {};
};

// The same for some elements of an output that has room for all of them; what does not fit the
// tensors was reported before (KILN_CHECK). On all cores.
void evaluate(const Einsum& einsum, const std::vector<Named>& tensors,
              const EinsumNumerics& numerics, const EinsumShare& share, Output& output);

}  // namespace kiln::reference
