#include "ir/functions.h"

#include <cmath>

#include "support/check.h"

namespace kiln::ir {

namespace {

constexpr FunctionInfo kFunctions[] = {
#define KILN_FUNCTION(Name, name, spelling, value, least, most, single, f32_ulps, double_, \
                      f64_ulps)                                                            \
  {UnaryKind::k##Name, #name,   spelling, [](double x) { return value; }, least, most,                   \
   f32_ulps,           f64_ulps},
#include "kiln/device/function.def"
#undef KILN_FUNCTION
};

using BinaryValue = double (*)(double a, double b);
constexpr BinaryValue kBinaryValues[] = {
#define KILN_BINARY(Name, name, text, binding, category, floats) \
  []([[maybe_unused]] double a, [[maybe_unused]] double b) -> double { return floats; },
#include "ir/binary.def"
#undef KILN_BINARY
};

}  // namespace

std::span<const FunctionInfo> all_functions() { return kFunctions; }

const FunctionInfo& info(UnaryKind function) {
  KILN_CHECK(is_function(function), "an operator, not a function");
  const auto first = static_cast<std::size_t>(UnaryKind::kBitNot) + 1;
  return kFunctions[static_cast<std::size_t>(function) - first];
}

double value_of(UnaryKind function, double x) { return info(function).value(x); }

double value_of(BinaryKind kind, double a, double b) {
  return kBinaryValues[static_cast<std::size_t>(kind)](a, b);
}

}  // namespace kiln::ir
