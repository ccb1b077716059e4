// `mma.load`: the tile of a view that an operand, metadata or the beginning of a sum comes from.
#include <algorithm>
#include "ir/effects.h"
#include "ir/prove.h"
#include "sema/constant.h"
#include "sema/expression.h"
#include "sema/mma.h"
#include "sema/partial_sum.h"
#include "sema/scaled_block.h"
#include "sema/statement.h"
#include "sema/tile.h"
#include "sema/tile_array.h"
#include "sema/view.h"
#include "target/arch.h"

namespace kiln::sema {

namespace {

// A view of rank 2; nothing after a report.
std::optional<Operand> view_of_rank_2(Sema& sema, ast::ExprId expr) {
  Operand source = evaluate_view(sema, expr);
  if (source.is_error()) return std::nullopt;
  const std::size_t rank = sema.function.view_type(source.id).shape.size();
  if (rank == 2) return source;
  (void)sema.diags.report<diag::MmaRank>(source.span, rank).help("take a rank-2 view of it").emit();
  return std::nullopt;
}

}  // namespace

void report_open_tile(Sema& sema, Span span, const ir::Expr& extent) {
  (void)sema.diags.report<diag::ExtentNotConstant>(span, "an `mma` tile", text(sema, extent))
      .help("take a tile of constant extents with `.subspan(...).at(...)`")
      .emit();
}

std::optional<Operand> tile_view(Sema& sema, ast::ExprId expr) {
  const auto found = view_of_rank_2(sema, expr);
  if (!found) return std::nullopt;
  const Operand& source = *found;
  const ir::ViewType& type = sema.function.view_type(source.id);
  for (const ir::Expr& extent : type.shape) {
    if (extent.constant()) continue;
    report_open_tile(sema, source.span, extent);
    return std::nullopt;
  }
  if (!check_size(sema, type, source.span, "an `mma` tile")) return std::nullopt;
  return source;
}

ir::ValueId load_tile(Sema& sema, const ast::Name& name, const Operand& source, bool to_registers,
                      std::string_view identifier) {
  constexpr std::string_view kUnnamed = "tile";
  const std::string& text = name.text;
  const bool named = text.find_first_of(".([") == std::string::npos;
  const std::string given(named ? text : identifier.empty() ? kUnnamed : identifier);
  const ir::ViewType type = sema.function.view_type(source.id);
  const ir::ValueId id = emit_value(
      sema, ir::Alloc{.name = given}, source.span,
      ir::FragType{ir::Role::kA, type.dtype, *type.shape[0].constant(), *type.shape[1].constant()},
      given);
  Tile tile;
  tile.name = text;
  tile.span = name.span;
  tile.parallel = sema.place.unit.parallel;
  tile.unit = sema.place.unit.level;
  tile.load = emit(sema, ir::Load{.frag = id, .view = source.id, .to_registers = to_registers},
                   source.span);
  sema.tiles.emplace(id, std::move(tile));
  return id;
}

namespace {

// `a[i]` in front of `= mma.load`; null after a report.
Symbol* find_element(Sema& sema, const ast::FragRef& ref, TileName& name) {
  const Symbol* symbol = sema.scopes.find(ref.name.text);
  if (symbol == nullptr) {
    (void)sema.diags.report<diag::UnknownName>(ref.name.span, ref.name.text)
        .help("declare the array in front: `frag {}[2];`", ref.name.text)
        .emit();
    return nullptr;
  }
  if (symbol->kind != Symbol::Kind::kTileArray) {
    report_no_array(sema, *symbol, ref);
    return nullptr;
  }
  if (!is_operand_array(*symbol)) {
    refuse(sema, ref.span, "loading into an existing register tile");
    return nullptr;
  }
  return element_to_load(sema, *symbol, ref, name);
}

// A view of metadata, whose extents the launch may decide: with 1 in their place, and `open` are they.
std::optional<Operand> metadata_view(Sema& sema, ast::ExprId expr, std::vector<ir::Expr>& open) {
  auto source = view_of_rank_2(sema, expr);
  if (!source) return std::nullopt;
  const std::vector<ir::Expr> shape = sema.function.view_type(source->id).shape;
  std::vector<ir::Expr> closed = shape;
  for (ir::Expr& extent : closed) {
    if (extent.constant()) continue;
    if (!ir::known_at_launch(sema.function, extent)) {
      report_open_tile(sema, source->span, extent);
      return std::nullopt;
    }
    extent = 1;
    open = shape;
  }
  if (!open.empty()) source->id = widen_view(sema, source->id, std::move(closed), source->span);
  const ir::ViewType& type = sema.function.view_type(source->id);
  if (!check_size(sema, type, source->span, "an `mma` tile")) return std::nullopt;
  return source;
}

// What the statement loads; an error operand after a report.
Operand loaded(Sema& sema, const ast::MmaLoadStmt& stmt, const TileName& name, Span span) {
  Operand out;
  if (stmt.is_async) {
    refuse(sema, stmt.word_span, "`.async` on `mma.load`");
    return out;
  }
  std::vector<ir::Expr> open;
  const bool is_metadata = sema.plan.metadata.contains(name.text);
  std::optional<Operand> source =
      is_metadata ? metadata_view(sema, stmt.source, open) : tile_view(sema, stmt.source);
  if (!source) return out;
  const auto bytes = swizzle_bytes(sema, stmt.swizzle);
  if (bytes && stmt.swizzle) wish_swizzle(sema, source->id, *bytes, stmt.swizzle->span);
  source->span = span;
  out.kind = Operand::Kind::kFragment;
  out.id = load_tile(sema, {name.text, stmt.target.name.span}, *source, stmt.to_registers,
                     name.identifier);
  sema.tiles.at(out.id).open_extents = std::move(open);
  return out;
}

// Whether products are added to what is loaded.
bool begins_a_sum(const Sema& sema, const ast::MmaLoadStmt& stmt) {
  const std::string& name = stmt.target.name.text;
  return !stmt.is_async && !stmt.to_registers && !stmt.swizzle && sema.plan.sums.contains(name) &&
         !sema.plan.factors.contains(name);
}

// A tile that the block has declared, and each warp or warpgroup loads: one of their own from here on.
// Nothing after a report.
std::optional<ir::ValueId> tile_of_unit(Sema& sema, const ast::FragRef& ref, ir::ValueId whole) {
  Tile& tile = sema.tiles.at(whole);
  const auto is_of_block = [&](const OpenLoop& loop) { return loop.parallel == sema.place.launch; };
  const bool is_of_units = tile.unit == ir::Level::kBlock && ref.subscripts.empty() &&
                           sema.place.unit.parallel != sema.place.launch &&
                           std::ranges::none_of(sema.loops, is_of_block);
  if (!is_of_units) {
    if (!check_same_unit(sema, tile, ref.span)) return std::nullopt;
    return whole;
  }
  const Symbol& symbol = *sema.scopes.find(ref.name.text);
  Operand own = symbol.operand;
  own.id = make_tile(sema, tile.name, ir::FragType(sema.function.frag_type(whole)), ref.name.span);
  sema.scopes.replace(ref.name.text, {Symbol::Kind::kAccumulator, own, symbol.span});
  return own.id;
}

// Whether the tile has the type and the extents of the view; false after a report.
bool holds_view(Sema& sema, const Tile& tile, const ir::FragType& to, const Operand& view) {
  const ir::ViewType& from = sema.function.view_type(view.id);
  if (from.dtype != to.dtype) {
    (void)sema.diags.report<diag::CopyDtype>(view.span, name(from.dtype), name(to.dtype))
        .label(tile.span, "declared here")
        .help("declare `{}` with the type {}", tile.name, name(from.dtype))
        .emit();
    return false;
  }
  if (from.shape[0].is(to.rows) && from.shape[1].is(to.cols)) return true;
  (void)sema.diags
      .report<diag::TileAssigned>(view.span, tile.name, to.rows, to.cols, *from.shape[0].constant(),
                                  *from.shape[1].constant())
      .label(tile.span, "declared here")
      .help("declare `{}` with the extents of the view", tile.name)
      .emit();
  return false;
}

// `mma.load view, tile;` where the tile has been declared with its extents.
void load_into(Sema& sema, const ast::MmaLoadStmt& stmt, Span span) {
  if (stmt.is_async) return refuse(sema, stmt.word_span, "`.async` on `mma.load`");
  const Symbol* symbol = sema.scopes.find(stmt.target.name.text);
  const bool is_operand = symbol != nullptr &&
                          (symbol->kind == Symbol::Kind::kTile ||
                           (symbol->kind == Symbol::Kind::kTileArray && is_operand_array(*symbol)));
  ir::ValueId id;
  const Tile* tile = is_operand ? nullptr : find_tile(sema, stmt.target, true, id);
  if (is_operand || (tile != nullptr && !tile->is_value)) {
    return refuse(sema, span, "loading into an existing operand tile or accumulator");
  }
  if (tile == nullptr || tile->broken) return;
  const auto view = tile_view(sema, stmt.source);
  if (!view) return;
  const auto bytes = swizzle_bytes(sema, stmt.swizzle);
  if (bytes && stmt.swizzle) wish_swizzle(sema, view->id, *bytes, stmt.swizzle->span);
  if (!holds_view(sema, *tile, sema.function.frag_type(id), *view)) return;
  const auto own = tile_of_unit(sema, stmt.target, id);
  if (!own) return;
  emit(sema, ir::Load{.frag = *own, .view = view->id, .to_registers = true}, span);
  note_set(sema, *own);
}

// `sum = frag.load view;`
void load_sum(Sema& sema, const ast::MmaLoadStmt& stmt, Span span) {
  const ast::Name& name = stmt.target.name;
  const auto view = tile_view(sema, stmt.source);
  if (!view) return declare(sema, name, {});
  const ir::ViewType& type = sema.function.view_type(view->id);
  Operand sum;
  sum.kind = Operand::Kind::kFragment;
  sum.id =
      make_tile(sema, name.text,
                {ir::Role::kTile, type.dtype, *type.shape[0].constant(), *type.shape[1].constant()},
                name.span);
  emit(sema, ir::Load{.frag = sum.id, .view = view->id, .to_registers = true}, span);
  declare(sema, name, {Symbol::Kind::kAccumulator, sum, name.span});
}

}  // namespace

void analyse(Sema& sema, const ast::MmaLoadStmt& stmt, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  const ast::Name& target = stmt.target.name;
  const bool declares = stmt.declares && stmt.target.subscripts.empty();
  if (!check_place(sema, stmt.word_span, Where::kUnit)) {
    if (declares) declare(sema, target, {});
    return;
  }
  if (!stmt.declares) return load_into(sema, stmt, span);
  if (declares && begins_a_sum(sema, stmt)) return load_sum(sema, stmt, span);
  TileName name = {target.text, target.text};
  Symbol* element = declares ? nullptr : find_element(sema, stmt.target, name);
  if (!declares && element == nullptr) return;
  const Operand tile = loaded(sema, stmt, name, span);
  Symbol symbol;
  if (!tile.is_error()) symbol = {Symbol::Kind::kTile, tile, target.span};
  if (!declares) {
    *element = std::move(symbol);
  } else {
    declare(sema, target, std::move(symbol));
  }
}

}  // namespace kiln::sema
