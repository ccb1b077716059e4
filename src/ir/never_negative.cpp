#include "ir/never_negative.h"

#include "ir/effects.h"
#include "ir/prove.h"

namespace kiln::ir {

NeverNegative::NeverNegative(const Function& function) : function_(function) {
  for (const Op& op : function.ops) {
    if (std::holds_alternative<Alloc>(op.data)) cells_.insert(op.result);
    if (const auto* bind = std::get_if<Bind>(&op.data)) vars_.insert(bind->var);
  }
  bool settled = false;
  while (!settled) {
    settled = true;
    for (const Op& op : function.ops) settled = keeps(op) && settled;
  }
}

// Whether all that the operation assigns is still taken to be no negative number; what is not is taken out.
bool NeverNegative::keeps(const Op& op) {
  if (const auto* bind = std::get_if<Bind>(&op.data)) {
    return value(bind->value) || vars_.erase(bind->var) == 0;
  }
  if (const auto* alloc = std::get_if<Alloc>(&op.data)) {
    const bool known = alloc->initial.valid() && value(alloc->initial);
    return known || cells_.erase(op.result) == 0;
  }
  if (const auto* set = std::get_if<Set>(&op.data)) {
    return value(set->value) || cells_.erase(set->cell) == 0;
  }
  // What else writes a cell may write anything: a text of the program in CUDA.
  bool kept = true;
  for_each_touch(op, [&](const Touch& touch) {
    if (touch.writes()) kept = cells_.erase(touch.value) == 0 && kept;
  });
  return kept;
}

bool NeverNegative::value(ValueId id) const {
  const auto* dtype = std::get_if<ScalarType>(&function_.type(id));
  if (dtype == nullptr || (dtype->dtype != DType::kS32 && dtype->dtype != DType::kS64))
    return false;
  if (const auto* constant = function_.def_as<Const>(id)) return constant->value >= 0;
  if (const auto* index = function_.def_as<Index>(id)) return expr(index->expr);
  if (const auto* get = function_.def_as<Get>(id)) return cells_.contains(get->cell);
  if (const auto* choose = function_.def_as<Choose>(id)) {
    return value(choose->if_true) && value(choose->if_false);
  }
  const auto* made = function_.def_as<Binary>(id);
  return made != nullptr && binary(*made);
}

// 0 or 1. A number that grows faster may soon leave its type, and be negative then, as one that random numbers are made of.
bool NeverNegative::is_a_step(ValueId id) const {
  const auto* constant = function_.def_as<Const>(id);
  return constant != nullptr && (constant->value == 0 || constant->value == 1);
}

bool NeverNegative::binary(const Binary& binary) const {
  const bool left = value(binary.left);
  const bool right = value(binary.right);
  const BinaryKind kind = binary.kind;
  if (kind == BinaryKind::kAdd) {
    return (left && is_a_step(binary.right)) || (right && is_a_step(binary.left));
  }
  if (kind == BinaryKind::kRem) return left;  // it has the sign of the dividend
  if (kind == BinaryKind::kMax) return left || right;
  return (kind == BinaryKind::kDiv || kind == BinaryKind::kMin) && left && right;
}

// n or n + 1, of a variable n that counts.
bool NeverNegative::counts(const Expr& expr) const {
  bool found = false;
  for (const Term& term : expr.terms()) {
    if (term.coefficient != 1 || term.atoms.size() > 1) return false;
    if (term.atoms.empty()) continue;
    if (found || term.atoms[0].kind != AtomKind::kVar) return false;
    found = vars_.contains(term.atoms[0].var);
    if (!found) return false;
  }
  return found;
}

// What else is made of a variable that counts may leave its type.
bool NeverNegative::expr(const Expr& expr) const {
  return counts(expr) || minimum(function_, expr).value_or(-1) >= 0;
}

}  // namespace kiln::ir
