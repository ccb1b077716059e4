// Views: `x.subspan(16, 16).at(i, k)` -> Subview operations.
#pragma once

#include "sema/state.h"

namespace kiln::sema {

// A view expression, a buffer's name, or an array element `s[k]`. kView, or kError after a report.
[[nodiscard]] Operand evaluate_view(Sema& sema, ast::ExprId id);
[[nodiscard]] Operand apply_view_ops(Sema& sema, const ast::ViewExpr& view, Span span);
[[nodiscard]] Operand subscript_array(Sema& sema, const ast::SubscriptExpr& subscript, Span span);

// A window of `shape` at the base's origin: used where a tile is larger than what it is copied from
// (the rest reads as zero) or to (the rest is not written).
[[nodiscard]] ir::ValueId widen_view(Sema& sema, ir::ValueId base, std::vector<ir::Expr> shape,
                                     Span span);

// Memory on the chip has constant extents; shared memory also what the launch decides, which is
// checked then and stands in the type as a formula of it. False after a report.
[[nodiscard]] bool settle_extents(Sema& sema, ir::ViewType& type, Span span, std::string_view what);
// A buffer's constant extents alone make at most 2^40 bytes; false after a report about `what`.
[[nodiscard]] bool check_size(Sema& sema, const ir::ViewType& type, Span span,
                              std::string_view what);

// The buffer's name as the user knows it.
[[nodiscard]] std::string view_name(const Sema& sema, ir::ValueId view);

// One element access; `indices` flattened. Checks their count and, where constant, their range.
[[nodiscard]] std::optional<std::vector<ir::Expr>> element_index(
    Sema& sema, ir::ValueId view, const std::vector<ast::ExprId>& indices, Span span);

// Whose element `x.block(r).at(i)` means: a place for each axis of the cluster; empty where the
// program names no block. nullopt after a report.
[[nodiscard]] std::optional<std::vector<ir::Expr>> element_block(Sema& sema, ir::ValueId view,
                                                                 const ast::AtExpr& at);
// What is done with the element is done with the thread's own block's alone; false after a report.
[[nodiscard]] bool check_own_block(Sema& sema, const ast::AtExpr& at);

}  // namespace kiln::sema
