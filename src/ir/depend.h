// What an expression depends on, through the values that its variables were bound to.
#pragma once

#include <map>
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

// The same through mutable scalars: what the numbers depend on that are assigned to them, and how often
// the loops around the assignments run.
class DependenceOverTime {
 public:
  explicit DependenceOverTime(const ir::Function& function);
  // Of loops, parallels and the launch.
  [[nodiscard]] std::set<ir::VarId> vars(const std::vector<ir::Expr>& exprs) const;

 private:
  struct Assigned {
    std::vector<ir::ValueId> numbers;  // the first one too
    std::vector<ir::Expr> bounds;      // of the loops
  };
  void look_at(ir::RegionId region, const std::vector<ir::Expr>& bounds);

  const ir::Function& function_;
  std::map<ir::ValueId, Assigned> assigned_;  // by cell
};

// The variable that an operation of `region` bound to the same number as the value is: one number
// has one name, so that expressions with it can be compared.
[[nodiscard]] std::optional<ir::VarId> bound_before(const ir::Function& function,
                                                    ir::RegionId region, ir::ValueId value);

}  // namespace kiln::ir
