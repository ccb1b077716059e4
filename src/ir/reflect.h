// Questions about any operation, answered once through its `fields` list.
//
//   for_each_operand(op, [](std::string_view key, ValueId value) { ... });
//   load frag=%ma view=%7   =>   ("frag", %ma), ("view", %7)
#pragma once

#include <string_view>
#include <type_traits>
#include <utility>

#include "ir/op.h"
#include "support/function_ref.h"

namespace kiln::ir {

// Calls `visit(key, field)` for each field of the operation, in the order of its list. Compiled anew for each
// caller and all operations, which takes a compiler a second: the functions below do not.
template <class OpType, class Visit>
void for_each_field(OpType& op, Visit&& visit) {
  kiln::visit([&](auto& data) { std::remove_cvref_t<decltype(data)>::fields(data, visit); },
              op.data);
}

// Calls `visit(key, value)` for each operand; optional operands that are missing come invalid.
void for_each_operand(const Op& op, FunctionRef<void(std::string_view, ValueId)> visit);

// Calls `visit(expr)` for each expression of the operation.
void for_each_expr(const Op& op, FunctionRef<void(const Expr&)> visit);

// Calls `visit(var)` for each variable that the operation makes usable: in its own region, or
// (Bind) from itself on.
void for_each_var_set(const Op& op, FunctionRef<void(VarId)> visit);

}  // namespace kiln::ir
