// Tiles of an array that a number chooses which is known at launch alone.
//
//   mma.row.row sum[n], a, b;          // n is a parameter
//   =>
//   if (n == 0) mma.row.row sum[0], a, b;
//   if (n == 1) mma.row.row sum[1], a, b;
//
// All threads choose the same, and the call checks that there is such a tile.
#include <algorithm>

#include "ir/prove.h"
#include "sema/entry_check.h"
#include "sema/expression.h"
#include "sema/statement.h"
#include "sema/tile_array.h"

namespace kiln::sema {

std::optional<std::int64_t> chosen_value(const Sema& sema, const ir::Expr& index) {
  const auto is_it = [&](const auto& each) { return each.first == index; };
  const auto chosen = std::ranges::find_if(sema.chosen, is_it);
  return chosen == sema.chosen.end() ? index.constant() : chosen->second;
}

namespace {

// The tiles that a statement of products names, with their subscripts.
std::vector<ast::FragRef> tiles_named(const Sema& sema, ast::StmtId id) {
  std::vector<ast::FragRef> out;
  const auto add = [&](ast::ExprId expr) {
    if (!expr.valid()) return;
    ast::FragRef ref;
    const auto* named = sema.ast.as<ast::NameExpr>(without_subscripts(sema, expr, ref.subscripts));
    if (named == nullptr) return;
    ref.name.text = named->name;
    out.push_back(std::move(ref));
  };
  if (const auto* product = sema.ast.as<ast::MmaExecStmt>(id)) {
    if (!product->future.valid()) out.push_back(product->acc);
    add(product->a);
    add(product->b);
  }
  if (const auto* store = sema.ast.as<ast::MmaStoreStmt>(id)) out.push_back(store->acc);
  if (const auto* fill = sema.ast.as<ast::MmaFillStmt>(id)) out.push_back(fill->target);
  if (const auto* apply = sema.ast.as<ast::ApplyStmt>(id)) out.push_back(apply->anchor);
  return out;
}

struct Undecided {
  ir::Expr index;
  std::int64_t extent;
  Span span;
};

// The first subscript of the tiles that is known at launch alone, and not chosen yet.
std::optional<Undecided> undecided_subscript(Sema& sema, ast::StmtId id) {
  for (const ast::FragRef& ref : tiles_named(sema, id)) {
    const Symbol* array = sema.scopes.find(ref.name.text);
    if (array == nullptr || array->kind != Symbol::Kind::kTileArray) continue;
    if (ref.subscripts.size() != array->extents.size()) continue;
    for (std::size_t d = 0; d < ref.subscripts.size(); ++d) {
      const auto* named = sema.ast.as<ast::NameExpr>(ref.subscripts[d]);
      const bool is_text = named != nullptr || sema.ast.as<ast::BinaryExpr>(ref.subscripts[d]);
      if (!is_text) continue;  // a literal, or what is an error anyway
      const std::size_t ops = sema.function.ops.size();
      const auto index = evaluate_index(sema, ref.subscripts[d], "a subscript");
      if (!index) return std::nullopt;
      const bool computed = sema.function.ops.size() != ops;
      if (computed || chosen_value(sema, index->value)) continue;
      if (!ir::known_at_launch(sema.function, index->value)) continue;
      return Undecided{index->value, array->extents[d], sema.ast[ref.subscripts[d]].span};
    }
  }
  return std::nullopt;
}

}  // namespace

bool analyse_each_choice(Sema& sema, ast::StmtId id) {
  if (!sema.has_tile_arrays || !sema.place.in_kernel) return false;
  const std::size_t errors = sema.diags.error_count();
  const auto choice = undecided_subscript(sema, id);
  if (!choice) return sema.diags.error_count() != errors;
  const auto check = [&](ir::Expr left, ir::Expr right) {
    const auto is_it = [&](const ir::EntryCheck& each) {
      return each.relation == ir::Relation::kLessEqual && each.left == left && each.right == right;
    };
    if (std::ranges::any_of(sema.function.checks, is_it)) return;
    require(sema, {std::move(left), ir::Relation::kLessEqual, std::move(right),
                   format("`{}` chooses one of {} register tiles", sema.sources.text(choice->span),
                          choice->extent),
                   choice->span});
  };
  check(ir::Expr(0), choice->index);
  check(choice->index, ir::Expr(choice->extent - 1));
  for (std::int64_t value = 0; value < choice->extent; ++value) {
    const Operand is_it =
        combine(sema, ast::BinaryOp::kEqual, choice->span, make_int(choice->index, choice->span),
                make_int(value, choice->span));
    const auto flag = convert_to_bool(sema, is_it);
    if (!flag) return true;
    const ir::OpId op = emit(sema, ir::If{*flag, {}, {}}, sema.ast[id].span);
    sema.chosen.emplace_back(choice->index, value);
    const ir::RegionId body = in_region(sema, [&] { analyse_statement(sema, id); });
    sema.chosen.pop_back();
    std::get<ir::If>(sema.function.ops[op].data).then_body = body;
  }
  return true;
}

}  // namespace kiln::sema
