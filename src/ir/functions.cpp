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

}  // namespace

std::span<const FunctionInfo> all_functions() { return kFunctions; }

const FunctionInfo& info(UnaryKind function) {
  KILN_CHECK(is_function(function), "an operator, not a function");
  const auto first = static_cast<std::size_t>(UnaryKind::kBitNot) + 1;
  return kFunctions[static_cast<std::size_t>(function) - first];
}

double value_of(UnaryKind function, double x) { return info(function).value(x); }

}  // namespace kiln::ir
