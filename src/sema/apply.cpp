// `apply {i, j} in acc.span body`: what is done with each element of an accumulator, in the thread
// that holds it.
//
//   apply {i, j} in mc.span
//     mc.at(i, j) = mc.at(i, j) * alpha + bias.at(j);
//   =>
//   apply frag=%mc row=i col=j { %1 = element frag=%mc; ...; set_element frag=%mc value=%3 }
#include "sema/expression.h"
#include "sema/mma.h"
#include "sema/partial_sum.h"
#include "sema/statement.h"
#include "sema/tile_array.h"
#include "sema/view.h"

namespace kiln::sema {

namespace {

constexpr std::size_t kCoordinates = 2;

// What the body may hold: nothing in it concerns other threads.
template <class Node>
constexpr bool kMayStandInside =
    std::is_same_v<Node, ast::ErrorStmt> || std::is_same_v<Node, ast::EmptyStmt> ||
    std::is_same_v<Node, ast::BlockStmt> || std::is_same_v<Node, ast::ScalarDeclStmt> ||
    std::is_same_v<Node, ast::AssignStmt> || std::is_same_v<Node, ast::IfStmt> ||
    std::is_same_v<Node, ast::ExprStmt> || std::is_same_v<Node, ast::ConstantStmt> ||
    std::is_same_v<Node, ast::ReturnStmt>;  // of a function that is called there

bool check_anchor(Sema& sema, const ast::ApplyStmt& stmt, Tile& tile, ir::ValueId id, Span span) {
  if (!check_same_unit(sema, tile, stmt.anchor.span)) return false;
  if (!tile.is_value && sema.place.unit.level == ir::Level::kBlock) {
    refuse(sema, span, "`apply` to an accumulator outside of the `parallel` that multiplies");
    return false;
  }
  tile.stored = true;
  const ir::FragType& type = sema.function.frag_type(id);
  if (type.rows == 0) {
    refuse(sema, stmt.anchor.span, "`apply` to an accumulator before its first `mma`");
    return false;
  }
  if (stmt.names.size() == kCoordinates || (stmt.names.size() == 1 && type.cols == 1)) return true;
  (void)sema.diags
      .report<diag::ApplyCoordinates>(span, tile.name, type.rows, type.cols, stmt.names.size())
      .help("{}", type.cols == 1 ? "write `apply {i}`, or `apply {i, j}` with j = 0"
                                 : "write `apply {i, j}`")
      .emit();
  return false;
}

void declare_coordinate(Sema& sema, const ast::Name& name, ir::VarId var, std::int64_t extent) {
  Operand operand = make_int(ir::Expr::var(var), name.span);
  operand.integer.bound = Bound{ir::Expr(extent), std::nullopt};
  declare(sema, name, {Symbol::Kind::kOperand, operand, name.span});
}

// Whether elements of what the expression names are those of a register tile.
bool is_accumulator(const Sema& sema, ast::ExprId expr) {
  std::vector<ast::ExprId> subscripts;
  const auto* named = sema.ast.as<ast::NameExpr>(without_subscripts(sema, expr, subscripts));
  const Symbol* symbol = named == nullptr ? nullptr : sema.scopes.find(named->name);
  const bool is_operand =
      symbol != nullptr && (symbol->kind == Symbol::Kind::kTile || is_operand_array(*symbol));
  return is_tile_name(sema, expr) && !is_operand;
}

// `mc.at(i, j)` is the element that the `apply` around it is at; of a tile with one column it is
// `m.at(i)` or `m.at(i, 0)`, that of its row.
bool check_element(Sema& sema, const ast::AtExpr& at, ir::ValueId frag, Span span) {
  if (!check_own_block(sema, at)) return false;
  if (!sema.apply) {
    refuse(sema, span, "an element of a register tile outside of `apply`");
    return false;
  }
  const ir::FragType& type = sema.function.frag_type(frag);
  const ir::FragType& anchor = sema.function.frag_type(sema.apply->frag);
  const std::int64_t extents[] = {type.rows, type.cols};
  const std::int64_t whole[] = {anchor.rows, anchor.cols};
  bool here = at.indices.size() == kCoordinates || (at.indices.size() == 1 && type.cols == 1);
  for (std::size_t k = 0; here && k < kCoordinates; ++k) {
    here = extents[k] == whole[k] || extents[k] == 1;
    if (!here || k >= at.indices.size()) continue;
    const auto index = evaluate_index(sema, at.indices[k], "an index");
    if (!index) return false;
    const bool varies = index->value == ir::Expr::var(k == 0 ? sema.apply->row : sema.apply->col);
    here = extents[k] == whole[k] ? varies || (extents[k] == 1 && index->value.is(0))
                                  : index->value.is(0);
  }
  if (!here) refuse(sema, span, "an element of a register tile other than the one `apply` is at");
  return here;
}

}  // namespace

namespace {

// Whether the `apply` comes to each element of the tile several times.
bool comes_often(const Sema& sema, ir::ValueId frag) {
  const ir::FragType& type = sema.function.frag_type(frag);
  const ir::FragType& whole = sema.function.frag_type(sema.apply->frag);
  return type.rows != whole.rows || type.cols != whole.cols;
}

// `row.at(i) += s.at(i, j)` where the `apply` goes through s.
void add_to_vector(Sema& sema, ir::ValueId frag, const ast::AssignStmt& stmt, Span span) {
  const ast::ExprId addend = addend_of(sema, stmt);
  if (addend.valid()) {
    Operand value = evaluate(sema, addend);
    value.span = sema.ast[addend].span;
    if (!value.is_error()) add_part(sema, frag, value, span);
    return;
  }
  const ir::FragType& type = sema.function.frag_type(frag);
  const ir::FragType& whole = sema.function.frag_type(sema.apply->frag);
  const std::string& name = sema.tiles.at(frag).name;
  (void)sema.diags
      .report<diag::ElementSetOften>(sema.ast[stmt.target].span, name, type.rows, type.cols,
                                     whole.rows * whole.cols / (type.rows * type.cols))
      .label(sema.tiles.at(sema.apply->frag).span, "`apply` goes through this, which is {}x{}",
             whole.rows, whole.cols)
      .help("set it in `apply {{i}} in {}.span`, or add up with `+=`", name)
      .emit();
}

// A vector whose parts have not been put together may be scaled, and nothing else.
bool may_change(Sema& sema, ir::ValueId frag, ast::AssignOp op, Span span) {
  const bool scales = op == ast::AssignOp::kMultiply || op == ast::AssignOp::kDivide;
  return scales || !sema.sums.open.contains(frag) || check_joined(sema, frag, span);
}

}  // namespace

bool check_in_apply(Sema& sema, const ast::StmtNode& stmt, Span span) {
  if (!sema.apply) return true;
  const bool fine = kiln::visit(
      [](const auto& node) { return kMayStandInside<std::remove_cvref_t<decltype(node)>>; }, stmt);
  if (!fine) refuse(sema, span, "this statement inside `apply`");
  return fine;
}

void analyse(Sema& sema, const ast::ApplyStmt& stmt, ast::StmtId statement) {
  const Span span = sema.ast[statement].span;
  ir::ValueId id;
  Tile* tile = find_tile(sema, stmt.anchor, true, id);
  if (!check_place(sema, span, Where::kUnitOrThreads) || tile == nullptr || tile->broken) return;
  if (!check_anchor(sema, stmt, *tile, id, span)) return mark_broken({tile});
  const ir::FragType type = sema.function.frag_type(id);
  const ir::VarId row =
      add_var(sema, stmt.names[0].text, ir::VarKind::kLoop, type.rows, stmt.names[0].span);
  const bool both = stmt.names.size() == kCoordinates;
  const ir::VarId col = add_var(sema, both ? stmt.names[1].text : "col", ir::VarKind::kLoop,
                                type.cols, stmt.names.back().span);
  const ir::OpId op = emit(sema, ir::Apply{.frag = id, .row = row, .col = col, .body = {}}, span);
  const Place outer = sema.place;
  note_divergence(sema, span, [](ir::Level) { return true; });
  sema.apply = OpenApply{.frag = id,
                         .row = row,
                         .col = col,
                         .first_op = sema.function.ops.size(),
                         .outside = sema.regions.back()};
  const PartialSums before = enter_iterations(sema);
  const ir::RegionId body = in_region(sema, [&] {
    declare_coordinate(sema, stmt.names[0], row, type.rows);
    if (both) declare_coordinate(sema, stmt.names[1], col, type.cols);
    analyse_body(sema, stmt.body);
  });
  leave_iterations(sema, before);
  const OpenApply done = std::move(*sema.apply);
  sema.apply.reset();
  sema.place = outer;
  std::get<ir::Apply>(sema.function.ops[op].data).body = body;
  join_parts(sema, done, span);
}

std::optional<Operand> fragment_element(Sema& sema, const ast::AtExpr& at, Span span) {
  if (!is_accumulator(sema, at.base)) return std::nullopt;
  Operand error;
  error.span = span;
  const Symbol* symbol = named_tile(sema, at.base);
  if (symbol == nullptr) return error;
  const ir::ValueId frag = symbol->operand.id;
  if (!check_element(sema, at, frag, span) || !check_joined(sema, frag, span)) return error;
  const DType dtype = sema.function.frag_type(frag).dtype;
  const ir::ValueId value = emit_value(sema, ir::Element{frag}, span, ir::ScalarType{dtype});
  return make_scalar(value, dtype, span);
}

bool assign_fragment_element(Sema& sema, const ast::AtExpr& at, const ast::AssignStmt& stmt,
                             Span span) {
  if (!is_accumulator(sema, at.base)) return false;
  const Symbol* symbol = named_tile(sema, at.base);
  if (symbol == nullptr) return true;
  const ir::ValueId frag = symbol->operand.id;
  const Span written = sema.ast[stmt.target].span;
  if (!check_element(sema, at, frag, written)) return true;
  if (comes_often(sema, frag)) {
    add_to_vector(sema, frag, stmt, span);
    return true;
  }
  const DType dtype = sema.function.frag_type(frag).dtype;
  Operand value = evaluate(sema, stmt.value);
  if (value.is_error() || !may_change(sema, frag, stmt.op, written)) return true;
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
