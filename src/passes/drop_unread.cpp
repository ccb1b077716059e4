#include "passes/drop_unread.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/effects.h"
#include "ir/reflect.h"
#include "passes/for_each_launch.h"

namespace kiln::passes {

namespace {

bool is_cell(const ir::Function& function, ir::ValueId value) {
  return value.valid() && std::holds_alternative<ir::CellType>(function.type(value));
}

// What a kernel's operations need: of values that are only computed, those that another operation needs.
class Needed {
 public:
  Needed(const ir::Function& function, ir::RegionId body) : function_(function) {
    ir::walk(function, body, [&](ir::OpId id) {
      const ir::OpData& data = function.ops[id].data;
      if (const auto* set = std::get_if<ir::Set>(&data)) sets_[set->cell].push_back(set->value);
      if (const auto* bind = std::get_if<ir::Bind>(&data)) binds_[bind->var].push_back(bind->value);
    });
    for (const ir::Var& var : function.vars) {
      need_vars(var.extent);
      need_vars(var.first);
    }
    ir::walk(function, body, [&](ir::OpId id) {
      const ir::Op& op = function.ops[id];
      if (op.kind() != ir::OpKind::kBind && !only_computes(op)) need_operands(op);
    });
  }

  [[nodiscard]] bool contains(ir::ValueId value) const { return needed_.contains(value); }

  // A number, or a step of a variable's life.
  [[nodiscard]] bool only_computes(const ir::Op& op) const {
    if (const auto* bind = std::get_if<ir::Bind>(&op.data)) return !vars_.contains(bind->var);
    return ir::is_pure(op.kind()) || op.kind() == ir::OpKind::kGet ||
           op.kind() == ir::OpKind::kSet || is_cell(function_, op.result);
  }

 private:
  void need_operands(const ir::Op& op) {
    ir::for_each_operand(op, [&](std::string_view, ir::ValueId value) { need(value); });
    ir::for_each_touch(op, [&](const ir::Touch& touch) { need(touch.value); });
    ir::for_each_expr(op, [&](const ir::Expr& expr) { need_vars(expr); });
  }

  void need_vars(const ir::Expr& expr) {
    std::vector<ir::VarId> vars;
    expr.collect_vars(vars);
    for (const ir::VarId var : vars) {
      const auto found = binds_.find(var);
      if (!vars_.insert(var).second || found == binds_.end()) continue;
      for (const ir::ValueId number : found->second) need(number);
    }
  }

  void need(ir::ValueId value) {
    if (!value.valid() || !needed_.insert(value).second) return;
    if (const auto* view = std::get_if<ir::ViewType>(&function_.type(value))) {
      for (const ir::Expr& extent : view->shape) need_vars(extent);
    }
    if (const ir::OpId def = function_.values[value].def; def.valid()) {
      need_operands(function_.ops[def]);
    }
    if (const auto found = sets_.find(value); found != sets_.end()) {
      for (const ir::ValueId number : found->second) need(number);
    }
  }

  const ir::Function& function_;
  std::map<ir::ValueId, std::vector<ir::ValueId>> sets_;  // by cell
  std::map<ir::VarId, std::vector<ir::ValueId>> binds_;
  std::set<ir::ValueId> needed_;
  std::set<ir::VarId> vars_;  // that are needed
};

// Drops what nothing needs of cells, and what is computed of them.
class Dropper {
 public:
  Dropper(ir::Function& function, const Needed& needed) : function_(function), needed_(needed) {}

  void drop_in(ir::RegionId region) {
    std::erase_if(function_.regions[region].ops,
                  [&](ir::OpId id) { return drops(function_.ops[id]); });
    for (const ir::OpId id : function_.regions[region].ops) {
      for (const ir::RegionId inner : ir::regions_of(function_.ops[id])) drop_in(inner);
    }
  }

 private:
  bool drops(const ir::Op& op) {
    if (!needed_.only_computes(op)) return false;
    bool of_dropped = is_cell(function_, op.result) && !needed_.contains(op.result);
    ir::for_each_operand(op, [&](std::string_view, ir::ValueId value) {
      const bool unread = is_cell(function_, value) && !needed_.contains(value);
      of_dropped = of_dropped || unread || dropped_.contains(value);
    });
    ir::for_each_expr(op, [&](const ir::Expr& expr) {
      std::vector<ir::VarId> vars;
      expr.collect_vars(vars);
      of_dropped = of_dropped || std::ranges::any_of(vars, [&](ir::VarId var) {
                     return dropped_vars_.contains(var);
                   });
    });
    if (of_dropped && op.result.valid()) dropped_.insert(op.result);
    if (of_dropped) ir::for_each_var_set(op, [&](ir::VarId var) { dropped_vars_.insert(var); });
    return of_dropped;
  }

  ir::Function& function_;
  const Needed& needed_;
  std::set<ir::ValueId> dropped_;
  std::set<ir::VarId> dropped_vars_;
};

}  // namespace

Checked<bool> drop_unread(ir::Module& module, Diagnostics&) {
  for_each_launch(module, [](ir::Function& function, ir::OpId launch) {
    const ir::RegionId body = body_of(function, launch);
    const Needed needed(function, body);
    Dropper(function, needed).drop_in(body);
  });
  return true;
}

}  // namespace kiln::passes
