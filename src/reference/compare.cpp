#include "reference/compare.h"

#include <algorithm>
#include <cmath>

#include "reference/number.h"

namespace kiln::reference {

namespace {

// The error over the bound; above 1 is outside.
double ratio(DType dtype, double expected, double bound, double actual) {
  if (std::isnan(expected)) return std::isnan(actual) ? 0 : kUnbounded;
  if (std::isinf(expected)) return actual == expected ? 0 : kUnbounded;
  if (std::isnan(actual)) return kUnbounded;
  if (std::isinf(actual)) {
    const bool may_overflow = std::fabs(expected) + bound > info(dtype).max &&
                              std::signbit(actual) == std::signbit(expected);
    return may_overflow ? 0 : kUnbounded;
  }
  const double error = std::fabs(actual - expected);
  if (error == 0) return 0;
  return bound == 0 ? kUnbounded : error / bound;
}

std::vector<std::int64_t> coordinates_of(std::size_t index,
                                         const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> out(shape.size());
  auto rest = static_cast<std::int64_t>(index);
  for (std::size_t d = shape.size(); d-- > 0;) {
    out[d] = rest % shape[d];
    rest /= shape[d];
  }
  return out;
}

}  // namespace

Comparison compare(const Output& expected, const Tensor& actual) {
  return compare(std::vector<const Output*>{&expected}, actual);
}

Comparison compare(const std::vector<const Output*>& expected, const Tensor& actual,
                   const std::vector<bool>& unwritten) {
  for (const Output* output : expected) {
    KILN_CHECK(output->dtype == actual.dtype && output->shape == actual.shape,
               "`{}` is {} {}, not {} {}", output->name, name(actual.dtype),
               shape_text(actual.shape), name(output->dtype), shape_text(output->shape));
  }
  Comparison out;
  out.elements = actual.elements();
  for (std::size_t i = 0; i < static_cast<std::size_t>(out.elements); ++i) {
    const double seen = actual.get(i);
    bool bounded = false;
    Mismatch worst{{}, 0, 0, seen};
    double error = 0;
    for (const Output* output : expected) {
      const double bound = output->bound[i];
      if (bound == kUnbounded) continue;
      bounded = true;
      // An exact value is compared as the type stores it.
      const double value =
          bound == 0 ? round_to(output->dtype, output->expected[i]) : output->expected[i];
      const double one = ratio(output->dtype, value, bound, seen);
      if (one >= error) worst = {{}, value, bound, seen};
      error = std::max(error, one);
    }
    if (!bounded) ++out.unbounded;
    out.worst = std::max(out.worst, error);
    if (!(error > 1)) continue;
    const bool missed = i < unwritten.size() && unwritten[i];
    const bool first = out.outside == out.outside_unwritten && !missed;
    out.outside_unwritten += missed;
    if (out.outside++ == 0 || first) {
      worst.coordinates = coordinates_of(i, actual.shape);
      out.first = std::move(worst);
    }
  }
  return out;
}

Tensor rounded(const Output& output) {
  Tensor tensor = Tensor::zeros(output.dtype, output.shape);
  for (std::size_t i = 0; i < output.expected.size(); ++i) tensor.set(i, output.expected[i]);
  return tensor;
}

}  // namespace kiln::reference
