// What can be proved about an Expr from the ranges of its variables: a parallel or loop variable v
// has 0 <= v < extent, and so has a bound one that has an extent; a dimension is at least 1, a
// scalar parameter can be anything.
#pragma once

#include "ir/module.h"

namespace kiln::ir {

// True when the value is the same in the whole launch: it is made of dimensions and parameters.
[[nodiscard]] bool known_at_launch(const Function& function, const Expr& expr);

// An upper bound of `expr` in launch-time values only (parallel and loop variables replaced by the
// largest or smallest value they take); nullopt when there is none.
[[nodiscard]] std::optional<Expr> upper_bound(const Function& function, const Expr& expr);

// The least value `expr` can take, when its terms show one.
[[nodiscard]] std::optional<std::int64_t> minimum(const Function& function, const Expr& expr);

// True when left <= right for every value the variables can take.
[[nodiscard]] bool always_less_equal(const Function& function, const Expr& left, const Expr& right);

// True when every value of `expr` is a multiple of `divisor` (> 0).
[[nodiscard]] bool always_divisible(const Expr& expr, std::int64_t divisor);

// True when the variable can differ between threads of one unit: of a block (kBlock), a warpgroup
// (kGroup4) or a warp (kGroup).
[[nodiscard]] bool varies_in(const Function& function, VarId var, Level unit);
// True when the scalar can differ between threads of one unit. What all threads read at one place of
// memory does not differ; what a cell holds does when some assignment's value does, or threads may
// reach the assignment without the others.
[[nodiscard]] bool value_varies_in(const Function& function, ValueId value, Level unit);
// True when threads of the unit may go different ways at the operation: at an `if` by its
// condition, in a loop by its bounds or because some of them leave it or a trip of it early.
[[nodiscard]] bool control_varies_in(const Function& function, OpId op, Level unit);

}  // namespace kiln::ir
