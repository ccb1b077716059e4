// Whether an index expression is the same for all threads, or blocks, of a group: by working it out for each.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/expr.h"
#include "support/function_ref.h"

namespace kiln::coverage {

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
