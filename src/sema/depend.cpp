#include "sema/depend.h"

#include "ir/reflect.h"

namespace kiln::sema {

namespace {

class Collector {
 public:
  explicit Collector(const ir::Function& function) : function_(function) {}

  void expr(const ir::Expr& expr) {
    std::vector<ir::VarId> vars;
    expr.collect_vars(vars);
    for (const ir::VarId var : vars) variable(var);
  }
  [[nodiscard]] Dependence take() { return std::move(out_); }

 private:
  void variable(ir::VarId var) {
    if (function_.vars[var].kind != ir::VarKind::kBound) {
      out_.vars.insert(var);
      return;
    }
    if (!bound_.insert(var).second) return;
    for (const ir::Op& op : function_.ops) {
      const auto* bind = std::get_if<ir::Bind>(&op.data);
      if (bind != nullptr && bind->var == var) value(bind->value);
    }
  }
  void value(ir::ValueId id) {
    if (!id.valid() || !function_.values[id].def.valid()) return;
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
      return;
    }
    ir::for_each_expr(op, [&](const ir::Expr& inner) { expr(inner); });
    ir::for_each_operand(op, [&](std::string_view, ir::ValueId operand) { value(operand); });
  }

  const ir::Function& function_;
  Dependence out_;
  std::set<ir::VarId> bound_;
};

}  // namespace

Dependence dependence_of(const ir::Function& function, const std::vector<ir::Expr>& exprs) {
  Collector collector(function);
  for (const ir::Expr& expr : exprs) collector.expr(expr);
  return collector.take();
}

}  // namespace kiln::sema
