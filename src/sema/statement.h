// Statements: each kind of construct has a file of its own, and each statement of syntax/statement.def
// a function there. Internal to this folder.
#pragma once

#include "sema/state.h"

namespace kiln::sema {

void analyse_statement(Sema& sema, ast::StmtId id);
// A body in a scope of its own, in the current region.
void analyse_body(Sema& sema, ast::StmtId id);

// What the statement `id`, whose node is given, means: operations, names, and mistakes.
#define KILN_STATEMENT(Node) void analyse(Sema& sema, const ast::Node& stmt, ast::StmtId id);
#include "syntax/statement.def"
void analyse(Sema& sema, const ast::ErrorStmt& stmt, ast::StmtId id);

// ---- What several constructs ask ----

// declaration.cpp: floating parameters that the function assigns to: each thread of the launch has
// its own copy.
void declare_mutable_params(Sema& sema);
// In front of a launch, in a scope of its own: the kernel knows each variable of the host part that it
// names as the number that it holds then.
void take_variables_along(Sema& sema, Span word, Span launch);

// control.cpp: how threads leave a body.
enum class Jump : std::uint8_t { kBreak, kContinue, kYield };

// movement.cpp
// The width of an optional `.swiz<N>` in bytes: -1 when there is no wish, nullopt after a report.
[[nodiscard]] std::optional<std::int64_t> swizzle_bytes(Sema& sema,
                                                        const std::optional<ast::Swizzle>& swizzle);
// Records the wish on the shared buffer behind `view`; reports a contradiction or a width that does
// not fit its rows.
void wish_swizzle(Sema& sema, ir::ValueId view, std::int64_t bytes, Span span);

// device_call.cpp: true when the text is one `setmaxnreg`, which has the meaning of a `call` of
// setreg_dec or setreg_inc.
[[nodiscard]] bool set_registers(Sema& sema, const ast::CppStmt& stmt, Span span);

// apply.cpp
// Whether the statement may stand inside an `apply`; reports it when not.
[[nodiscard]] bool check_in_apply(Sema& sema, const ast::StmtNode& stmt, Span span);
// `mc.at(i, j)` where `mc` names an accumulator: its value, and a new one. Nothing when it names
// none; an error operand, or no ok, after a report.
[[nodiscard]] std::optional<Operand> fragment_element(Sema& sema, const ast::AtExpr& at, Span span);
[[nodiscard]] bool assign_fragment_element(Sema& sema, const ast::AtExpr& at,
                                           const ast::AssignStmt& stmt, Span span);

// Reports register tiles whose shape stayed unknown and accumulators nobody stores.
void check_tiles(Sema& sema);

}  // namespace kiln::sema
