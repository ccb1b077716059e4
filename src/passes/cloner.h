// Copies of operations, with other values in them.
//
//   Cloner next(function);
//   next.exprs[k] = k + 2;
//   next.clone(%8)      %8 = subview base=%a origin=[0, 64*k]  =>  %31 = subview base=%a origin=[0, 64*k + 128]
//
// What a cloned operation defines (its result, the variables it sets, what its regions define) is new, and
// operations cloned behind it use that.
#pragma once

#include <functional>
#include <map>

#include "ir/module.h"

namespace kiln::passes {

class Cloner {
 public:
  explicit Cloner(ir::Function& function) : function_(function) {}

  std::map<ir::ValueId, ir::ValueId> values = {};
  std::map<ir::VarId, ir::Expr> exprs = {};
  // What is cloned of a region, if something is said, and what became of each operation.
  std::function<bool(ir::OpId)> keeps = {};
  std::map<ir::OpId, ir::OpId> ops = {};

  [[nodiscard]] ir::OpId clone(ir::OpId op);
  [[nodiscard]] ir::RegionId clone(ir::RegionId region);
  // The same operation, with the other values in it; what is in its regions, too.
  void replace_in(ir::OpId op);

 private:
  void change(ir::ValueId& value) const;
  void change(ir::Expr& expr) const;
  void change(ir::Op& op, bool renew);
  void change_type(ir::Type& type) const;
  ir::VarId renewed(ir::VarId var);

  ir::Function& function_;
  std::map<ir::VarId, ir::VarId> vars_;
};

// A name that no value (no variable) of the function has, made of this one.
[[nodiscard]] std::string unique_value_name(const ir::Function& function,
                                            const std::string& wanted);
[[nodiscard]] std::string unique_var_name(const ir::Function& function, const std::string& wanted);

}  // namespace kiln::passes
