#include "ir/arguments.h"

#include <algorithm>

#include "ir/effects.h"
#include "ir/reflect.h"

namespace kiln::ir {

namespace {

std::vector<ValueId> writes_of(const Function& function, const Op& op) {
  std::vector<ValueId> writes;
  for (const Touch& touch : memory_touched(function, op)) {
    if (touch.writes() && touch.use != Use::kStarts) writes.push_back(touch.value);
  }
  return writes;
}

// A window alone reads nothing, and what is written is not thereby read, but what is added to is.
std::vector<ValueId> reads_of(const Function& function, const Op& op) {
  if (op.kind() == OpKind::kSubview || op.kind() == OpKind::kAlias) return {};
  const auto* copy = std::get_if<Copy>(&op.data);
  if (copy != nullptr && !copy->adds) return {copy->src};
  std::vector<ValueId> reads;
  for_each_operand(op, [&](std::string_view, ValueId value) {
    if (value.valid()) reads.push_back(value);
  });
  for (const Touch& touch : memory_touched(function, op)) {
    if (touch.writes() && !touch.reads()) std::erase(reads, touch.value);
  }
  return reads;
}

// The value itself; of a window the buffer behind it.
ValueId storage_or_self(const Function& function, ValueId value) {
  if (!std::holds_alternative<ViewType>(function.type(value))) return value;
  return root_of(function, value);
}

// By ValueId: whether some operation of the function names it, directly or through a window.
using ValuesOf = std::vector<ValueId> (*)(const Function&, const Op&);
std::vector<bool> roots(const Function& function, ValuesOf values_of) {
  std::vector<bool> found(function.values.size());
  walk(function, function.body, [&](OpId id) {
    for (const ValueId value : values_of(function, function.ops[id])) {
      found[storage_or_self(function, value).index] = true;
    }
  });
  return found;
}

// What the operation gives a new value: buffers, fragments, cells, its result.
std::vector<ValueId> targets_of(const Op& op) {
  std::vector<ValueId> out;
  if (op.result.valid()) out.push_back(op.result);
  for_each_touch(op, [&](const Touch& touch) {
    if (touch.writes()) out.push_back(touch.value);
  });
  return out;
}

bool uses_var(const Function& function, VarId var) {
  bool found = false;
  const auto look = [&](const Expr& expr) { found = found || expr.uses(var); };
  walk(function, function.body, [&](OpId id) { for_each_expr(function.ops[id], look); });
  for (const Var& other : function.vars) look(other.extent);
  for (const EntryCheck& check : function.checks) {
    look(check.left);
    look(check.right);
  }
  return found;
}

}  // namespace

std::vector<std::size_t> written_params(const Function& function) {
  const std::vector<bool> written = roots(function, writes_of);
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    if (written[function.params[i].value.index]) out.push_back(i);
  }
  return out;
}

std::vector<std::size_t> read_params(const Function& function) {
  const std::vector<bool> read = roots(function, reads_of);
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    const Param& param = function.params[i];
    const bool through_var = param.var.valid() && uses_var(function, param.var);
    if (through_var || read[param.value.index]) out.push_back(i);
  }
  return out;
}

std::vector<std::size_t> given_params(const Function& function) {
  const std::vector<std::size_t> written = written_params(function);
  const std::vector<std::size_t> read = read_params(function);
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    const bool is_read = std::ranges::find(read, i) != read.end();
    if (is_read || std::ranges::find(written, i) == written.end()) out.push_back(i);
  }
  return out;
}

std::vector<std::size_t> params_behind(const Function& function,
                                       const std::vector<ValueId>& values) {
  std::vector<bool> behind(function.values.size());
  const auto at = [&](ValueId value) { return behind[storage_or_self(function, value).index]; };
  for (const ValueId value : values) at(value) = true;
  // What a loop hands on stands before what uses it and after it.
  for (bool found = true; found;) {
    found = false;
    walk(function, function.body, [&](OpId id) {
      const std::vector<ValueId> targets = targets_of(function.ops[id]);
      if (std::none_of(targets.begin(), targets.end(), at)) return;
      for_each_operand(function.ops[id], [&](std::string_view, ValueId operand) {
        if (!operand.valid() || at(operand)) return;
        at(operand) = true;
        found = true;
      });
    });
  }
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    if (behind[function.params[i].value.index]) out.push_back(i);
  }
  return out;
}

bool holds(const EntryCheck& check, const std::vector<std::int64_t>& vars) {
  const std::int64_t left = check.left.evaluate(vars);
  const std::int64_t right = check.right.evaluate(vars);
  switch (check.relation) {
    case Relation::kEqual: return left == right;
    case Relation::kLessEqual: return left <= right;
    case Relation::kDivides: return left != 0 && right % left == 0;
  }
  return false;
}

}  // namespace kiln::ir
