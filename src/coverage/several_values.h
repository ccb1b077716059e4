// Whether an index expression is the same for all threads, or blocks, of a group: by working it out for each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/module.h"
#include "support/function_ref.h"

namespace kiln::coverage {

// A value that the variable may have, made of a random number, or its least one.
[[nodiscard]] inline std::int64_t value_it_may_have(const ir::Var& var, std::uint64_t random,
                                                    bool least) {
  constexpr std::int64_t kValueMax = 1 << 14;  // of what has no constant extent
  const std::int64_t first = var.kind == ir::VarKind::kDim ? 1 : 0;
  const std::int64_t count =
      least ? 1 : std::max<std::int64_t>(1, var.extent.constant().value_or(kValueMax));
  return first + static_cast<std::int64_t>(random % static_cast<std::uint64_t>(count));
}

// `put(i, values)` writes the variables of member i, of `count`, into `values`; all others stay.
[[nodiscard]] inline bool has_several_values(
    const ir::Expr& place, std::int64_t count, std::vector<std::int64_t> values,
    FunctionRef<void(std::int64_t, std::vector<std::int64_t>&)> put) {
  put(0, values);
  const std::int64_t first = place.evaluate(values);
  for (std::int64_t i = 1; i < count; ++i) {
    put(i, values);
    if (place.evaluate(values) != first) return true;
  }
  return false;
}

}  // namespace kiln::coverage
