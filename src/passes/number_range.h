// Between which numbers an index expression lies, whatever the launch: dimensions are numbers of 31 bits, and parameters
// any of their type. Part of the pass `skip-masks`.
#pragma once

#include <optional>

#include "ir/module.h"

namespace kiln::passes {

struct NumberRange {
  std::int64_t least = 0;
  std::int64_t largest = 0;
};

// Of the exact value, which need not fit into the type that the program computes it in. None where it may leave 64 bits,
// and where nothing is known of a variable.
[[nodiscard]] std::optional<NumberRange> number_range(const ir::Function& function,
                                                      const ir::Expr& expr);

// The numbers of an integer type of up to 32 bits, and of s64.
[[nodiscard]] std::optional<NumberRange> numbers_of(DType dtype);

}  // namespace kiln::passes
