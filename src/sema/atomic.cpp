// Atomic operations: `__atomic_add(x.at(i), v)` as a statement, or for the old content of x[i].
//
//   __atomic_sub(x.at(i), v)   =>   atomic kind=add view=%x index=[i] value=-v unused
//
// A difference is the sum with the negative, in integers that wrap and in floats alike.
#include "target/atomic.h"
#include "sema/expression.h"
#include "sema/view.h"

namespace kiln::sema {

namespace {

struct AtomicRow {
  ast::Builtin builtin;
  target::Atomic kind;
};
constexpr AtomicRow kAtomicRows[] = {
#define KILN_ATOMIC(Name, ...) {ast::Builtin::kAtomic##Name, target::Atomic::k##Name},
#include "target/atomic.def"
#undef KILN_ATOMIC
    {ast::Builtin::kAtomicSub, target::Atomic::kAdd},
};

std::optional<target::Atomic> atomic_kind(ast::Builtin builtin) {
  for (const AtomicRow& row : kAtomicRows) {
    if (row.builtin == builtin) return row.kind;
  }
  return std::nullopt;
}

Operand no_atomic(Span span) {
  Operand out;
  out.span = span;
  return out;
}

// The buffer of the element, which threads can share; invalid after a report.
ir::ValueId atomic_target(Sema& sema, const ast::CallExpr& call) {
  const Span span = sema.ast[call.args[0]].span;
  const auto* element = sema.ast.as<ast::AtExpr>(call.args[0]);
  const auto refuse_target = [&](std::string_view what) {
    (void)sema.diags.report<diag::AtomicTarget>(span, call.name.text, what)
        .help("its first argument is an element: `{}(x.at(i), ...)`", call.name.text)
        .emit();
    return ir::ValueId{};
  };
  if (element == nullptr) return refuse_target(format("`{}`", sema.sources.text(span)));
  if (!check_own_block(sema, *element)) return {};
  const Operand base = evaluate_view(sema, element->base);
  if (base.is_error()) return {};
  if (sema.function.view_type(base.id).space == ir::Space::kLocal) {
    return refuse_target("local memory, which one thread has alone");
  }
  return base.id;
}

bool check_atomic_type(Sema& sema, const ast::CallExpr& call, target::Atomic kind, DType dtype) {
  if (target::supports(kind, dtype)) return true;
  const std::string types =
      join(target::info(kind).types, ", ", [](DType one) { return name(one); });
  (void)sema.diags.report<diag::AtomicType>(call.name.span, call.name.text, name(dtype), types)
      .help("keep the element in one of these types, or let one thread write it")
      .emit();
  return false;
}

std::optional<ir::ValueId> atomic_operand(Sema& sema, ast::ExprId id, DType dtype) {
  Operand operand = evaluate(sema, id);
  if (operand.is_error()) return std::nullopt;
  operand.span = sema.ast[id].span;
  return convert(sema, operand, dtype);
}

// The operation, here.
Operand make_atomic(Sema& sema, const ast::CallExpr& call, Span span, bool unused) {
  const target::Atomic kind = *atomic_kind(call.builtin);
  const ir::ValueId view = atomic_target(sema, call);
  if (!view.valid()) return no_atomic(span);
  const DType dtype = sema.function.view_type(view).dtype;
  if (!check_atomic_type(sema, call, kind, dtype)) return no_atomic(span);
  const auto& element = *sema.ast.as<ast::AtExpr>(call.args[0]);
  const auto index = element_index(sema, view, element.indices, sema.ast[call.args[0]].span);
  if (!index) return no_atomic(span);
  ir::Atomic made{.kind = kind, .view = view, .index = *index, .value = {}, .unused = unused};
  if (kind == target::Atomic::kCas) {
    const auto compare = atomic_operand(sema, call.args[1], dtype);
    if (!compare) return no_atomic(span);
    made.compare = *compare;
  }
  const auto value = atomic_operand(sema, call.args.back(), dtype);
  if (!value) return no_atomic(span);
  made.value = *value;
  if (call.builtin == ast::Builtin::kAtomicSub) {
    made.value =
        emit_value(sema, ir::Unary{ir::UnaryKind::kNegate, *value}, span, ir::ScalarType{dtype});
  }
  return make_scalar(emit_value(sema, std::move(made), span, ir::ScalarType{dtype}), dtype, span);
}

bool check_atomic_place(Sema& sema, const ast::CallExpr& call, Span span) {
  if (sema.apply) {
    refuse(sema, span, format("`{}` inside `apply`", call.name.text));
    return false;
  }
  return check_in_kernel(sema, span, "an atomic operation");
}

}  // namespace

Operand call_atomic(Sema& sema, const ast::CallExpr& call, Span span) {
  if (!check_atomic_place(sema, call, span)) return no_atomic(span);
  if (sema.place.level == ir::Level::kThread) return make_atomic(sema, call, span, false);
  refuse(sema, span, format("the value of `{}` outside of `: thread`", call.name.text));
  return no_atomic(span);
}

void run_atomic(Sema& sema, const ast::CallExpr& call, Span span) {
  if (!check_atomic_place(sema, call, span)) return;
  if (sema.place.level == ir::Level::kThread) {
    (void)make_atomic(sema, call, span, true);
    return;
  }
  const ir::OpId once = emit(sema, ir::Once{}, span);
  const ir::RegionId region = in_region(sema, [&] { (void)make_atomic(sema, call, span, true); });
  std::get<ir::Once>(sema.function.ops[once].data).body = region;
}

}  // namespace kiln::sema
