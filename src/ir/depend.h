// What an expression depends on, through the values that its variables were bound to.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "ir/module.h"

namespace kiln::ir {

struct Dependence {
  std::set<ir::VarId> vars;     // of loops, parallels and the launch
  std::set<ir::ValueId> cells;  // mutable scalars that were read
  bool per_thread = false;      // on something else of each thread, such as local memory
};

[[nodiscard]] Dependence dependence_of(const ir::Function& function,
                                       const std::vector<ir::Expr>& exprs);
[[nodiscard]] Dependence dependence_of(const ir::Function& function, ir::ValueId value);

// The variable that an operation of `region` bound to the same number as the value is: one number
// has one name, so that expressions with it can be compared.
[[nodiscard]] std::optional<ir::VarId> bound_before(const ir::Function& function,
                                                    ir::RegionId region, ir::ValueId value);

}  // namespace kiln::ir
