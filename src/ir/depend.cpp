#include "ir/depend.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "ir/reflect.h"

namespace kiln::ir {

namespace {

class DependenceCollector {
 public:
  explicit DependenceCollector(const ir::Function& function) : function_(function) {}

  void expr(const ir::Expr& expr) {
    std::vector<ir::VarId> vars;
    expr.collect_vars(vars);
    for (const ir::VarId var : vars) variable(var);
  }
  // Each value is looked at once, however many others are made of it.
  void value(ir::ValueId id) {
    if (!id.valid() || !function_.values[id].def.valid() || !seen_.insert(id).second) return;
    const ir::Op& op = function_.ops[function_.values[id].def];
    if (const auto* get = std::get_if<ir::Get>(&op.data)) {
      out_.cells.insert(get->cell);
      return;
    }
    if (const auto* read = std::get_if<ir::Read>(&op.data)) {
      const ir::ResolvedView view = ir::resolve_view(function_, read->view);
      out_.per_thread |= function_.view_type(view.root).space == ir::Space::kLocal;
      for (const ir::Expr& origin : view.origin) expr(origin);
      for (const ir::Expr& index : read->index) expr(index);
      for (const ir::Expr& block : read->block) expr(block);
      return;
    }
    ir::for_each_expr(op, [&](const ir::Expr& inner) { expr(inner); });
    ir::for_each_operand(op, [&](std::string_view, ir::ValueId operand) { value(operand); });
  }
  [[nodiscard]] Dependence take() { return std::move(out_); }

 private:
  void variable(ir::VarId var) {
    if (function_.vars[var].kind != ir::VarKind::kBound) {
      out_.vars.insert(var);
      return;
    }
    if (!bound_.insert(var).second) return;
    if (bindings_.empty()) find_bindings();
    for (const ir::ValueId bound : bindings_[var]) value(bound);
  }
  void find_bindings() {
    for (const ir::Op& op : function_.ops) {
      const auto* bind = std::get_if<ir::Bind>(&op.data);
      if (bind != nullptr) bindings_[bind->var].push_back(bind->value);
    }
  }

  const ir::Function& function_;
  Dependence out_;
  std::set<ir::VarId> bound_;
  std::set<ir::ValueId> seen_;
  std::map<ir::VarId, std::vector<ir::ValueId>> bindings_;
};

}  // namespace

Dependence dependence_of(const ir::Function& function, const std::vector<ir::Expr>& exprs) {
  DependenceCollector collector(function);
  for (const ir::Expr& expr : exprs) collector.expr(expr);
  return collector.take();
}

Dependence dependence_of(const ir::Function& function, ir::ValueId value) {
  DependenceCollector collector(function);
  collector.value(value);
  return collector.take();
}

DependenceOverTime::DependenceOverTime(const ir::Function& function) : function_(function) {
  look_at(function.body, {});
}

void DependenceOverTime::look_at(ir::RegionId region, const std::vector<ir::Expr>& bounds) {
  for (const ir::OpId id : function_.regions[region].ops) {
    const ir::Op& op = function_.ops[id];
    if (const auto* alloc = std::get_if<ir::Alloc>(&op.data)) {
      assigned_[op.result].numbers.push_back(alloc->initial);
    }
    if (const auto* set = std::get_if<ir::Set>(&op.data)) {
      Assigned& cell = assigned_[set->cell];
      cell.numbers.push_back(set->value);
      cell.bounds.insert(cell.bounds.end(), bounds.begin(), bounds.end());
    }
    const auto* loop = std::get_if<ir::For>(&op.data);
    if (loop == nullptr) {
      for (const ir::RegionId inner : regions_of(op)) look_at(inner, bounds);
      continue;
    }
    std::vector<ir::Expr> inside = bounds;
    inside.insert(inside.end(), {loop->lower, loop->upper});
    look_at(loop->body, inside);
  }
}

std::set<ir::VarId> DependenceOverTime::vars(const std::vector<ir::Expr>& exprs) const {
  std::set<ir::VarId> vars;
  std::set<ir::ValueId> cells;
  std::vector<Dependence> todo = {dependence_of(function_, exprs)};
  while (!todo.empty()) {
    const Dependence one = std::move(todo.back());
    todo.pop_back();
    vars.insert(one.vars.begin(), one.vars.end());
    for (const ir::ValueId cell : one.cells) {
      const auto assigned = assigned_.find(cell);
      if (!cells.insert(cell).second || assigned == assigned_.end()) continue;
      for (const ir::ValueId number : assigned->second.numbers) {
        todo.push_back(dependence_of(function_, number));
      }
      todo.push_back(dependence_of(function_, assigned->second.bounds));
    }
  }
  return vars;
}

namespace {

// Whether two values are computed alike, from the same cells without an assignment between.
class Comparison {
 public:
  explicit Comparison(const ir::Function& function) : function_(function) {}

  [[nodiscard]] bool same(ir::ValueId a, ir::ValueId b) {
    if (a == b) return true;
    if (differ_at_once(a, b)) return false;
    const auto [known, is_new] = known_.try_emplace({a, b}, false);
    if (is_new) {
      const bool alike = compare(a, b);
      known_[{a, b}] = alike;
      return alike;
    }
    return known->second;
  }

 private:
  [[nodiscard]] std::optional<double> constant(ir::ValueId id) const {
    const auto* op = id.valid() ? function_.def_as<ir::Const>(id) : nullptr;
    return op == nullptr ? std::nullopt : std::optional(op->value);
  }
  // Sums with different constants are what most expressions differ by.
  [[nodiscard]] bool differ_at_once(ir::ValueId a, ir::ValueId b) const {
    if (!a.valid() || !b.valid()) return true;
    const auto* left = function_.def_as<ir::Binary>(a);
    const auto* right = function_.def_as<ir::Binary>(b);
    if (left == nullptr || right == nullptr) return constant(a) != constant(b);
    return left->kind != right->kind || constant(left->right) != constant(right->right);
  }

  [[nodiscard]] bool compare(ir::ValueId a, ir::ValueId b) {
    if (!a.valid() || !b.valid() || !(function_.type(a) == function_.type(b))) return false;
    const ir::OpId first = function_.values[a].def;
    const ir::OpId second = function_.values[b].def;
    if (!first.valid() || !second.valid()) return false;
    const ir::OpData& left = function_.ops[first].data;
    const ir::OpData& right = function_.ops[second].data;
    if (left.index() != right.index()) return false;
    if (const auto* get = std::get_if<ir::Get>(&left)) {
      return get->cell == std::get<ir::Get>(right).cell && !is_set(get->cell, first, second);
    }
    if (const auto* constant = std::get_if<ir::Const>(&left)) {
      return constant->value == std::get<ir::Const>(right).value;
    }
    if (const auto* index = std::get_if<ir::Index>(&left)) {
      return index->expr == std::get<ir::Index>(right).expr;
    }
    if (const auto* cast = std::get_if<ir::Cast>(&left)) {
      return same(cast->operand, std::get<ir::Cast>(right).operand);
    }
    const auto* binary = std::get_if<ir::Binary>(&left);
    if (binary == nullptr) return false;
    const auto& other = std::get<ir::Binary>(right);
    return binary->kind == other.kind && same(binary->left, other.left) &&
           same(binary->right, other.right);
  }

  // Operations are numbered in the order of the program while it is read.
  [[nodiscard]] bool is_set(ir::ValueId cell, ir::OpId from, ir::OpId to) {
    if (sets_.empty()) find_sets();
    const std::vector<ir::OpId>& sets = sets_[cell];
    const auto next = std::upper_bound(sets.begin(), sets.end(), from);
    return next != sets.end() && *next < to;
  }
  void find_sets() {
    for (std::uint32_t i = 0; i < function_.ops.size(); ++i) {
      const auto* set = std::get_if<ir::Set>(&function_.ops[ir::OpId{i}].data);
      if (set != nullptr) sets_[set->cell].push_back(ir::OpId{i});
    }
  }

  const ir::Function& function_;
  std::map<std::pair<ir::ValueId, ir::ValueId>, bool> known_;
  std::map<ir::ValueId, std::vector<ir::OpId>> sets_;  // by cell, in order
};

}  // namespace

std::optional<ir::VarId> bound_before(const ir::Function& function, ir::RegionId region,
                                      ir::ValueId value) {
  Comparison comparison(function);
  const std::vector<ir::OpId>& ops = function.regions[region].ops;
  for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
    const auto* bind = std::get_if<ir::Bind>(&function.ops[*op].data);
    if (bind != nullptr && comparison.same(bind->value, value)) return bind->var;
  }
  return std::nullopt;
}

}  // namespace kiln::ir
