#include "sema/lazy.h"

#include <algorithm>

#include "ir/effects.h"
#include "sema/expression.h"

namespace kiln::sema {

namespace {

// An operand and the operations that compute it, which stand nowhere yet.
struct Part {
  ir::RegionId region;
  Operand operand;
};

template <class Body>
void inside(Sema& sema, ir::RegionId region, Body&& body) {
  sema.regions.push_back(region);
  body();
  sema.regions.pop_back();
}

Part evaluate_apart(Sema& sema, ast::ExprId id) {
  Part part{sema.function.regions.push({}), {}};
  inside(sema, part.region, [&] { part.operand = evaluate(sema, id); });
  return part;
}

// Whether it makes a difference that the operations run.
bool acts(const Sema& sema, const Part& part) {
  const std::vector<ir::OpId>& ops = sema.function.regions[part.region].ops;
  return std::any_of(ops.begin(), ops.end(), [&](ir::OpId id) {
    const ir::Op& op = sema.function.ops[id];
    const ir::OpKind kind = op.kind();
    return kind == ir::OpKind::kRead || kind == ir::OpKind::kSet || kind == ir::OpKind::kIf ||
           kind == ir::OpKind::kCuda || ir::changes_memory(sema.function, op);
  });
}

// Computes it here.
const Operand& place_here(Sema& sema, const Part& part) {
  const std::vector<ir::OpId> ops = std::move(sema.function.regions[part.region].ops);
  sema.function.regions[part.region].ops.clear();
  std::vector<ir::OpId>& here = sema.function.regions[sema.regions.back()].ops;
  here.insert(here.end(), ops.begin(), ops.end());
  return part.operand;
}

ir::ValueId make_cell(Sema& sema, DType dtype, ir::ValueId initial, Span span) {
  return emit_value(sema, ir::Alloc{.initial = initial}, span, ir::CellType{dtype});
}

Operand get_cell(Sema& sema, ir::ValueId cell, DType dtype, Span span) {
  return make_scalar(emit_value(sema, ir::Get{cell}, span, ir::ScalarType{dtype}), dtype, span);
}

Operand error_at(Span span) {
  Operand out;
  out.span = span;
  return out;
}

// What `0 && x`, `x && 0`, `1 || x` and `x || 1` are, whatever x is; `side` is the other side.
std::optional<Operand> decided(const ast::BinaryExpr& expr, const Operand& side, Span span) {
  const auto constant =
      side.kind == Operand::Kind::kInt ? side.integer.value.constant() : std::nullopt;
  const bool is_or = expr.op == ast::BinaryOp::kOr;
  if (!constant || (*constant != 0) != is_or) return std::nullopt;
  Operand out = make_int(is_or ? 1 : 0, span);
  out.dtype = DType::kBool;
  return out;
}

}  // namespace

Operand evaluate_logical(Sema& sema, const ast::BinaryExpr& expr, Operand left, Span span) {
  const Part right = evaluate_apart(sema, expr.right);
  if (left.is_number() && right.operand.is_number()) {
    if (auto out = decided(expr, left, span)) return *out;
    if (auto out = decided(expr, right.operand, span)) return *out;
  }
  if (left.is_error() || right.operand.is_error() || !acts(sema, right)) {
    Operand out = combine(sema, expr.op, expr.op_span, left, place_here(sema, right));
    out.span = span;
    return out;
  }
  const auto known = convert_to_bool(sema, left);
  if (!known) return error_at(span);
  ir::ValueId undecided = *known;
  if (expr.op == ast::BinaryOp::kOr) {
    undecided = emit_value(sema, ir::Unary{ir::UnaryKind::kNot, *known}, span,
                           ir::ScalarType{DType::kBool});
  }
  const ir::ValueId cell = make_cell(sema, DType::kBool, *known, span);
  bool failed = false;
  inside(sema, right.region, [&] {
    const auto flag = convert_to_bool(sema, right.operand);
    failed = !flag;
    if (flag) emit(sema, ir::Set{cell, *flag}, span);
  });
  if (failed) return error_at(span);
  emit(sema, ir::If{undecided, right.region, {}}, span);
  return get_cell(sema, cell, DType::kBool, span);
}

Operand evaluate_conditional(Sema& sema, const ast::ConditionalExpr& expr, Span span) {
  const Operand condition = evaluate(sema, expr.condition);
  const Part left = evaluate_apart(sema, expr.then_value);
  const Part right = evaluate_apart(sema, expr.else_value);
  if (condition.is_error() || left.operand.is_error() || right.operand.is_error()) {
    return error_at(span);
  }
  if (condition.kind == Operand::Kind::kInt && condition.integer.value.constant()) {
    return place_here(sema, condition.integer.value.is(0) ? right : left);
  }
  const bool lazy = acts(sema, left) || acts(sema, right);
  if (!lazy) {
    place_here(sema, left);
    place_here(sema, right);
  }
  const auto flag = convert_to_bool(sema, condition);
  if (!flag) return error_at(span);
  if (!left.operand.is_number() || !right.operand.is_number()) {
    (void)sema.diags
        .report<diag::OperandTypes>(span, "?:", describe(left.operand, sema.function),
                                    describe(right.operand, sema.function))
        .emit();
    return error_at(span);
  }
  const DType dtype = promote(left.operand, right.operand);
  if (!lazy) {
    const auto if_true = convert(sema, left.operand, dtype);
    const auto if_false = convert(sema, right.operand, dtype);
    if (!if_true || !if_false) return error_at(span);
    return make_scalar(
        emit_value(sema, ir::Choose{*flag, *if_true, *if_false}, span, ir::ScalarType{dtype}),
        dtype, span);
  }
  const ir::ValueId cell = make_cell(sema, dtype, {}, span);
  bool failed = false;
  for (const Part* part : {&left, &right}) {
    inside(sema, part->region, [&] {
      const auto value = convert(sema, part->operand, dtype);
      failed = failed || !value;
      if (value) emit(sema, ir::Set{cell, *value}, span);
    });
  }
  if (failed) return error_at(span);
  emit(sema, ir::If{*flag, left.region, right.region}, span);
  return get_cell(sema, cell, dtype, span);
}

}  // namespace kiln::sema
