// Which variables of a function are never below 0 though nothing bounds them: numbers that count up.
//
//   %at = alloc initial=0 : cell<s32>          =>   at is never negative, nor is n
//   bind var=n value=(get cell=%at)
//   set cell=%at value=(index n + 1)
#pragma once

#include <set>

#include "ir/module.h"

namespace kiln::ir {

class NeverNegative {
 public:
  // All cells and variables are taken to be so until an assignment shows that one may not.
  explicit NeverNegative(const Function& function);

  // Of a bound variable. That it counts further than its type goes is not thought of.
  [[nodiscard]] bool contains(VarId var) const { return vars_.contains(var); }

 private:
  [[nodiscard]] bool keeps(const Op& op);
  [[nodiscard]] bool value(ValueId id) const;
  [[nodiscard]] bool is_a_step(ValueId id) const;
  [[nodiscard]] bool binary(const Binary& binary) const;
  [[nodiscard]] bool counts(const Expr& expr) const;
  [[nodiscard]] bool expr(const Expr& expr) const;

  const Function& function_;
  std::set<ValueId> cells_;
  std::set<VarId> vars_;
};

}  // namespace kiln::ir
