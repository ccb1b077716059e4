// What an expression depends on, through the values that its variables were bound to.
#pragma once

#include <set>
#include <vector>

#include "ir/module.h"

namespace kiln::sema {

struct Dependence {
  std::set<ir::VarId> vars;       // of loops, parallels and the launch
  std::set<ir::ValueId> cells;    // mutable scalars that were read
  bool per_thread = false;        // on something else of each thread, such as local memory
};

[[nodiscard]] Dependence dependence_of(const ir::Function& function,
                                       const std::vector<ir::Expr>& exprs);

}  // namespace kiln::sema
