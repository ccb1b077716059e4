// Statements about whole register tiles: what is stored, reduced and copied, and what a warp decides by its tiles.
//
//   if (__any(sum > 32768.0f)) { ... }
//   =>
//   %flags = alloc : frag<tile, s32, 64x1>
//   fill frag=%flags value=0
//   apply frag=%flags { flags = sum > 32768 ? 1 : 0 }
//   %any = vote frag=%flags
//   if %any { ... }
#include <set>

#include "ir/effects.h"
#include "sema/expression.h"
#include "sema/mma.h"
#include "sema/partial_sum.h"
#include "sema/statement.h"
#include "sema/tile.h"

namespace kiln::sema {

namespace {

// Whether one thread does for the others what is being said.
bool is_done_once(const Sema& sema) {
  for (std::size_t i = 0; i + 1 < sema.regions.size(); ++i) {
    const std::vector<ir::OpId>& ops = sema.function.regions[sema.regions[i]].ops;
    if (!ops.empty() && sema.function.ops[ops.back()].kind() == ir::OpKind::kOnce) return true;
  }
  return false;
}

// What cannot be done by some warps of a unit without the others, or is done by one thread for all.
bool concerns_others(ir::OpKind kind) {
  constexpr ir::OpKind kOthers[] = {
      ir::OpKind::kOnce,      ir::OpKind::kCopy,  ir::OpKind::kSplat,
      ir::OpKind::kMma,       ir::OpKind::kScale, ir::OpKind::kParallel,
      ir::OpKind::kInthreads, ir::OpKind::kCuda,  ir::OpKind::kYield};
  return ir::traits(kind).sort == ir::Sort::kOrder ||
         std::ranges::find(kOthers, kind) != std::end(kOthers);
}

// What warps do where each goes its own way. Nobody can wait there for what the others write to memory.
class ByWarp {
 public:
  ByWarp(Sema& sema, Span where, std::string_view unit) : sema_(sema), where_(where), unit_(unit) {}

  void look_at(ir::OpId id) {
    const ir::Op& op = sema_.function.ops[id];
    if (concerns_others(op.kind())) return report(op.span);
    ir::for_each_touch(op, [&](const ir::Touch& touch) {
      if (!std::holds_alternative<ir::ViewType>(sema_.function.type(touch.value))) return;
      const ir::ValueId root = ir::resolve_view(sema_.function, touch.value).root;
      const ir::Space space = sema_.function.view_type(root).space;
      if (space == ir::Space::kLocal) return;
      const bool others = touched_.contains(root);
      const bool written = written_.contains(root);
      touched_.insert(root);
      if (touch.writes()) written_.insert(root);
      const bool meets = (touch.writes() && (space == ir::Space::kShared || others)) || written;
      if (meets) report(op.span);
    });
  }

 private:
  void report(Span span) {
    if (!reported_.insert(span.begin).second) return;
    const std::string_view text = sema_.sources.text(span);
    (void)sema_.diags
        .report<diag::CollectiveDivergent>(span, format("`{}`", text.substr(0, text.find('\n'))),
                                           unit_)
        .label(where_, "this differs between the warps of a {}", unit_)
        .help(
            "move the statement out: a warp alone may compute with the rows of tiles that it holds")
        .emit();
  }

  Sema& sema_;
  Span where_;
  std::string_view unit_;
  std::set<ir::ValueId> touched_;
  std::set<ir::ValueId> written_;
  std::set<std::uint32_t> reported_;
};

// Where a condition or a bound is said; else the operation.
Span where_differs(const Sema& sema, ir::OpId structure) {
  const ir::Op& op = sema.function.ops[structure];
  const auto* branch = std::get_if<ir::If>(&op.data);
  if (branch == nullptr) return op.span;
  return sema.function.ops[sema.function.values[branch->condition].def].span;
}

// Goes through what units of several warps do, and looks at whatever warps may go through each by itself.
void check_ways(Sema& sema, ir::RegionId region, std::string_view unit) {
  for (const ir::OpId id : sema.function.regions[region].ops) {
    const ir::Op& op = sema.function.ops[id];
    const auto* parallel = std::get_if<ir::Parallel>(&op.data);
    if (parallel != nullptr && parallel->level == ir::Level::kGroup) continue;
    const bool of_warpgroup = parallel != nullptr && parallel->level == ir::Level::kGroup4;
    const bool is_way = op.kind() == ir::OpKind::kIf || op.kind() == ir::OpKind::kFor ||
                        op.kind() == ir::OpKind::kLoop;
    const bool by_warp = is_way && sema.varying.control(id, ir::Level::kGroup4) &&
                         !sema.varying.control(id, ir::Level::kGroup);
    if (!by_warp) {
      for (const ir::RegionId inner : ir::regions_of(op)) {
        check_ways(sema, inner, of_warpgroup ? "warpgroup" : unit);
      }
      continue;
    }
    ByWarp ways(sema, where_differs(sema, id), unit);
    for (const ir::RegionId inner : ir::regions_of(op)) {
      ir::walk(sema.function, inner, [&](ir::OpId each) { ways.look_at(each); });
    }
  }
}

}  // namespace

bool check_votes(Sema& sema) {
  const bool votes = std::ranges::any_of(
      sema.function.ops, [](const ir::Op& op) { return op.kind() == ir::OpKind::kVote; });
  if (!votes) return true;
  (void)sema.varying.anew();
  check_ways(sema, sema.function.body, "block");
  return !sema.diags.has_errors();
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
  if (is_done_once(sema)) {
    refuse(sema, span, "`__any` in what one thread does (give the answer a name in front of it)");
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
