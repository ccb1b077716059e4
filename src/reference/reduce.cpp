#include "reference/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/check.h"

namespace kiln::reference {

namespace {

bool any_unknown(std::span<const Number> numbers) {
  return std::ranges::any_of(numbers, [](const Number& n) { return n.error == kUnbounded; });
}

// Sums of floats round after each addition, whichever comes first; those of integers wrap.
Number sum_of(DType source, DType result, std::span<const Number> numbers) {
  if (!is_float(result)) {
    Number sum = exactly(ExactInteger{});
    for (const Number& number : numbers) sum = apply(ir::BinaryKind::kAdd, result, sum, number);
    return sum;
  }
  double value = 0;
  double magnitude = 0;
  double error = 0;
  bool whole = true;
  bool finite = true;
  for (const Number& number : numbers) {
    const Number wide = convert(number, source, result);
    finite = finite && std::isfinite(wide.value);
    value += wide.value;
    magnitude += std::fabs(wide.value);
    error += wide.error;
    whole = whole && wide.value == std::trunc(wide.value);
  }
  if (any_unknown(numbers) || std::isnan(error)) return {value, kUnbounded};
  // What is beyond f64 by the way may cancel in another order.
  if (!finite) return {value, error == 0 ? 0 : kUnbounded};
  if (magnitude + error > info(result).max) return {value, kUnbounded};
  if (whole && error == 0 && magnitude <= integers_exact_up_to(result)) return {value, 0};
  const auto count = static_cast<double>(numbers.size());
  const double u = roundoff(result) * std::exp(count * roundoff(result));
  return {value, error + count * (u + roundoff(DType::kF64)) * (magnitude + error)};
}

// A product of numbers with errors lies within that of their largest and smallest magnitudes.
Number product_of(DType source, DType result, std::span<const Number> numbers) {
  if (!is_float(result)) {
    Number product = convert({1, 0, 0}, DType::kS32, result);
    for (const Number& number : numbers) {
      product = apply(ir::BinaryKind::kMul, result, product, number);
    }
    return product;
  }
  double value = 1;
  double largest = 1;    // of the product's magnitude
  double least = 1;      // of the magnitudes without the errors
  double of_a_part = 1;  // the largest that some of the factors may give
  for (const Number& number : numbers) {
    const Number wide = convert(number, source, result);
    value *= wide.value;
    largest *= std::fabs(wide.value) + wide.error;
    least *= std::fabs(wide.value);
    of_a_part *= std::max(1.0, std::fabs(wide.value) + wide.error);
  }
  if (any_unknown(numbers) || of_a_part > info(result).max || !std::isfinite(value)) {
    return {value, kUnbounded};
  }
  const auto count = static_cast<double>(numbers.size());
  const double grown = std::exp(count * (roundoff(result) + roundoff(DType::kF64))) - 1;
  const double lost = count * smallest(result) * of_a_part;
  return {value, largest - least + largest * grown + lost};
}

// The largest; of a machine it lies between the largest lower end and the largest upper one.
Number extremum_of(ir::ReduceKind kind, std::span<const Number> numbers) {
  const double sign = kind == ir::ReduceKind::kMin ? -1 : 1;
  Number best{-sign * std::numeric_limits<double>::infinity(), 0, 0};
  double low = -std::numeric_limits<double>::infinity();
  double high = low;
  for (const Number& number : numbers) {
    if (number.error == kUnbounded) return {number.value, kUnbounded};
    if (std::isnan(number.value)) continue;
    const double value = sign * number.value;
    const bool ahead = value > sign * best.value ||
                       (value == 0 && std::signbit(sign * best.value) && !std::signbit(value) &&
                        best.value == 0) ||
                       (value == sign * best.value && sign * number.rest > sign * best.rest);
    if (ahead) best = number;
    low = std::max(low, value - number.error);
    high = std::max(high, value + number.error);
  }
  const double value = sign * best.value;
  best.error = std::isfinite(value) ? std::max(high - value, value - low) : best.error;
  return best;
}

// The first of the largest. Another that may be it is an error as far away as it stands.
Number place_of_largest(std::span<const Number> numbers) {
  if (any_unknown(numbers)) return {0, kUnbounded};
  std::size_t best = 0;
  bool found = false;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (std::isnan(numbers[i].value)) continue;
    const bool ahead =
        !found || numbers[i].value > numbers[best].value ||
        (numbers[i].value == numbers[best].value && numbers[i].rest > numbers[best].rest);
    if (ahead) best = i;
    found = true;
  }
  double away = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const bool open = numbers[i].error > 0 || numbers[best].error > 0;
    const bool may_be =
        numbers[i].value + numbers[i].error >= numbers[best].value - numbers[best].error;
    if (!open || !may_be) continue;
    away = std::max(away, std::fabs(static_cast<double>(i) - static_cast<double>(best)));
  }
  return {static_cast<double>(best), away};
}

}  // namespace

Number reduce(ir::ReduceKind kind, DType source, DType result, std::span<const Number> numbers) {
  switch (kind) {
    case ir::ReduceKind::kSum: return sum_of(source, result, numbers);
    case ir::ReduceKind::kProduct: return product_of(source, result, numbers);
    case ir::ReduceKind::kMax:
    case ir::ReduceKind::kMin: return extremum_of(kind, numbers);
    case ir::ReduceKind::kArgMax: return place_of_largest(numbers);
  }
  KILN_UNREACHABLE("no reduction");
}

}  // namespace kiln::reference
