// Tile expressions: register tiles as values, `p = __exp2f((s - m) * c);`. Internal to this folder.
#pragma once

#include "sema/state.h"

namespace kiln::sema {

// Where an expression may read sums of which each lane has a part of its own (partial_sum.h): as a whole it may be one.
enum class PartsIn : std::uint8_t { kNowhere, kWhole, kAnywhere };

// Whether the expression's value is a register tile.
[[nodiscard]] bool is_tile_expression(const Sema& sema, ast::ExprId expr);

// Computes a tile expression. Nothing after a report.
[[nodiscard]] std::optional<ir::ValueId> evaluate_tile(Sema& sema, ast::ExprId expr,
                                                       const std::string& name,
                                                       PartsIn parts = PartsIn::kNowhere);
// The truth of the expression's elements, 1 or 0. Nothing after a report. `empties`: 0 too in registers that hold no element.
struct Flags {
  ir::ValueId tile;
  bool of_parts = false;  // of sums that are not put together
};
[[nodiscard]] std::optional<Flags> evaluate_flags(Sema& sema, ast::ExprId expr, PartsIn parts,
                                                  bool empties = false);
// Where whole warps may be without the others of their unit: reports collective-divergent of what concerns these. For the end of
// the function, for a variable may be set by a later vote. False after a report.
[[nodiscard]] bool check_votes(Sema& sema);
// `__any(condition)`: a bool for each warp.
[[nodiscard]] Operand vote_of_warp(Sema& sema, const ast::CallExpr& call, Span span);

// In a tile expression: what the name of a register tile, or a part that has been computed, stands
// for at the place of the `apply`. Nothing when it is neither.
[[nodiscard]] std::optional<Operand> tile_element(Sema& sema, ast::ExprId id, Span span);
[[nodiscard]] Operand element_of_tile(Sema& sema, ir::ValueId frag, Span span);

// A tile of the unit that runs here.
[[nodiscard]] ir::ValueId make_tile(Sema& sema, const std::string& name, const ir::FragType& type,
                                    Span span);
// The type of what a reduction of such elements gives.
[[nodiscard]] DType reduced_type(ir::ReduceKind kind, DType source);

// `x = e;`, `x += e;` where x is, or becomes, a register tile.
void assign_tile(Sema& sema, const ast::AssignStmt& stmt, Span span);
// `x = e;`, `mutable x = e;`: a new tile.
void declare_tile_value(Sema& sema, const ast::Name& name, ast::ExprId value, Span span,
                        std::optional<DType> dtype = std::nullopt);

}  // namespace kiln::sema
