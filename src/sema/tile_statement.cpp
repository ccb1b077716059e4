// Statements about whole register tiles: what is stored, reduced and copied, and what a warp decides by its tiles.
//
//   if (__any(sum > 32768.0f)) { ... }
//   =>
//   %flags = alloc : frag<tile, s32, 64x1>
//   fill frag=%flags value=0
//   apply frag=%flags { flags = sum > 32768 ? 1 : 0 }
//   %any = vote frag=%flags
//   if %any { ... }
#include "sema/expression.h"
#include "sema/mma.h"
#include "sema/partial_sum.h"
#include "sema/statement.h"
#include "sema/tile.h"

namespace kiln::sema {

namespace {

// What warps may do each by itself: it concerns no other thread, or the lanes of the warp alone.
template <class Node>
constexpr bool kMayStandInWarp =
    std::is_same_v<Node, ast::ErrorStmt> || std::is_same_v<Node, ast::EmptyStmt> ||
    std::is_same_v<Node, ast::BlockStmt> || std::is_same_v<Node, ast::ScalarDeclStmt> ||
    std::is_same_v<Node, ast::ConstantStmt> || std::is_same_v<Node, ast::FragDeclStmt> ||
    std::is_same_v<Node, ast::AssignStmt> || std::is_same_v<Node, ast::ExprStmt> ||
    std::is_same_v<Node, ast::ApplyStmt> || std::is_same_v<Node, ast::FragStoreStmt> ||
    std::is_same_v<Node, ast::ReduceStmt> || std::is_same_v<Node, ast::AllReduceStmt> ||
    std::is_same_v<Node, ast::FragCopyStmt> || std::is_same_v<Node, ast::IfStmt> ||
    std::is_same_v<Node, ast::ForeachStmt> || std::is_same_v<Node, ast::WhileStmt> ||
    std::is_same_v<Node, ast::WithStmt> || std::is_same_v<Node, ast::ReturnStmt> ||
    std::is_same_v<Node, ast::AssertStmt> || std::is_same_v<Node, ast::PrintStmt>;

}  // namespace

bool check_by_warp(Sema& sema, const ast::StmtNode& stmt, Span span) {
  Span where = sema.place.divergent_by_warp;
  for (const OpenLoop& loop : sema.loops) {
    if (!where.valid()) where = loop.leaving.by_warp;
  }
  if (!where.valid() || sema.place.unit.level == ir::Level::kGroup) return true;
  const bool fine = kiln::visit(
      [](const auto& node) { return kMayStandInWarp<std::remove_cvref_t<decltype(node)>>; }, stmt);
  if (fine) return true;
  const std::string_view text = sema.sources.text(span);
  const std::string_view unit = sema.place.unit.level == ir::Level::kGroup4 ? "warpgroup" : "block";
  (void)sema.diags
      .report<diag::CollectiveDivergent>(span, format("`{}`", text.substr(0, text.find('\n'))),
                                         unit)
      .label(where, "this differs between the warps of a {}", unit)
      .help("move the statement out: a warp alone may compute with the rows of tiles that it holds")
      .emit();
  return false;
}

Operand vote_of_warp(Sema& sema, const ast::CallExpr& call, Span span) {
  Operand error;
  error.span = span;
  const ast::ExprId condition = call.args[0];
  if (sema.apply) {
    refuse(sema, span,
           "`__any` inside of `apply` or of a tile's expression (give the answer a name in front "
           "of it)");
    return error;
  }
  if (!check_place(sema, span, Where::kUnitOrThreads)) return error;
  if (!is_tile_expression(sema, condition)) {
    const Operand value = evaluate(sema, condition);
    if (value.is_error()) return error;
    (void)sema.diags
        .report<diag::TileNotValue>(sema.ast[condition].span,
                                    sema.sources.text(sema.ast[condition].span),
                                    describe(value, sema.function))
        .help("`__any` asks elements of register tiles: `__any(sum > 32768.0f)`")
        .emit();
    return error;
  }
  const auto flags = evaluate_flags(sema, condition, PartsIn::kAnywhere, true);
  if (!flags) return error;
  return make_scalar(emit_value(sema, ir::Vote{.frag = flags->tile, .parts = flags->of_parts}, span,
                                ir::ScalarType{DType::kBool}, "any"),
                     DType::kBool, span);
}

void analyse(Sema& sema, const ast::FragStoreStmt& stmt, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  if (!check_place(sema, stmt.word_span, Where::kUnitOrThreads)) return;
  const auto frag = evaluate_tile(sema, stmt.value, "stored");
  if (!frag) return;
  store_tile(
      sema, *frag,
      {.target = stmt.target, .tile_span = sema.ast[stmt.value].span, .word_span = stmt.word_span},
      span);
}

namespace {

struct TilePair {
  ir::ValueId target;
  ir::ValueId source;
};

// The tiles that a statement writes and reads; nothing after a report.
std::optional<TilePair> find_tiles(Sema& sema, const ast::FragRef& target,
                                   const ast::FragRef& source, Span span) {
  TilePair out;
  Tile* to = find_tile(sema, target, true, out.target);
  Tile* from = find_tile(sema, source, true, out.source);
  if (!check_place(sema, span, Where::kUnitOrThreads) || to == nullptr || from == nullptr)
    return std::nullopt;
  from->stored = true;
  if (!check_same_unit(sema, *to, target.span) || !check_same_unit(sema, *from, source.span)) {
    return std::nullopt;
  }
  if (!check_joined(sema, out.source, source.span)) return std::nullopt;
  note_set(sema, out.target);
  return out;
}

}  // namespace

void analyse(Sema& sema, const ast::ReduceStmt& stmt, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  const auto tiles = find_tiles(sema, stmt.target, stmt.source, span);
  if (!tiles) return;
  const auto [target, source] = *tiles;
  const Tile* to = &sema.tiles.at(target);
  const ir::FragType& type = sema.function.frag_type(source);
  const ir::FragType& rows = sema.function.frag_type(target);
  if (rows.rows != type.rows || rows.cols != 1) {
    (void)sema.diags
        .report<diag::TileAssigned>(stmt.target.span, to->name, rows.rows, rows.cols, type.rows, 1)
        .label(stmt.source.span, "{}x{}", type.rows, type.cols)
        .help("declare it `frag {} [{}] {}`", name(type.dtype), type.rows, to->name)
        .emit();
    return;
  }
  const auto kind = stmt.op == ast::ReduceOp::kMax ? ir::ReduceKind::kMax : ir::ReduceKind::kSum;
  const DType wanted = reduced_type(kind, type.dtype);
  if (rows.dtype != wanted) {
    return refuse(sema, stmt.target.span,
                  format("a reduction of {} into a tile of {} instead of {}", name(type.dtype),
                         name(rows.dtype), name(wanted)));
  }
  emit(sema, ir::Reduce{.frag = target, .source = source, .kind = kind}, span);
}

void analyse(Sema& sema, const ast::FragCopyStmt& stmt, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  const auto tiles = find_tiles(sema, stmt.target, stmt.source, span);
  if (!tiles) return;
  const auto [target, source] = *tiles;
  const Tile* to = &sema.tiles.at(target);
  const ir::FragType type = sema.function.frag_type(source);
  const ir::FragType kept = sema.function.frag_type(target);
  if (type.rows != kept.rows || type.cols != kept.cols) {
    (void)sema.diags
        .report<diag::TileAssigned>(stmt.target.span, to->name, kept.rows, kept.cols, type.rows,
                                    type.cols)
        .emit();
    return;
  }
  const ir::VarId row = add_var(sema, "row", ir::VarKind::kLoop, type.rows, span);
  const ir::VarId col = add_var(sema, "col", ir::VarKind::kLoop, type.cols, span);
  const ir::OpId op =
      emit(sema, ir::Apply{.frag = target, .row = row, .col = col, .body = {}}, span);
  const ir::RegionId body = in_region(sema, [&, source = source, target = target] {
    const Operand value = element_of_tile(sema, source, stmt.source.span);
    if (const auto converted = convert(sema, value, kept.dtype)) {
      emit(sema, ir::SetElement{target, *converted}, span);
    }
  });
  std::get<ir::Apply>(sema.function.ops[op].data).body = body;
}

}  // namespace kiln::sema
