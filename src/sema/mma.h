// Register tiles: what the statements of the `mma` family share. Internal to this folder.
#pragma once

#include "sema/operand.h"
#include "sema/state.h"

namespace kiln::sema {

// What a statement of the family needs of its place: loads and products belong to one warp or
// warpgroup; fills and stores of accumulators may also stand in a block, for all of them, but not
// inside of its `: thread`; what is done with the block's own register tiles may.
enum class Where : std::uint8_t { kUnit, kUnitOrBlock, kUnitOrThreads };
// False after a report when this is no place for the statement.
[[nodiscard]] bool check_place(Sema& sema, Span word_span, Where where);

// A mistake with these tiles has been reported: nothing more is said about them. Null ones are
// skipped.
void mark_broken(std::initializer_list<Tile*> tiles);

// Says that the name, which has a subscript, is one tile or something else.
void report_no_array(Sema& sema, const Symbol& symbol, const ast::FragRef& ref);

// The tile a reference names, or null after a report.
[[nodiscard]] Tile* find_tile(Sema& sema, const ast::FragRef& ref, bool accumulator,
                              ir::ValueId& id);

// An accumulator of a block belongs to each warp or warpgroup that uses it; all other tiles to the
// body they are declared in. False after a report when the statement stands elsewhere.
[[nodiscard]] bool check_same_unit(Sema& sema, Tile& tile, Span span);

// Reports a run-time extent of a tile.
void report_open_tile(Sema& sema, Span span, const ir::Expr& extent);
// The view that a register tile is loaded from: constant and of rank 2. Nothing after a report.
[[nodiscard]] std::optional<Operand> tile_view(Sema& sema, ast::ExprId expr);
// What `mma.store` and `frag.store` write, and where to.
struct TileStore {
  ast::ExprId target;
  Span tile_span;
  Span word_span;
  std::int64_t first_column = 0;
  std::int64_t columns = 0;  // 0: all
  bool transposed = false;
  const ast::MmaStoreStmt* masked = nullptr;  // the extents that it writes
};
void store_tile(Sema& sema, ir::ValueId frag, const TileStore& store, Span span);

// `sum = mma.fill.f32 0;`, or an array of accumulators with these extents.
struct Accumulators {
  ast::Name name;
  std::optional<DType> type;
  std::vector<ast::ExprId> extents;
  Operand value;
};
void declare_accumulators(Sema& sema, const Accumulators& all, Span span);

// Declares a tile loaded from the view. It is operand A until an `mma` says otherwise. What is
// emitted has the name as well, or else `identifier`.
ir::ValueId load_tile(Sema& sema, const ast::Name& name, const Operand& source, bool to_registers,
                      std::string_view identifier = {});

// The accumulator's type is known: values that fill it are converted to it.
void resolve_fills(Sema& sema, Tile& tile, DType dtype);

}  // namespace kiln::sema
