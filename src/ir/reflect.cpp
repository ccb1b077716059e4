#include "ir/reflect.h"

#include <vector>

namespace kiln::ir {

namespace {

// Calls `visit(key, value)` for each value of type T, those of lists too.
template <class T, class Visit>
void for_each_of(const Op& op, const Visit& visit) {
  for_each_field(op, [&](std::string_view key, const auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, T>) visit(key, field);
    if constexpr (std::is_same_v<Field, std::vector<T>>) {
      for (const T& value : field) visit(key, value);
    }
  });
}

}  // namespace

void for_each_operand(const Op& op, FunctionRef<void(std::string_view, ValueId)> visit) {
  for_each_of<ValueId>(op, visit);
}

void for_each_expr(const Op& op, FunctionRef<void(const Expr&)> visit) {
  for_each_of<Expr>(op, [&](std::string_view, const Expr& expr) { visit(expr); });
}

void for_each_var_set(const Op& op, FunctionRef<void(VarId)> visit) {
  for_each_of<VarId>(op, [&](std::string_view, VarId var) { visit(var); });
}

}  // namespace kiln::ir
