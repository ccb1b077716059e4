// Partial sums.
//
//   apply {i, j} in s.span  row.at(i) += s.at(i, j);
//   =>
//   %row_parts = alloc : frag<tile, f32, 64x128>
//   apply frag=%s row=i col=j { %1 = element frag=%s; set_element frag=%row_parts value=%1 }
//   %row_sum = alloc : frag<tile, f32, 64x1>
//   reduce frag=%row_sum source=%row_parts kind=sum
//   apply frag=%row ... { row = row + row_sum }
//
// So the lanes' parts meet at once, `row` is whole in every lane, and `all_reduce_sum` is nothing more
// to do. That nobody reads `row` before it is checked here, along the text: what is open at the end
// of a loop's body is open when the next iteration begins.
#include "sema/partial_sum.h"

#include "sema/expression.h"
#include "sema/mma.h"
#include "sema/tile.h"

namespace kiln::sema {

namespace {

// Whether both are `row.at(i)` of one name.
bool is_same_element(const Sema& sema, ast::ExprId one, const ast::AtExpr& other) {
  const auto* at = sema.ast.as<ast::AtExpr>(one);
  return at != nullptr &&
         sema.sources.text(sema.ast[at->base].span) == sema.sources.text(sema.ast[other.base].span);
}

// What the lanes add to a vector in an `apply` lies beside what the `apply` goes through.
ir::ValueId parts_for(Sema& sema, ir::ValueId frag, bool set_at_once, Span span) {
  const ir::RegionId outside = sema.apply->outside;
  const ir::OpId apply = sema.function.regions[outside].ops.back();
  sema.function.regions[outside].ops.pop_back();
  sema.regions.push_back(outside);
  const ir::FragType& whole = sema.function.frag_type(sema.apply->frag);
  const DType dtype = sema.function.frag_type(frag).dtype;
  const ir::ValueId parts = make_tile(sema, format("{}_parts", sema.function.values[frag].name),
                                      {ir::Role::kTile, dtype, whole.rows, whole.cols}, span);
  if (!set_at_once) {
    const auto zero = emit_value(sema, ir::Const{0}, span, ir::ScalarType{dtype});
    emit(sema, ir::Fill{parts, zero}, span);
  }
  sema.regions.pop_back();
  sema.function.regions[outside].ops.push_back(apply);
  return parts;
}

// The sums of the parts along each dimension in which the vector has one element.
ir::ValueId sum_of_parts(Sema& sema, ir::ValueId frag, ir::ValueId parts, Span span) {
  const ir::FragType vector = sema.function.frag_type(frag);
  const std::string name = format("{}_sum", sema.function.values[frag].name);
  ir::ValueId sum = parts;
  for (const int dimension : {1, 0}) {
    ir::FragType type = sema.function.frag_type(sum);
    std::int64_t& extent = dimension == 0 ? type.rows : type.cols;
    if (extent == (dimension == 0 ? vector.rows : vector.cols)) continue;
    extent = 1;
    type.dtype = reduced_type(ir::ReduceKind::kSum, type.dtype);
    const ir::ValueId made = make_tile(sema, name, type, span);
    emit(sema,
         ir::Reduce{
             .frag = made, .source = sum, .kind = ir::ReduceKind::kSum, .dimension = dimension},
         span);
    sum = made;
  }
  return sum;
}

}  // namespace

ast::ExprId addend_of(const Sema& sema, const ast::AssignStmt& stmt) {
  if (stmt.op == ast::AssignOp::kAdd) return stmt.value;
  const auto* target = sema.ast.as<ast::AtExpr>(stmt.target);
  const auto* sum = sema.ast.as<ast::BinaryExpr>(stmt.value);
  if (stmt.op != ast::AssignOp::kSet || sum == nullptr || sum->op != ast::BinaryOp::kAdd) return {};
  if (is_same_element(sema, sum->left, *target)) return sum->right;
  if (is_same_element(sema, sum->right, *target)) return sum->left;
  return {};
}

void add_part(Sema& sema, ir::ValueId frag, const Operand& addend, Span span) {
  const DType dtype = sema.function.frag_type(frag).dtype;
  const auto known = sema.apply->parts.find(frag);
  const bool is_first = known == sema.apply->parts.end();
  // The first of a body that each element comes to needs no zero in front of it.
  const bool sets = is_first && sema.regions[sema.regions.size() - 2] == sema.apply->outside;
  const ir::ValueId parts = is_first ? parts_for(sema, frag, sets, span) : known->second;
  sema.apply->parts.emplace(frag, parts);
  Operand value = addend;
  if (!sets) {
    value = combine(sema, ast::BinaryOp::kAdd, span, element_of_tile(sema, parts, span), value);
  }
  value.span = addend.span;
  if (const auto converted = convert(sema, value, dtype)) {
    emit(sema, ir::SetElement{parts, *converted}, span);
  }
  note_parts(sema, frag, span);
}

void join_parts(Sema& sema, const OpenApply& apply, Span span) {
  for (const auto& [frag, parts] : apply.parts) {
    const ir::FragType type = sema.function.frag_type(frag);
    const ir::ValueId sum = sum_of_parts(sema, frag, parts, span);
    const ir::VarId row = add_var(sema, "row", ir::VarKind::kLoop, type.rows, span);
    const ir::VarId col = add_var(sema, "col", ir::VarKind::kLoop, type.cols, span);
    const ir::OpId op =
        emit(sema, ir::Apply{.frag = frag, .row = row, .col = col, .body = {}}, span);
    const ir::RegionId body = in_region(sema, [&, frag = frag] {
      Operand whole = combine(sema, ast::BinaryOp::kAdd, span, element_of_tile(sema, frag, span),
                              element_of_tile(sema, sum, span));
      whole.span = span;
      if (const auto converted = convert(sema, whole, type.dtype)) {
        emit(sema, ir::SetElement{frag, *converted}, span);
      }
    });
    std::get<ir::Apply>(sema.function.ops[op].data).body = body;
  }
}

void analyse(Sema& sema, const ast::AllReduceStmt& stmt, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  ir::ValueId frag;
  Tile* tile = find_tile(sema, stmt.operand, true, frag);
  if (!check_place(sema, span, Where::kUnitOrThreads) || tile == nullptr || tile->broken) return;
  if (!check_same_unit(sema, *tile, stmt.operand.span)) return;
  tile->stored = true;
  if (!sema.sums.open.contains(frag)) {
    (void)sema.diags.report<diag::AllReduceWhole>(stmt.operand.span, tile->name)
        .label(tile->span, "declared here")
        .help("add to it in an `apply` first: `apply {{i, j}} in x.span {}.at(i) += x.at(i, j);`",
              tile->name)
        .emit();
    return;
  }
  note_set(sema, frag);
}

bool check_joined(Sema& sema, ir::ValueId frag, Span span) {
  const auto open = sema.sums.open.find(frag);
  if (open == sema.sums.open.end()) {
    if (!sema.sums.settled.contains(frag)) sema.sums.read.try_emplace(frag, span);
    return true;
  }
  const std::string name = sema.tiles.at(frag).name;
  (void)sema.diags.report<diag::PartialSumRead>(span, name)
      .label(open->second, "each lane adds its own part here")
      .help("put the parts together first: `all_reduce_sum({});`", name)
      .emit();
  note_set(sema, frag);
  return false;
}

void note_parts(Sema& sema, ir::ValueId frag, Span span) {
  sema.sums.open.insert_or_assign(frag, span);
  sema.sums.settled.insert(frag);
}

void note_set(Sema& sema, ir::ValueId frag) {
  sema.sums.open.erase(frag);
  sema.sums.settled.insert(frag);
}

PartialSums enter_iterations(Sema& sema) {
  const PartialSums outer = sema.sums;
  sema.sums.settled.clear();
  sema.sums.read.clear();
  sema.sums.left.clear();
  return outer;
}

void leave_iterations(Sema& sema, PartialSums outer) {
  PartialSums& inner = sema.sums;
  inner.open.insert(inner.left.begin(), inner.left.end());
  for (const auto& [frag, span] : inner.read) {
    const auto added = inner.open.find(frag);
    if (added == inner.open.end()) {
      if (!outer.settled.contains(frag)) outer.read.try_emplace(frag, span);
      continue;
    }
    const std::string name = sema.tiles.at(frag).name;
    (void)sema.diags.report<diag::PartialSumRead>(span, name)
        .label(added->second, "the iteration before has added to it here")
        .help(
            "{}",
            sema.apply
                ? format("read a copy that is made in front of the `apply`: `copy(old, {});`", name)
                : format("put the parts together before the iteration ends: "
                         "`all_reduce_sum({});`",
                         name))
        .emit();
    inner.open.erase(added);
  }
  outer.open.insert(inner.open.begin(), inner.open.end());
  sema.sums = std::move(outer);
}

void note_sums_left(Sema& sema) {
  sema.sums.left.insert(sema.sums.open.begin(), sema.sums.open.end());
}

PartialSums either(const PartialSums& one, const PartialSums& other) {
  PartialSums out = one;
  out.open.insert(other.open.begin(), other.open.end());
  out.read.insert(other.read.begin(), other.read.end());
  out.left.insert(other.left.begin(), other.left.end());
  std::erase_if(out.settled, [&](ir::ValueId frag) { return !other.settled.contains(frag); });
  return out;
}

}  // namespace kiln::sema
