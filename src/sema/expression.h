// Expressions: syntax -> Operand, and Operand -> the form a statement needs.
#pragma once

#include "sema/state.h"

namespace kiln::sema {

// What the expression is; kError after a report. Emits the operations that compute it.
[[nodiscard]] Operand evaluate(Sema& sema, ast::ExprId id);

// The expression as an index. A run-time integer gets a variable of its own (Bind).
// `what` names it in messages ("the extent of `s`"). nullopt after a report.
[[nodiscard]] std::optional<Element> evaluate_index(Sema& sema, ast::ExprId id,
                                                    std::string_view what);
[[nodiscard]] std::optional<Element> to_index(Sema& sema, const Operand& operand,
                                              std::string_view what);
// Every integer in a list of expressions, tuples flattened. `_` gives nullopt in its place.
struct IndexItem {
  std::optional<Element> element;  // nullopt: `_`
  Span span;
};
[[nodiscard]] std::optional<std::vector<IndexItem>> evaluate_list(
    Sema& sema, const std::vector<ast::ExprId>& ids, std::string_view what);

// Extents of a shape list: `[64, s.span, cdiv(K, 2)]`, each proved or checked to be positive.
[[nodiscard]] std::optional<std::vector<Element>> evaluate_extents(
    Sema& sema, const std::vector<ast::ExprId>& ids, std::string_view what);

// The expression without its subscripts, which are collected outermost first.
[[nodiscard]] ast::ExprId without_subscripts(const Sema& sema, ast::ExprId id,
                                             std::vector<ast::ExprId>& items);

// A constant integer in [low, high].
[[nodiscard]] std::optional<std::int64_t> evaluate_constant(Sema& sema, ast::ExprId id,
                                                            std::string_view what);

// The operand as a value of `dtype`; warns when the implicit conversion may lose precision.
[[nodiscard]] std::optional<ir::ValueId> convert(Sema& sema, const Operand& operand, DType dtype);
// The operand's bits as a value of `dtype`, `__bitcast<T>(e)`. Errors: types of different widths.
[[nodiscard]] std::optional<ir::ValueId> keep_bits(Sema& sema, const Operand& operand, DType dtype);
// The operand as a value of `dtype` because the program says so, `__to<T>(e)`: never a warning.
[[nodiscard]] std::optional<ir::ValueId> convert_explicitly(Sema& sema, const Operand& operand,
                                                            DType dtype);
// The operand as a bool value.
[[nodiscard]] std::optional<ir::ValueId> convert_to_bool(Sema& sema, const Operand& operand);

// left `op` right, as the language types it.
[[nodiscard]] Operand combine(Sema& sema, ast::BinaryOp op, Span op_span, Operand left,
                              Operand right);
// The larger or smaller of two, where both are indices and it is one too.
[[nodiscard]] std::optional<Operand> extremum_of_indices(bool is_max, const Operand& left,
                                                         const Operand& right, Span span);

// The type both sides of an arithmetic operation are brought to.
[[nodiscard]] DType promote(const Operand& left, const Operand& right);

[[nodiscard]] Operand make_int(ir::Expr value, Span span);
[[nodiscard]] Operand make_scalar(ir::ValueId id, DType dtype, Span span);

// What `x op= y` does to x and y; of a plain `=`, nothing is asked.
[[nodiscard]] ast::BinaryOp operator_of(ast::AssignOp op);

// functions.cpp: `__exp(x)` and its like. Nothing for what is no function of floats, or not of
// numbers; an error operand after a report.
[[nodiscard]] std::optional<Operand> call_function(Sema& sema, const ast::CallExpr& call,
                                                   Span span);

// atomic.cpp
// For the old content of the element, or (as a statement, in one elected thread where it stands
// outside the innermost level) for the new one alone.
[[nodiscard]] Operand call_atomic(Sema& sema, const ast::CallExpr& call, Span span);
void run_atomic(Sema& sema, const ast::CallExpr& call, Span span);

}  // namespace kiln::sema
