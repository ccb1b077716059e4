// Questions about any operation, answered once through its `fields` list.
//
//   for_each_operand(op, [](std::string_view key, ValueId value) { ... });
//   load frag=%ma view=%7   =>   ("frag", %ma), ("view", %7)
#pragma once

#include <string_view>
#include <type_traits>
#include <utility>

#include "ir/op.h"

namespace kiln::ir {

// Calls `visit(key, field)` for each field of the operation, in the order of its list.
template <class OpType, class Visit>
void for_each_field(OpType& op, Visit&& visit) {
  std::visit([&](auto& data) { std::remove_cvref_t<decltype(data)>::fields(data, visit); },
             op.data);
}

// Calls `visit(key, value)` for each operand; optional operands that are missing come invalid.
template <class Visit>
void for_each_operand(const Op& op, Visit&& visit) {
  for_each_field(op, [&](std::string_view key, const auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, ValueId>) visit(key, field);
    if constexpr (std::is_same_v<Field, std::vector<ValueId>>) {
      for (const ValueId value : field) visit(key, value);
    }
  });
}

// Calls `visit(expr)` for each expression of the operation.
template <class Visit>
void for_each_expr(const Op& op, Visit&& visit) {
  for_each_field(op, [&](std::string_view, const auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, Expr>) visit(field);
    if constexpr (std::is_same_v<Field, std::vector<Expr>>) {
      for (const Expr& expr : field) visit(expr);
    }
  });
}

// Calls `visit(var)` for each variable that the operation makes usable: in its own region, or
// (Bind) from itself on.
template <class Visit>
void for_each_var_set(const Op& op, Visit&& visit) {
  for_each_field(op, [&](std::string_view, const auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, VarId>) visit(field);
    if constexpr (std::is_same_v<Field, std::vector<VarId>>) {
      for (const VarId var : field) visit(var);
    }
  });
}

}  // namespace kiln::ir
