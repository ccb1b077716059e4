// `apply {i, j} in acc.span body`: what is done with each element of an accumulator, in the thread
// that holds it.
//
//   apply {i, j} in mc.span
//     mc.at(i, j) = mc.at(i, j) * alpha + bias.at(j);
//   =>
//   apply frag=%mc row=i col=j { %1 = element frag=%mc; ...; set_element frag=%mc value=%3 }
#include "sema/expression.h"
#include "sema/mma.h"
#include "sema/statement.h"

namespace kiln::sema {

namespace {

constexpr std::size_t kCoordinates = 2;
constexpr int kRegisterBits = 32;

// What the body may hold: nothing in it concerns other threads, or memory that is written.
template <class Node>
constexpr bool kMayStandInside =
    std::is_same_v<Node, ast::ErrorStmt> || std::is_same_v<Node, ast::EmptyStmt> ||
    std::is_same_v<Node, ast::BlockStmt> || std::is_same_v<Node, ast::ScalarDeclStmt> ||
    std::is_same_v<Node, ast::AssignStmt> || std::is_same_v<Node, ast::IfStmt> ||
    std::is_same_v<Node, ast::ExprStmt>;

bool check_anchor(Sema& sema, const ast::ApplyStmt& stmt, Tile& tile, ir::ValueId id, Span span) {
  if (!check_same_unit(sema, tile, stmt.anchor.span)) return false;
  const ir::FragType& type = sema.function.frag_type(id);
  if (type.rows == 0) {
    refuse(sema, stmt.anchor.span, "`apply` to an accumulator before its first `mma`");
    return false;
  }
  if (info(type.dtype).bits != kRegisterBits) {
    refuse(sema, stmt.anchor.span, format("`apply` to an accumulator of {}", name(type.dtype)));
    return false;
  }
  if (stmt.names.size() != kCoordinates) {
    refuse(sema, span, format("`apply` with {} coordinates", stmt.names.size()));
    return false;
  }
  return true;
}

void declare_coordinate(Sema& sema, const ast::Name& name, ir::VarId var, std::int64_t extent) {
  Operand operand = make_int(ir::Expr::var(var), name.span);
  operand.integer.bound = Bound{ir::Expr(extent), std::nullopt};
  declare(sema, name, {Symbol::Kind::kOperand, operand, name.span});
}

// The accumulator that the expression names, or null.
const Symbol* accumulator(Sema& sema, ast::ExprId expr) {
  const auto* named = sema.ast.as<ast::NameExpr>(expr);
  const Symbol* symbol = named == nullptr ? nullptr : sema.scopes.find(named->name);
  const bool found = symbol != nullptr && symbol->kind == Symbol::Kind::kAccumulator;
  return found ? symbol : nullptr;
}

// `mc.at(i, j)` is the element that the `apply` around it is at.
bool check_element(Sema& sema, const ast::AtExpr& at, ir::ValueId frag, Span span) {
  if (!sema.apply) {
    refuse(sema, span, "an element of a register tile outside of `apply`");
    return false;
  }
  bool here = sema.apply->frag == frag && at.indices.size() == kCoordinates;
  for (std::size_t k = 0; here && k < kCoordinates; ++k) {
    const auto index = evaluate_index(sema, at.indices[k], "an index");
    if (!index) return false;
    here = index->value == ir::Expr::var(k == 0 ? sema.apply->row : sema.apply->col);
  }
  if (!here) refuse(sema, span, "an element of a register tile other than the one `apply` is at");
  return here;
}

}  // namespace

bool check_in_apply(Sema& sema, const ast::StmtNode& stmt, Span span) {
  if (!sema.apply) return true;
  const bool fine = std::visit(
      [](const auto& node) { return kMayStandInside<std::remove_cvref_t<decltype(node)>>; }, stmt);
  if (!fine) refuse(sema, span, "this statement inside `apply`");
  return fine;
}

void analyse_apply(Sema& sema, const ast::ApplyStmt& stmt, Span span) {
  ir::ValueId id;
  Tile* tile = find_tile(sema, stmt.anchor, true, id);
  if (!check_place(sema, span, Where::kUnit) || tile == nullptr || tile->broken) return;
  if (!check_anchor(sema, stmt, *tile, id, span)) return mark_broken({tile});
  const ir::FragType type = sema.function.frag_type(id);
  const ir::VarId row =
      add_var(sema, stmt.names[0].text, ir::VarKind::kLoop, type.rows, stmt.names[0].span);
  const ir::VarId col =
      add_var(sema, stmt.names[1].text, ir::VarKind::kLoop, type.cols, stmt.names[1].span);
  const ir::OpId op = emit(sema, ir::Apply{.frag = id, .row = row, .col = col, .body = {}}, span);
  const Place outer = sema.place;
  note_divergence(sema, span, [](ir::Level) { return true; });
  sema.apply = OpenApply{id, row, col, sema.function.ops.size()};
  const ir::RegionId body = in_region(sema, [&] {
    declare_coordinate(sema, stmt.names[0], row, type.rows);
    declare_coordinate(sema, stmt.names[1], col, type.cols);
    analyse_body(sema, stmt.body);
  });
  sema.apply.reset();
  sema.place = outer;
  std::get<ir::Apply>(sema.function.ops[op].data).body = body;
}

std::optional<Operand> fragment_element(Sema& sema, const ast::AtExpr& at, Span span) {
  const Symbol* symbol = accumulator(sema, at.base);
  if (symbol == nullptr) return std::nullopt;
  const ir::ValueId frag = symbol->operand.id;
  if (!check_element(sema, at, frag, span)) {
    Operand error;
    error.span = span;
    return error;
  }
  const DType dtype = sema.function.frag_type(frag).dtype;
  const ir::ValueId value = emit_value(sema, ir::Element{frag}, span, ir::ScalarType{dtype});
  return make_scalar(value, dtype, span);
}

bool assign_fragment_element(Sema& sema, const ast::AtExpr& at, const ast::AssignStmt& stmt,
                             Span span) {
  const Symbol* symbol = accumulator(sema, at.base);
  if (symbol == nullptr) return false;
  const ir::ValueId frag = symbol->operand.id;
  const Span written = sema.ast[stmt.target].span;
  if (!check_element(sema, at, frag, written)) return true;
  const DType dtype = sema.function.frag_type(frag).dtype;
  Operand value = evaluate(sema, stmt.value);
  if (value.is_error()) return true;
  if (stmt.op != ast::AssignOp::kSet) {
    const ir::ValueId old = emit_value(sema, ir::Element{frag}, span, ir::ScalarType{dtype});
    value = combine(sema, operator_of(stmt.op), stmt.op_span, make_scalar(old, dtype, span), value);
  }
  value.span = sema.ast[stmt.value].span;
  if (const auto converted = convert(sema, value, dtype)) {
    emit(sema, ir::SetElement{frag, *converted}, span);
  }
  return true;
}

}  // namespace kiln::sema
