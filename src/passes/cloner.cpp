#include "passes/cloner.h"

#include <algorithm>

#include "ir/reflect.h"
#include "support/format.h"

namespace kiln::passes {

namespace {

std::string unique(const auto& named, const std::string& wanted) {
  const auto is_taken = [&](const std::string& name) {
    return std::ranges::any_of(named, [&](const auto& each) { return each.name == name; });
  };
  std::string name = wanted;
  for (int n = 1; is_taken(name); ++n) name = format("{}_{}", wanted, n);
  return name;
}

bool is_number(const std::string& name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string unique_value_name(const ir::Function& function, const std::string& wanted) {
  // Values without a name of the program's are numbered.
  return unique(function.values, is_number(wanted) ? format("{}", function.values.size()) : wanted);
}

std::string unique_var_name(const ir::Function& function, const std::string& wanted) {
  return unique(function.vars, wanted);
}

void Cloner::change(ir::ValueId& value) const {
  const auto found = values.find(value);
  if (found != values.end()) value = found->second;
}

void Cloner::change(ir::Expr& expr) const {
  expr = expr.substitute([&](ir::VarId var) -> std::optional<ir::Expr> {
    const auto found = exprs.find(var);
    if (found == exprs.end()) return std::nullopt;
    return found->second;
  });
}

void Cloner::change_type(ir::Type& type) const {
  if (auto* view = std::get_if<ir::ViewType>(&type)) {
    for (ir::Expr& extent : view->shape) change(extent);
  }
}

ir::VarId Cloner::renewed(ir::VarId var) {
  ir::Var copy = function_.vars[var];
  copy.name = unique_var_name(function_, copy.name);
  change(copy.extent);
  change(copy.first);
  const ir::VarId out = function_.vars.push(std::move(copy));
  exprs[var] = ir::Expr::var(out);
  return out;
}

void Cloner::change(ir::Op& op, bool renew) {
  ir::for_each_field(op, [&](std::string_view, auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, ir::ValueId> || std::is_same_v<Field, ir::Expr>) {
      change(field);
    }
    if constexpr (std::is_same_v<Field, std::vector<ir::ValueId>> ||
                  std::is_same_v<Field, std::vector<ir::Expr>>) {
      for (auto& each : field) change(each);
    }
    if constexpr (std::is_same_v<Field, ir::VarId>) {
      if (renew && field.valid()) field = renewed(field);
    }
    if constexpr (std::is_same_v<Field, std::vector<ir::VarId>>) {
      for (ir::VarId& each : field) {
        if (renew) each = renewed(each);
      }
    }
    if constexpr (std::is_same_v<Field, ir::RegionId>) {
      if (renew && field.valid()) field = clone(field);
    }
  });
}

ir::OpId Cloner::clone(ir::OpId id) {
  ir::Op copy = function_.ops[id];
  change(copy, true);
  const ir::OpId out = function_.ops.push(std::move(copy));
  ops[id] = out;
  const ir::ValueId result = function_.ops[out].result;
  if (!result.valid()) return out;
  ir::Value value = function_.values[result];
  value.name = unique_value_name(function_, value.name);
  value.def = out;
  change_type(value.type);
  const ir::ValueId fresh = function_.values.push(std::move(value));
  values[result] = fresh;
  function_.ops[out].result = fresh;
  return out;
}

ir::RegionId Cloner::clone(ir::RegionId region) {
  ir::Region copy;
  const std::vector<ir::OpId> all = function_.regions[region].ops;
  for (const ir::OpId op : all) {
    if (!keeps || keeps(op)) copy.ops.push_back(clone(op));
  }
  return function_.regions.push(std::move(copy));
}

void Cloner::replace_in(ir::OpId id) {
  change(function_.ops[id], false);
  if (function_.ops[id].result.valid())
    change_type(function_.values[function_.ops[id].result].type);
  for (const ir::RegionId region : ir::regions_of(function_.ops[id])) {
    for (const ir::OpId op : function_.regions[region].ops) replace_in(op);
  }
}

}  // namespace kiln::passes
