#include "ir/functions.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>

#include "support/check.h"

namespace kiln::ir {

namespace {

constexpr FunctionInfo kFunctions[] = {
#define KILN_FUNCTION(Name, name, spelling, value, least, most, course, single, f32_ulps, \
                      f32_zero, double_, f64_ulps)                                        \
  {UnaryKind::k##Name,                                                                    \
   #name,                                                                                 \
   spelling,                                                                              \
   [](double x) -> double { return value; },                                              \
   least,                                                                                 \
   most,                                                                                  \
   Course::course,                                                                        \
   f32_ulps,                                                                              \
   f32_zero,                                                                              \
   f64_ulps},
#include "kiln/device/function.def"
};

constexpr FunctionOfTwoInfo kFunctionsOfTwo[] = {
#define KILN_FUNCTION_OF_TWO(Name, name, spelling, value, single, f32_ulps, double_, f64_ulps) \
  {BinaryKind::k##Name, #name, spelling, f32_ulps, f64_ulps},
#include "kiln/device/function.def"
};

using BinaryValue = double (*)(double a, double b);
constexpr BinaryValue kBinaryValues[] = {
#define KILN_BINARY(Name, name, text, binding, category, floats, ...) \
  []([[maybe_unused]] double a, [[maybe_unused]] double b) -> double { return floats; },
#include "ir/binary.def"
#undef KILN_BINARY
};

}  // namespace

std::span<const FunctionInfo> all_functions() { return kFunctions; }
std::span<const FunctionOfTwoInfo> all_functions_of_two() { return kFunctionsOfTwo; }

const FunctionInfo& info(UnaryKind function) {
  KILN_CHECK(is_function(function), "an operator, not a function");
  const auto first = static_cast<std::size_t>(UnaryKind::kBitNot) + 1;
  return kFunctions[static_cast<std::size_t>(function) - first];
}

const FunctionOfTwoInfo& info(BinaryKind function) {
  const auto found = std::ranges::find(kFunctionsOfTwo, function, &FunctionOfTwoInfo::kind);
  KILN_CHECK(found != std::end(kFunctionsOfTwo), "an operator, not a function");
  return *found;
}

double larger_of(double a, double b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) ? b : a;
  return a < b ? b : a;
}

double smaller_of(double a, double b) { return -larger_of(-a, -b); }

namespace {

// a * b + c of numbers of 16 bits, whose product a double holds: the neighbour of the sum with an odd
// last bit where bits were lost, which rounds to 16 bits as the sum does.
double fused_to_odd(double a, double b, double c) {
  const double product = a * b;
  const double sum = product + c;
  if (!std::isfinite(sum)) return sum;
  const double of_c = sum - product;
  const double lost = (product - (sum - of_c)) + (c - of_c);
  if (lost == 0 || (std::bit_cast<std::uint64_t>(sum) & 1) != 0) return sum;
  return std::nextafter(sum, lost > 0 ? HUGE_VAL : -HUGE_VAL);
}

}  // namespace

double fused(DType dtype, double a, double b, double c) {
  if (dtype == DType::kF64) return std::fma(a, b, c);
  if (info(dtype).bits == 16) return round_to(dtype, fused_to_odd(a, b, c));
  return static_cast<double>(
      std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c)));
}

std::optional<BinaryKind> combines(target::Atomic kind) {
  constexpr std::optional<BinaryKind> kRows[] = {
#define KILN_ATOMIC(Name, name, combines, ...) combines,
#include "target/atomic.def"
#undef KILN_ATOMIC
  };
  return kRows[static_cast<std::size_t>(kind)];
}

// Operations that combine commute, and so do sums of floats up to their rounding, of which nobody
// knows the order; what they return does not.
Touch Atomic::touch() const {
  return {.value = view,
          .use = Use::kUpdates,
          .index = &index,
          .atomic = true,
          .commutes = unused && combines(kind) ? std::optional(kind) : std::nullopt};
}

double value_of(UnaryKind function, double x) { return info(function).value(x); }

double value_of(BinaryKind kind, double a, double b) {
  return kBinaryValues[static_cast<std::size_t>(kind)](a, b);
}

}  // namespace kiln::ir
