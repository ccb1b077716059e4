// Statements: each kind of construct has a file of its own; this is the list of what they offer.
#pragma once

#include "sema/state.h"

namespace kiln::sema {

void analyse_statement(Sema& sema, ast::StmtId id);
// A body in a scope of its own, in the current region.
void analyse_body(Sema& sema, ast::StmtId id);

// declaration.cpp
void declare_scalars(Sema& sema, const ast::ScalarDeclStmt& stmt);
// Floating parameters that the function assigns to: each thread of the launch has its own copy.
void declare_mutable_params(Sema& sema);
void declare_mdspan(Sema& sema, const ast::MdspanDeclStmt& stmt, Span span);
void declare_ituple(Sema& sema, const ast::ItupleDeclStmt& stmt, Span span);
void declare_buffers(Sema& sema, const ast::BufferDeclStmt& stmt, Span span);
void assign(Sema& sema, const ast::AssignStmt& stmt, Span span);

// parallel.cpp
void analyse_parallel(Sema& sema, const ast::ParallelStmt& stmt, ast::StmtId id);

// control.cpp
void analyse_foreach(Sema& sema, const ast::ForeachStmt& stmt, Span span);
void analyse_with(Sema& sema, const ast::WithStmt& stmt);
void analyse_while(Sema& sema, const ast::WhileStmt& stmt, Span span);
enum class Jump : std::uint8_t { kBreak, kContinue, kYield };
void analyse_jump(Sema& sema, Jump jump, Span span);
void analyse_if(Sema& sema, const ast::IfStmt& stmt, Span span);
void analyse_sync(Sema& sema, const ast::SyncStmt& stmt, Span span);
void analyse_assert(Sema& sema, const ast::AssertStmt& stmt, Span span);

// movement.cpp
void analyse_move(Sema& sema, const ast::MoveStmt& stmt, Span span);
// The width of an optional `.swiz<N>` in bytes: -1 when there is no wish, nullopt after a report.
[[nodiscard]] std::optional<std::int64_t> swizzle_bytes(Sema& sema,
                                                        const std::optional<ast::Swizzle>& swizzle);
// Records the wish on the shared buffer behind `view`; reports a contradiction or a width that does
// not fit its rows.
void wish_swizzle(Sema& sema, ir::ValueId view, std::int64_t bytes, Span span);

// inthreads.cpp
void analyse_inthreads(Sema& sema, const ast::InthreadsStmt& stmt, Span span);

// event.cpp
void declare_events(Sema& sema, const ast::EventDeclStmt& stmt, Span span);
void analyse_trigger(Sema& sema, const ast::TriggerStmt& stmt, Span span);

// future.cpp
void declare_placeholder(Sema& sema, const ast::PlaceholderStmt& stmt, Span span);
void analyse_wait(Sema& sema, const ast::WaitStmt& stmt, Span span);
void analyse_rotate(Sema& sema, const ast::RotateStmt& stmt, Span span);

// device_call.cpp
void analyse_call(Sema& sema, const ast::CallStmt& stmt, Span span);

// mma.cpp
void analyse_fill(Sema& sema, const ast::MmaFillStmt& stmt, Span span);
void analyse_load(Sema& sema, const ast::MmaLoadStmt& stmt, Span span);
void analyse_exec(Sema& sema, const ast::MmaExecStmt& stmt, Span span);
void analyse_store(Sema& sema, const ast::MmaStoreStmt& stmt, Span span);
void analyse_scale(Sema& sema, const ast::MmaScaleStmt& stmt, Span span);
// Prepares for the `mma.scale` statements of a block; `leave_scaled` takes back what it gives.
struct ScaledBlock {
  std::map<std::string, std::size_t> scaled;
  std::map<ir::ValueId, Partial> partials;
};
[[nodiscard]] ScaledBlock enter_scaled(Sema& sema, const std::vector<ast::StmtId>& body);
void leave_scaled(Sema& sema, ScaledBlock outer);
// apply.cpp
void analyse_apply(Sema& sema, const ast::ApplyStmt& stmt, Span span);
// Whether the statement may stand inside an `apply`; reports it when not.
[[nodiscard]] bool check_in_apply(Sema& sema, const ast::StmtNode& stmt, Span span);
// `mc.at(i, j)` where `mc` names an accumulator: its value, and a new one. Nothing when it names
// none; an error operand, or no ok, after a report.
[[nodiscard]] std::optional<Operand> fragment_element(Sema& sema, const ast::AtExpr& at, Span span);
[[nodiscard]] bool assign_fragment_element(Sema& sema, const ast::AtExpr& at,
                                           const ast::AssignStmt& stmt, Span span);

void analyse_commit(Sema& sema, Span span);
void analyse_mma_wait(Sema& sema, const ast::MmaWaitStmt& stmt, Span span);
// Reports register tiles whose shape stayed unknown and accumulators nobody stores.
void check_tiles(Sema& sema);

}  // namespace kiln::sema
