#include "sema/expression.h"

#include <cmath>
#include <limits>

#include "ir/depend.h"
#include "ir/prove.h"
#include "sema/call.h"
#include "sema/constant.h"
#include "sema/cuda.h"
#include "sema/derived.h"
#include "sema/future.h"
#include "sema/lazy.h"
#include "sema/literal.h"
#include "sema/statement.h"
#include "sema/tile.h"
#include "sema/tile_array.h"
#include "sema/view.h"

namespace kiln::sema {

std::string describe(const Operand& operand, const ir::Function& function) {
  switch (operand.kind) {
    case Operand::Kind::kError: return "an error";
    case Operand::Kind::kInt: return operand.dtype == DType::kBool ? "a bool" : "an integer";
    case Operand::Kind::kFloat: return format("an {} number", name(operand.dtype));
    case Operand::Kind::kScalar:
      return operand.dtype == DType::kBool ? "a bool" : format("an {} value", name(operand.dtype));
    case Operand::Kind::kTuple: return format("a tuple of {}", operand.elements.size());
    case Operand::Kind::kShape: return format("a shape of {} dimensions", operand.elements.size());
    case Operand::Kind::kView:
      return format("a buffer of {}", name(function.view_type(operand.id).dtype));
    case Operand::Kind::kArray: return "an array of buffers";
    case Operand::Kind::kFragment: return "a register tile";
    case Operand::Kind::kEvent: return "an event";
    case Operand::Kind::kStream: return "a stream";
    case Operand::Kind::kString: return "a string";
    case Operand::Kind::kWildcard: return "`_`";
  }
  return "";
}

Operand make_int(ir::Expr value, Span span) {
  Operand out;
  out.kind = Operand::Kind::kInt;
  out.span = span;
  const auto constant = value.constant();
  const bool wide = constant && (*constant > INT32_MAX || *constant < INT32_MIN);
  out.dtype = wide ? DType::kS64 : DType::kS32;
  out.integer.value = std::move(value);
  return out;
}

Operand make_scalar(ir::ValueId id, DType dtype, Span span) {
  Operand out;
  out.kind = Operand::Kind::kScalar;
  out.span = span;
  out.dtype = dtype;
  out.id = id;
  return out;
}

namespace {

// `mc[i]` where a number or a view is needed: what it is, for the message that follows.
std::optional<Operand> subscripted_tile(Sema& sema, ast::ExprId id, Span span) {
  if (sema.ast.as<ast::SubscriptExpr>(id) == nullptr || !is_tile_name(sema, id)) {
    return std::nullopt;
  }
  const Symbol* symbol = named_tile(sema, id);
  Operand out;
  if (symbol != nullptr) out = symbol->operand;
  out.span = span;
  return out;
}

Operand error_operand(Span span) {
  Operand out;
  out.span = span;
  return out;
}

Operand make_bool(bool value, Span span) {
  Operand out = make_int(ir::Expr(value ? 1 : 0), span);
  out.dtype = DType::kBool;
  return out;
}

// The value of a constant of a signed type.
std::optional<std::int64_t> signed_constant(const Operand& operand) {
  const bool is_signed = info(operand.dtype).kind == NumberKind::kSigned;
  if (operand.kind != Operand::Kind::kInt || !is_signed) return std::nullopt;
  return operand.integer.value.constant();
}

constexpr std::uint64_t kIndexMax = std::numeric_limits<std::int64_t>::max();

struct Evaluator {
  Sema& sema;
  Span span;

  Operand operator()(const ast::ErrorExpr&) const { return error_operand(span); }
  Operand operator()(const ast::IntExpr& e) const {
    const ir::Expr bits(static_cast<std::int64_t>(e.value));
    // An index is signed: what only a u64 holds is a value of that type.
    if (e.value > kIndexMax) {
      const ir::ValueId index =
          emit_value(sema, ir::Index{bits}, span, ir::ScalarType{DType::kS64});
      return make_scalar(emit_value(sema, ir::Cast{index}, span, ir::ScalarType{DType::kU64}),
                         DType::kU64, span);
    }
    Operand out = make_int(bits, span);
    out.dtype = e.type;
    return out;
  }
  Operand operator()(const ast::FloatExpr& e) const {
    Operand out;
    out.kind = Operand::Kind::kFloat;
    out.span = span;
    out.dtype = type_of(sema, e.type);
    out.number = e.value;
    return out;
  }
  Operand operator()(const ast::BoolExpr& e) const { return make_bool(e.value, span); }
  Operand operator()(const ast::NullptrExpr&) const { return refused("`nullptr`"); }
  Operand operator()(const ast::StringExpr& e) const {
    Operand out;
    out.kind = Operand::Kind::kString;
    out.span = span;
    out.text = e.value;
    return out;
  }
  Operand operator()(const ast::WildcardExpr&) const {
    Operand out;
    out.kind = Operand::Kind::kWildcard;
    out.span = span;
    return out;
  }
  Operand operator()(const ast::NameExpr& e) const { return named(e.name); }
  Operand operator()(const ast::TypeExpr&) const { return refused("a type as a value"); }
  Operand operator()(const ast::UnaryExpr& e) const { return unary(e); }
  Operand operator()(const ast::BinaryExpr& e) const { return join(e, evaluate(sema, e.left)); }
  Operand operator()(const ast::ConditionalExpr& e) const {
    return evaluate_conditional(sema, e, span);
  }
  Operand operator()(const ast::MemberExpr& e) const { return member(e); }
  Operand operator()(const ast::AtExpr& e) const {
    if (auto element = fragment_element(sema, e, span)) return *element;
    const Operand base = evaluate_view(sema, e.base);
    if (base.is_error()) return error_operand(span);
    auto index = element_index(sema, base.id, e.indices, span);
    if (!index) return error_operand(span);
    auto block = element_block(sema, base.id, e);
    if (!block) return error_operand(span);
    const ir::ViewType& view = sema.function.view_type(base.id);
    if (sema.apply && view.space == ir::Space::kLocal) return refused("local memory in `apply`");
    const DType dtype = view.dtype;
    const ir::ValueId value = emit_value(
        sema, ir::Read{base.id, std::move(*index), std::move(*block)}, span, ir::ScalarType{dtype});
    return make_scalar(value, dtype, span);
  }
  Operand operator()(const ast::ElementExpr& e) const { return element(e); }
  Operand operator()(const ast::SubscriptExpr& e) const { return subscript_array(sema, e, span); }
  Operand operator()(const ast::DerivedIndexExpr& e) const { return derived_index(sema, e, span); }
  Operand operator()(const ast::ViewExpr& e) const { return apply_view_ops(sema, e, span); }
  Operand operator()(const ast::ShapeExpr& e) const { return list(e.items, Operand::Kind::kShape); }
  Operand operator()(const ast::TupleExpr& e) const { return list(e.items, Operand::Kind::kTuple); }
  Operand operator()(const ast::MeasureExpr& e) const { return measure(e); }
  Operand operator()(const ast::CastExpr& e) const {
    if (!e.type) return refused("a cast to a C++ type");
    const DType dtype = type_of(sema, *e.type);
    const Operand operand = evaluate(sema, e.operand);
    const auto value =
        e.keeps_bits ? keep_bits(sema, operand, dtype) : convert_explicitly(sema, operand, dtype);
    return value ? make_scalar(*value, dtype, span) : error_operand(span);
  }
  Operand operator()(const ast::CallExpr& e) const { return call(e); }
  Operand operator()(const ast::DeviceCallExpr& e) const {
    if (find_function(sema, e.name.text) != nullptr) {
      return evaluate_call(sema, {e.name, e.template_args, e.args}, span);
    }
    report_cuda_result(sema, e, span);
    return error_operand(span);
  }
  Operand operator()(const ast::FunctionCallExpr& e) const { return evaluate_call(sema, e, span); }
  Operand operator()(const ast::SelectExpr& e) const { return evaluate_select(sema, e, span); }
  Operand operator()(const ast::FragFillExpr&) const { return misplaced(); }
  Operand operator()(const ast::FragLoadExpr&) const { return misplaced(); }
  // A register tile where a number is wanted.
  Operand misplaced() const {
    (void)sema.diags.report<diag::NotAValue>(span, sema.sources.text(span), "a register tile")
        .help("give it a name: `x = {};`", sema.sources.text(span))
        .emit();
    return error_operand(span);
  }

  Operand join(const ast::BinaryExpr& e, Operand left) const {
    const bool logical = e.op == ast::BinaryOp::kAnd || e.op == ast::BinaryOp::kOr;
    if (logical) return evaluate_logical(sema, e, std::move(left), span);
    Operand right = evaluate(sema, e.right);
    Operand out = combine(sema, e.op, e.op_span, std::move(left), std::move(right));
    out.span = span;
    return out;
  }
  Operand refused(std::string_view construct) const {
    refuse(sema, span, construct);
    return error_operand(span);
  }
  Operand named(const std::string& name) const;
  Operand unary(const ast::UnaryExpr& e) const;
  Operand address(const ast::UnaryExpr& e) const;
  Operand complement(const ast::UnaryExpr& e) const;
  Operand step(const ast::UnaryExpr& e, ast::BinaryOp op) const;
  Operand member(const ast::MemberExpr& e) const;
  Operand element(const ast::ElementExpr& e) const;
  Operand list(const std::vector<ast::ExprId>& items, Operand::Kind kind) const;
  Operand measure(const ast::MeasureExpr& e) const;
  Operand call(const ast::CallExpr& e) const;
};

Operand Evaluator::named(const std::string& name) const {
  const Symbol* symbol = sema.scopes.find(name);
  if (symbol == nullptr) {
    constexpr std::int64_t kBuiltinExtent = 16;  // MMA_M, MMA_N, MMA_K of 16-bit types
    if (name == "MMA_M" || name == "MMA_N" || name == "MMA_K") {
      (void)sema.diags.report<diag::BuiltinMmaShape>(span, name, kBuiltinExtent)
          .help("`#define {} {}` says it yourself", name, kBuiltinExtent)
          .emit();
      Symbol builtin{Symbol::Kind::kOperand, make_int(ir::Expr(kBuiltinExtent), span), span};
      sema.scopes.declare_outermost(name, builtin);
      return builtin.operand;
    }
    const auto absent = sema.absent.find(name);
    (void)sema.diags.report<diag::UnknownName>(span, name)
        .help_if(absent == sema.absent.end()
                     ? did_you_mean(name, sema.scopes.names())
                     : format("this parameter exists where `{}` holds: use it under `if constexpr "
                              "({})`",
                              absent->second, absent->second))
        .emit();
    sema.scopes.declare(name, {Symbol::Kind::kOperand, error_operand(span), span});
    return error_operand(span);
  }
  const bool is_future = symbol->kind == Symbol::Kind::kMmaFuture;
  if (symbol->kind == Symbol::Kind::kHandle || is_future) return use_handle(sema, *symbol, span);
  if (symbol->kind == Symbol::Kind::kType) return refused("a type as a value");
  if (symbol->kind == Symbol::Kind::kTileArray) {
    report_whole_array(sema, *symbol, name, span);
    return error_operand(span);
  }
  Operand out = symbol->operand;
  out.span = span;
  if (symbol->kind == Symbol::Kind::kCell && !out.is_error()) {
    out.id = emit_value(sema, ir::Get{symbol->operand.id}, span, ir::ScalarType{out.dtype});
  }
  return out;
}

// `&x` is passed to CUDA, and is nothing to compute with or to print: no two runs have the same.
Operand Evaluator::address(const ast::UnaryExpr& e) const {
  if (evaluate(sema, e.operand).is_error()) return error_operand(span);
  (void)sema.diags.report<diag::NotAValue>(span, sema.sources.text(span), "an address")
      .help("`call` passes it to a function in CUDA: `call f({});`", sema.sources.text(span))
      .emit();
  return error_operand(span);
}

Operand Evaluator::unary(const ast::UnaryExpr& e) const {
  switch (e.op) {
    case ast::UnaryOp::kAddress: return address(e);
    case ast::UnaryOp::kPreIncrement:
    case ast::UnaryOp::kPostIncrement: return step(e, ast::BinaryOp::kAdd);
    case ast::UnaryOp::kPreDecrement:
    case ast::UnaryOp::kPostDecrement: return step(e, ast::BinaryOp::kSubtract);
    case ast::UnaryOp::kPlus: return evaluate(sema, e.operand);
    case ast::UnaryOp::kBound: {
      const Operand operand = evaluate(sema, e.operand);
      if (operand.is_error()) return operand;
      if (operand.kind == Operand::Kind::kInt && operand.integer.bound) {
        Operand out = make_int(operand.integer.bound->extent, span);
        out.written_as = operand.integer.bound->written_as;
        return out;
      }
      (void)sema.diags
          .report<diag::BoundMissing>(operand.span, sema.sources.text(operand.span), "`#`")
          .help("use a variable of `parallel`, `with` or `foreach`")
          .emit();
      return error_operand(span);
    }
    case ast::UnaryOp::kMinus: {
      if (is_least_index(sema, e)) {
        Operand least = make_int(ir::Expr(std::numeric_limits<std::int64_t>::min()), span);
        least.dtype = DType::kS64;
        return least;
      }
      Operand operand = evaluate(sema, e.operand);
      if (operand.kind == Operand::Kind::kFloat) {
        operand.number = -operand.number;
        operand.span = span;
        return operand;
      }
      // 0 - x would lose the sign of a zero.
      if (operand.kind == Operand::Kind::kScalar && is_float(operand.dtype)) {
        const ir::Unary negated{ir::UnaryKind::kNegate, operand.id};
        const ir::ScalarType type{operand.dtype};
        return make_scalar(emit_value(sema, negated, span, type), operand.dtype, span);
      }
      return combine(sema, ast::BinaryOp::kSubtract, e.op_span, make_int(ir::Expr(0), span),
                     std::move(operand));
    }
    case ast::UnaryOp::kNot:
    case ast::UnaryOp::kComplement: return complement(e);
  }
  return error_operand(span);
}

// `!x` and `~x`.
Operand Evaluator::complement(const ast::UnaryExpr& e) const {
  const Operand operand = evaluate(sema, e.operand);
  if (operand.is_error()) return operand;
  const bool is_not = e.op == ast::UnaryOp::kNot;
  if (const auto number = is_not ? std::nullopt : signed_constant(operand)) {
    Operand out = make_int(ir::Expr(~*number), span);
    out.dtype = operand.dtype;
    return out;
  }
  const auto value =
      is_not ? convert_to_bool(sema, operand) : convert(sema, operand, operand.dtype);
  if (!value) return error_operand(span);
  const DType dtype = is_not ? DType::kBool : operand.dtype;
  if (!is_not && !is_integer(dtype)) {
    (void)sema.diags
        .report<diag::NotAnInteger>(span, "the operand of `~`", describe(operand, sema.function))
        .emit();
    return error_operand(span);
  }
  const auto kind = is_not ? ir::UnaryKind::kNot : ir::UnaryKind::kBitNot;
  return make_scalar(emit_value(sema, ir::Unary{kind, *value}, span, ir::ScalarType{dtype}), dtype,
                     span);
}

// `i++` and its kin: updates the cell; the value is the old one for the postfix forms.
Operand Evaluator::step(const ast::UnaryExpr& e, ast::BinaryOp op) const {
  const auto* target = sema.ast.as<ast::NameExpr>(e.operand);
  const Symbol* symbol = target == nullptr ? nullptr : sema.scopes.find(target->name);
  Operand before = evaluate(sema, e.operand);
  if (before.is_error()) return before;
  if (symbol == nullptr || symbol->kind != Symbol::Kind::kCell) {
    (void)sema.diags
        .report<diag::ImmutableAssigned>(before.span, sema.sources.text(before.span), "immutable")
        .help("declare it `mutable int`")
        .emit();
    return error_operand(span);
  }
  const ir::ValueId cell = symbol->operand.id;
  const DType dtype = before.dtype;
  Operand after = combine(sema, op, e.op_span, before, make_int(ir::Expr(1), span));
  const auto value = convert(sema, after, dtype);
  if (!value) return error_operand(span);
  emit(sema, ir::Set{cell, *value}, span);
  const bool prefix = e.op == ast::UnaryOp::kPreIncrement || e.op == ast::UnaryOp::kPreDecrement;
  return prefix ? make_scalar(*value, dtype, span) : before;
}

Operand Evaluator::member(const ast::MemberExpr& e) const {
  if (e.member == ast::Member::kMdata) {
    refuse_packing(sema, span, "`.mdata`");
    return error_operand(span);
  }
  Operand base = evaluate_view(sema, e.base);
  if (base.is_error() || e.member == ast::Member::kData) return base;
  Operand out;
  out.kind = Operand::Kind::kShape;
  out.span = span;
  for (const ir::Expr& extent : sema.function.view_type(base.id).shape) {
    out.elements.push_back({extent, std::nullopt});
  }
  return out;
}

Operand Evaluator::element(const ast::ElementExpr& e) const {
  const auto* callee = sema.ast.as<ast::NameExpr>(e.base);
  if (callee != nullptr && sema.scopes.find(callee->name) == nullptr) {
    report_unknown_function(sema, {callee->name, sema.ast[e.base].span}, e.indices);
    return error_operand(span);
  }
  const Operand base = evaluate(sema, e.base);
  if (base.is_error()) return base;
  if (e.indices.size() != 1) return refused("an element of several positions");
  const auto position = evaluate_constant(sema, e.indices[0], "the position");
  if (!position) return error_operand(span);
  if (base.kind == Operand::Kind::kTuple || base.kind == Operand::Kind::kShape) {
    return element_of(sema, base, *position, {sema.ast[e.indices[0]].span, span});
  }
  if (base.kind == Operand::Kind::kInt && base.integer.bound) {
    const ir::Expr& extent = base.integer.bound->extent;
    Operand out = make_int(*position < 0 ? extent + *position : ir::Expr(*position), span);
    out.integer.bound = base.integer.bound;
    return out;
  }
  (void)sema.diags
      .report<diag::BoundMissing>(base.span, sema.sources.text(base.span), "`(i)` after it")
      .emit();
  return error_operand(span);
}

Operand Evaluator::list(const std::vector<ast::ExprId>& items, Operand::Kind kind) const {
  auto elements = evaluate_list(sema, items, "an element of the list");
  if (!elements) return error_operand(span);
  Operand out;
  out.kind = kind;
  out.span = span;
  for (IndexItem& item : *elements) {
    if (!item.element) {
      (void)sema.diags.report<diag::WildcardMisplaced>(item.span).emit();
      return error_operand(span);
    }
    out.elements.push_back(std::move(*item.element));
  }
  return out;
}

Operand Evaluator::measure(const ast::MeasureExpr& e) const {
  if (const auto* type = sema.ast.as<ast::TypeExpr>(e.operand)) {
    return make_int(ir::Expr(size_bytes(type_of(sema, type->type))), span);
  }
  Operand operand = evaluate(sema, e.operand);
  if (operand.is_error()) return operand;
  ir::Expr product = 1;
  if (operand.kind == Operand::Kind::kView) {
    for (const ir::Expr& extent : sema.function.view_type(operand.id).shape) {
      product = product * extent;
    }
    return make_int(product, span);
  }
  if (operand.kind != Operand::Kind::kShape && operand.kind != Operand::Kind::kTuple) {
    (void)sema.diags
        .report<diag::NotAValue>(operand.span, sema.sources.text(operand.span),
                                 describe(operand, sema.function))
        .emit();
    return error_operand(span);
  }
  for (const Element& element : operand.elements) product = product * element.value;
  return make_int(product, span);
}

Operand Evaluator::call(const ast::CallExpr& e) const {
  if (e.builtin == ast::Builtin::kNone) {  // `ns::f(x)`
    report_unknown_function(sema, e.name, e.args);
    return error_operand(span);
  }
  const bool of_tiles =
      e.builtin >= ast::Builtin::kReduceMax && e.builtin <= ast::Builtin::kTileIndex;
  if (of_tiles) return misplaced();
  if (e.builtin == ast::Builtin::kAny) return vote_of_warp(sema, e, span);
  if (ast::is_atomic(e.builtin)) return call_atomic(sema, e, span);
  const bool is_extremum = e.builtin == ast::Builtin::kMax || e.builtin == ast::Builtin::kMin;
  if (is_extremum) {
    Operand left = evaluate(sema, e.args[0]);
    Operand right = evaluate(sema, e.args[1]);
    if (left.is_error() || right.is_error()) return error_operand(span);
    const bool is_max = e.builtin == ast::Builtin::kMax;
    if (auto index = extremum_of_indices(is_max, left, right, span)) return *index;
    const DType dtype = promote(left, right);
    // An index becomes one without a sign unsaid, as beside an operator.
    const auto converted = [&](const Operand& operand) {
      const bool is_index =
          operand.kind == Operand::Kind::kInt && !operand.integer.value.constant();
      return is_index && !is_float(dtype) ? convert_explicitly(sema, operand, dtype)
                                          : convert(sema, operand, dtype);
    };
    const auto a = converted(left);
    const auto b = converted(right);
    if (!a || !b) return error_operand(span);
    const auto kind = is_max ? ir::BinaryKind::kMax : ir::BinaryKind::kMin;
    return make_scalar(emit_value(sema, ir::Binary{kind, *a, *b}, span, ir::ScalarType{dtype}),
                       dtype, span);
  }
  const bool is_integer_function = e.builtin == ast::Builtin::kCdiv ||
                                   e.builtin == ast::Builtin::kAlignUp ||
                                   e.builtin == ast::Builtin::kAlignDown;
  if (!is_integer_function) {
    auto result = call_function(sema, e, span);
    return result ? *result : refused(format("`{}`", e.name.text));
  }
  const auto a = evaluate_index(sema, e.args[0], format("the first argument of `{}`", e.name.text));
  const auto b =
      evaluate_index(sema, e.args[1], format("the second argument of `{}`", e.name.text));
  if (!a || !b) return error_operand(span);
  const auto divisor = b->value.constant();
  if (divisor && *divisor == 0) {
    (void)sema.diags
        .report<diag::ConstantDivisionByZero>(sema.ast[e.args[1]].span,
                                              sema.sources.text(sema.ast[e.args[0]].span))
        .emit();
    return error_operand(span);
  }
  if (divisor && *divisor < 0) {
    (void)sema.diags
        .report<diag::ExtentNotPositive>(sema.ast[e.args[1]].span, "the divisor", *divisor)
        .emit();
    return error_operand(span);
  }
  if (e.builtin == ast::Builtin::kAlignUp) {
    return make_int(ir::cdiv(a->value, b->value) * b->value, span);
  }
  if (e.builtin == ast::Builtin::kAlignDown) {
    return make_int(ir::floor_div(a->value, b->value) * b->value, span);
  }
  Operand out = make_int(ir::cdiv(a->value, b->value), span);
  out.written_as = CDivParts{a->value, b->value};
  return out;
}

// Reports an integer that cannot be kept.
Operand kept(Sema& sema, Operand value, Span span) {
  if (value.kind != Operand::Kind::kInt || !value.integer.value.overflowed()) return value;
  if (value.integer.value.too_long()) {
    (void)sema.diags.report<diag::FormulaTooLong>(span, ir::kExprSizeMax)
        .help("keep a part of it in a `mutable int`, which is computed once")
        .emit();
  } else {
    (void)sema.diags.report<diag::ExtentOverflow>(span, "this integer").emit();
  }
  return error_operand(span);
}

}  // namespace

// `a + b + c` is ((a + b) + c), as deep as it is long: such a chain is gone through in a loop.
Operand evaluate(Sema& sema, ast::ExprId id) {
  std::vector<ast::ExprId> chain;  // the last operation first
  if (id.valid()) {
    if (auto element = tile_element(sema, id, sema.ast[id].span)) return *element;
  }
  while (id.valid()) {
    const auto* binary = sema.ast.as<ast::BinaryExpr>(id);
    if (binary == nullptr) break;
    chain.push_back(id);
    id = binary->left;
  }
  Operand out;
  if (id.valid()) {
    const ast::Expr& first = sema.ast[id];
    auto element = tile_element(sema, id, first.span);
    if (!element) element = subscripted_tile(sema, id, first.span);
    out = element ? std::move(*element)
                  : kept(sema, kiln::visit(Evaluator{sema, first.span}, first.node), first.span);
  }
  for (; !chain.empty(); chain.pop_back()) {
    const Span span = sema.ast[chain.back()].span;
    const auto& binary = *sema.ast.as<ast::BinaryExpr>(chain.back());
    out = kept(sema, Evaluator{sema, span}.join(binary, std::move(out)), span);
  }
  return out;
}

std::optional<Element> to_index(Sema& sema, const Operand& operand, std::string_view what) {
  if (operand.is_error()) return std::nullopt;
  if (operand.kind == Operand::Kind::kInt && operand.dtype != DType::kBool) return operand.integer;
  if (is_beyond_indices(sema, operand)) {
    (void)sema.diags
        .report<diag::LiteralRange>(operand.span,
                                    format("{}, `{}`,", what, sema.sources.text(operand.span)),
                                    name(DType::kS64), range_text(DType::kS64))
        .emit();
    return std::nullopt;
  }
  if (operand.kind == Operand::Kind::kScalar && is_integer(operand.dtype)) {
    const auto earlier = ir::bound_before(sema.function, sema.regions.back(), operand.id);
    if (earlier) return Element{ir::Expr::var(*earlier), std::nullopt};
    const ir::VarId var = add_var(sema, "n", ir::VarKind::kBound, ir::Expr(0), operand.span);
    emit(sema, ir::Bind{var, operand.id}, operand.span);
    return Element{ir::Expr::var(var), std::nullopt};
  }
  (void)sema.diags.report<diag::NotAnInteger>(operand.span, what, describe(operand, sema.function))
      .emit();
  return std::nullopt;
}

std::optional<Element> evaluate_index(Sema& sema, ast::ExprId id, std::string_view what) {
  return to_index(sema, evaluate(sema, id), what);
}

std::optional<std::vector<IndexItem>> evaluate_list(Sema& sema, const std::vector<ast::ExprId>& ids,
                                                    std::string_view what) {
  std::vector<IndexItem> out;
  bool failed = false;
  for (ast::ExprId id : ids) {
    const Operand operand = evaluate(sema, id);
    if (operand.kind == Operand::Kind::kWildcard) {
      out.push_back({std::nullopt, operand.span});
    } else if (operand.kind == Operand::Kind::kTuple || operand.kind == Operand::Kind::kShape) {
      for (const Element& element : operand.elements) out.push_back({element, operand.span});
    } else {
      auto element = to_index(sema, operand, what);
      failed = failed || !element;
      if (element) out.push_back({std::move(element), sema.ast[id].span});
    }
  }
  if (failed) return std::nullopt;
  return out;
}

std::optional<std::vector<Element>> evaluate_extents(Sema& sema,
                                                     const std::vector<ast::ExprId>& ids,
                                                     std::string_view what) {
  auto items = evaluate_list(sema, ids, what);
  if (!items) return std::nullopt;
  std::vector<Element> out;
  for (IndexItem& item : *items) {
    if (!item.element) {
      (void)sema.diags.report<diag::WildcardMisplaced>(item.span).emit();
      return std::nullopt;
    }
    const auto constant = item.element->value.constant();
    if (constant && *constant <= 0) {
      (void)sema.diags.report<diag::ExtentNotPositive>(item.span, what, *constant).emit();
      return std::nullopt;
    }
    out.push_back(std::move(*item.element));
  }
  return out;
}

ast::ExprId without_subscripts(const Sema& sema, ast::ExprId id, std::vector<ast::ExprId>& items) {
  while (const auto* subscript = sema.ast.as<ast::SubscriptExpr>(id)) {
    items.insert(items.begin(), subscript->items.begin(), subscript->items.end());
    id = subscript->base;
  }
  return id;
}

std::optional<std::int64_t> evaluate_constant(Sema& sema, ast::ExprId id, std::string_view what) {
  const auto element = evaluate_index(sema, id, what);
  if (!element) return std::nullopt;
  if (const auto constant = element->value.constant()) return constant;
  auto report = sema.diags.report<diag::ExtentNotConstant>(sema.ast[id].span, what,
                                                           text(sema, element->value));
  // The variable of a loop that would be written out, were it not for that.
  std::vector<ir::VarId> vars;
  element->value.collect_vars(vars);
  for (const ir::VarId var : vars) {
    const auto obstacle = sema.obstacles.find(var);
    if (obstacle == sema.obstacles.end()) continue;
    std::move(report).label(sema.function.vars[var].span, "{}", obstacle->second);
    break;
  }
  std::move(report).emit();
  return std::nullopt;
}

}  // namespace kiln::sema
