// Arithmetic and conversions (language: types and values, expressions).
//
// Integers that are known as an Expr stay one: `16 * b + t` costs no operation. Everything else
// becomes scalar operations in the promoted type.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "ir/functions.h"
#include "ir/integer.h"
#include "ir/prove.h"
#include "sema/expression.h"
#include "sema/literal.h"

namespace kiln::sema {

namespace {

struct OpRow {
  ast::BinaryOp op;
  ir::BinaryKind kind;
};
constexpr OpRow kRows[] = {
    {ast::BinaryOp::kOr, ir::BinaryKind::kLogicalOr},
    {ast::BinaryOp::kAnd, ir::BinaryKind::kLogicalAnd},
    {ast::BinaryOp::kEqual, ir::BinaryKind::kEq},
    {ast::BinaryOp::kNotEqual, ir::BinaryKind::kNe},
    {ast::BinaryOp::kLess, ir::BinaryKind::kLt},
    {ast::BinaryOp::kLessEqual, ir::BinaryKind::kLe},
    {ast::BinaryOp::kGreater, ir::BinaryKind::kGt},
    {ast::BinaryOp::kGreaterEqual, ir::BinaryKind::kGe},
    {ast::BinaryOp::kShiftLeft, ir::BinaryKind::kShl},
    {ast::BinaryOp::kShiftRight, ir::BinaryKind::kShr},
    {ast::BinaryOp::kAdd, ir::BinaryKind::kAdd},
    {ast::BinaryOp::kSubtract, ir::BinaryKind::kSub},
    {ast::BinaryOp::kMultiply, ir::BinaryKind::kMul},
    {ast::BinaryOp::kDivide, ir::BinaryKind::kDiv},
    {ast::BinaryOp::kRemainder, ir::BinaryKind::kRem},
    {ast::BinaryOp::kBitAnd, ir::BinaryKind::kAnd},
    {ast::BinaryOp::kBitOr, ir::BinaryKind::kOr},
    {ast::BinaryOp::kBitXor, ir::BinaryKind::kXor},
};

std::optional<ir::BinaryKind> kind_of(ast::BinaryOp op) {
  for (const OpRow& row : kRows) {
    if (row.op == op) return row.kind;
  }
  return std::nullopt;
}

bool needs_integers(ir::BinaryKind kind) {
  return kind == ir::BinaryKind::kRem || ir::class_of(kind) == ir::BinaryClass::kBits;
}

// Two integers known as Exprs, when the result is one too.
std::optional<Operand> combine_exprs(Sema& sema, ir::BinaryKind kind, const Operand& left,
                                     const Operand& right, Span span) {
  const ir::Expr& a = left.integer.value;
  const ir::Expr& b = right.integer.value;
  Operand out;
  if (kind == ir::BinaryKind::kAdd || kind == ir::BinaryKind::kSub) {
    out = make_int(kind == ir::BinaryKind::kAdd ? a + b : a - b, span);
    // `y - 1` is shifted but still tiles by #y.
    if (left.integer.bound && b.constant()) out.integer.bound = left.integer.bound;
    return out;
  }
  if (kind == ir::BinaryKind::kMul) return make_int(a * b, span);
  const auto x = a.constant();
  const auto y = b.constant();
  const bool divides = kind == ir::BinaryKind::kDiv || kind == ir::BinaryKind::kRem;
  if (divides && y && *y > 0) {
    // C truncates; rounding down is the same for what cannot be negative.
    const auto least = ir::minimum(sema.function, a);
    if (x) return make_int(ir::Expr(*ir::value_of(kind, DType::kS64, *x, *y)), span);
    if (least && *least >= 0) {
      out = make_int(kind == ir::BinaryKind::kDiv ? ir::floor_div(a, b) : ir::mod(a, b), span);
      out.integer.bound = left.integer.bound;
      return out;
    }
  }
  if (!x || !y || (divides && *y == 0)) return std::nullopt;
  if (divides && *y == -1) {  // the least number has no opposite
    return make_int(kind == ir::BinaryKind::kDiv ? ir::Expr(0) - a : ir::Expr(0), span);
  }
  if (kind == ir::BinaryKind::kShl) {  // a product, which may leave 64 bits
    const ir::Expr half(std::int64_t{1} << (*y / 2));
    return make_int(a * half * half * ir::Expr(*y % 2 + 1), span);
  }
  out = make_int(ir::Expr(*ir::value_of(kind, DType::kS64, *x, *y)), span);
  if (ir::is_comparison(kind) || ir::is_logical(kind)) out.dtype = DType::kBool;
  return out;
}

// a # b: a * #b + b, bounded by #a * #b.
Operand compose(Sema& sema, const Operand& left, const Operand& right, Span span) {
  for (const Operand* side : {&left, &right}) {
    if (side->kind == Operand::Kind::kInt && side->integer.bound) continue;
    (void)sema.diags.report<diag::BoundMissing>(side->span, sema.sources.text(side->span), "`#`")
        .help("both sides of `#` must be variables of `parallel`, `with` or `foreach`")
        .emit();
    return {};
  }
  const ir::Expr& inner = right.integer.bound->extent;
  Operand out = make_int(left.integer.value * inner + right.integer.value, span);
  out.integer.bound = Bound{left.integer.bound->extent * inner, std::nullopt};
  return out;
}

// x #+ n and its kin: the value stays, the bound changes.
Operand rebound(Sema& sema, ast::BinaryOp op, const Operand& left, const Operand& right,
                Span span) {
  const auto n = right.kind == Operand::Kind::kInt ? right.integer.value.constant() : std::nullopt;
  if (left.kind != Operand::Kind::kInt || !left.integer.bound || !n) {
    const Operand& culprit = n ? left : right;
    (void)sema.diags
        .report<diag::BoundMissing>(culprit.span, sema.sources.text(culprit.span),
                                    format("`{}`", spelling(op)))
        .help("the left side must be a bounded variable, the right side an integer literal")
        .emit();
    return {};
  }
  Operand out = left;
  out.span = span;
  ir::Expr& extent = out.integer.bound->extent;
  out.integer.bound->written_as = std::nullopt;
  if (op == ast::BinaryOp::kBoundAdd) extent = extent + *n;
  if (op == ast::BinaryOp::kBoundSubtract) extent = extent - *n;
  if (op == ast::BinaryOp::kBoundMultiply) extent = extent * *n;
  if (op == ast::BinaryOp::kBoundDivide && *n > 0) extent = ir::floor_div(extent, *n);
  if (op == ast::BinaryOp::kBoundRemainder && *n > 0) extent = ir::mod(extent, *n);
  return out;
}

bool is_rebound(ast::BinaryOp op) {
  return op >= ast::BinaryOp::kBoundSubtract && op <= ast::BinaryOp::kBoundRemainder;
}

// Element-wise on a tuple or shape and an integer, or two of equal rank.
Operand combine_lists(Sema& sema, ast::BinaryOp op, Span op_span, const Operand& left,
                      const Operand& right) {
  const bool left_list = !left.elements.empty();
  const bool right_list = !right.elements.empty();
  const std::size_t count = left_list ? left.elements.size() : right.elements.size();
  const bool fits = (!left_list || !right_list || left.elements.size() == right.elements.size()) &&
                    (left_list || left.kind == Operand::Kind::kInt) &&
                    (right_list || right.kind == Operand::Kind::kInt);
  Operand out;
  if (!fits) {
    (void)sema.diags
        .report<diag::OperandTypes>(op_span, spelling(op), describe(left, sema.function),
                                    describe(right, sema.function))
        .help("shapes and tuples combine with integers, or with one of the same rank")
        .emit();
    return out;
  }
  out.kind = left_list ? left.kind : right.kind;
  for (std::size_t i = 0; i < count; ++i) {
    Operand a = make_int(left_list ? left.elements[i].value : left.integer.value, left.span);
    Operand b = make_int(right_list ? right.elements[i].value : right.integer.value, right.span);
    a.integer.bound = left_list ? left.elements[i].bound : std::nullopt;
    b.integer.bound = right_list ? right.elements[i].bound : std::nullopt;
    const Operand element = combine(sema, op, op_span, a, b);
    if (element.is_error() || element.kind != Operand::Kind::kInt) return {};
    out.elements.push_back(element.integer);
  }
  return out;
}

bool represents(DType dtype, double number) { return round_to(dtype, number) == number; }

// Converting without loss: to a wider type of the same kind, or an integer to a float that holds
// it.
bool is_lossless(DType from, DType to) {
  if (from == to || from == DType::kBool) return true;
  const DTypeInfo& a = info(from);
  const DTypeInfo& b = info(to);
  if (a.kind == NumberKind::kFloat) {
    return b.kind == NumberKind::kFloat && a.mantissa_bits <= b.mantissa_bits && a.max <= b.max;
  }
  if (b.kind == NumberKind::kFloat) return a.bits <= b.mantissa_bits + 1;
  if (a.kind == b.kind) return a.bits <= b.bits;
  return a.kind == NumberKind::kUnsigned && a.bits < b.bits;
}

std::string significance_text(DType dtype) {
  const DTypeInfo& row = info(dtype);
  if (row.kind == NumberKind::kFloat) {
    return format("{} keeps {} significant bits", row.name, row.mantissa_bits + 1);
  }
  return format("{} holds integers from {}", row.name, range_text(dtype));
}

bool is_unsigned_index(DType dtype) { return dtype == DType::kU32 || dtype == DType::kU64; }

std::optional<ir::ValueId> convert_to(Sema& sema, const Operand& operand, DType dtype, bool warn) {
  const Span span = operand.span;
  if (operand.is_error()) return std::nullopt;
  if (!operand.is_number()) {
    (void)sema.diags
        .report<diag::NotAValue>(span, sema.sources.text(span), describe(operand, sema.function))
        .emit();
    return std::nullopt;
  }
  const ir::ScalarType type{dtype};
  if (warn && !check_literal(sema, operand, dtype)) return std::nullopt;
  const std::optional<double> constant = literal_number(operand);
  const bool lossless = constant ? represents(dtype, *constant) || std::isnan(*constant)
                                 : is_lossless(operand.dtype, dtype);
  const bool float_literal_to_float = operand.kind == Operand::Kind::kFloat && is_float(dtype);
  if (warn && !sema.guessed_type && !lossless && !(constant && float_literal_to_float)) {
    const std::string written(sema.sources.text(span));
    (void)sema.diags
        .report<diag::LossyConversion>(
            span, constant ? format("`{}`", written) : describe(operand, sema.function),
            name(dtype))
        .label(span, "{}", significance_text(dtype))
        .help("`__to<{}>({})` says that this is meant", name(dtype), sema.sources.text(span))
        .emit();
  }
  const bool exact_index = operand.kind == Operand::Kind::kInt && is_integer(dtype);
  if (constant && !(exact_index && (std::fabs(*constant) > 0x1p53 || !lossless))) {
    return emit_value(sema, ir::Const{round_to(dtype, *constant)}, span, type);
  }
  if (operand.kind == Operand::Kind::kInt) {
    // An index is computed in s32 or s64; any other type is a conversion of it. One without a sign
    // is that first, whose bits are those of the index.
    if (is_unsigned_index(operand.dtype) && dtype != operand.dtype) {
      const auto value = convert_to(sema, operand, operand.dtype, false);
      return emit_value(sema, ir::Cast{*value}, span, type);
    }
    const bool wide = size_bytes(operand.dtype) == 8 ||
                      (is_integer(dtype) && size_bytes(dtype) == 8) ||
                      (constant && !is_in_range(DType::kS32, operand));
    const DType index_type = wide ? DType::kS64 : DType::kS32;
    const ir::ValueId index =
        emit_value(sema, ir::Index{operand.integer.value}, span, ir::ScalarType{index_type});
    if (index_type == dtype) return index;
    return emit_value(sema, ir::Cast{index}, span, type);
  }
  if (operand.dtype == dtype) return operand.id;
  return emit_value(sema, ir::Cast{operand.id}, span, type);
}

// Whether an integer of 32 bits may not hold what the expression of integers is.
bool is_wide(const Operand& operand) {
  const DType narrow = operand.dtype == DType::kU32 ? DType::kU32 : DType::kS32;
  return size_bytes(operand.dtype) == 8 ||
         (operand.integer.value.constant() && !is_in_range(narrow, operand));
}

// The type in which two expressions of integers are computed.
DType type_of_index(const Operand& left, const Operand& right) {
  const bool wide = is_wide(left) || is_wide(right);
  const DType dtype = promote(left, right);
  if (wide) return dtype == DType::kU64 ? DType::kU64 : DType::kS64;
  return dtype == DType::kU32 ? DType::kU32 : DType::kS32;
}

}  // namespace

DType promote(const Operand& left, const Operand& right) {
  // A float literal that the other side's float type holds exactly takes that type.
  for (const auto& [literal, other] : {std::pair(&left, &right), std::pair(&right, &left)}) {
    if (literal->kind == Operand::Kind::kFloat && other->kind == Operand::Kind::kScalar &&
        is_float(other->dtype) && represents(other->dtype, literal->number)) {
      return other->dtype;
    }
  }
  const DTypeInfo& a = info(left.dtype);
  const DTypeInfo& b = info(right.dtype);
  const bool a_float = a.kind == NumberKind::kFloat;
  const bool b_float = b.kind == NumberKind::kFloat;
  if (a_float != b_float) return a_float ? a.dtype : b.dtype;
  if (a.dtype == DType::kBool) return b.dtype;
  if (b.dtype == DType::kBool) return a.dtype;
  // f16 and bf16 hold different numbers: both become f32.
  if (a_float && a.bits == b.bits && a.dtype != b.dtype) return DType::kF32;
  if (a.bits == b.bits) return a.kind == NumberKind::kUnsigned ? a.dtype : b.dtype;
  return a.bits > b.bits ? a.dtype : b.dtype;
}

std::optional<ir::ValueId> convert(Sema& sema, const Operand& operand, DType dtype) {
  return convert_to(sema, operand, dtype, true);
}

std::optional<ir::ValueId> convert_explicitly(Sema& sema, const Operand& operand, DType dtype) {
  return convert_to(sema, operand, dtype, false);
}

std::optional<ir::ValueId> keep_bits(Sema& sema, const Operand& operand, DType dtype) {
  if (operand.is_error()) return std::nullopt;
  const bool is_index = operand.kind == Operand::Kind::kInt;
  const DType own = is_index && !is_in_range(DType::kS32, operand) ? DType::kS64 : operand.dtype;
  const auto is_bool = [](DType type) { return info(type).kind == NumberKind::kBool; };
  if (operand.is_number() &&
      (info(own).bits != info(dtype).bits || is_bool(own) || is_bool(dtype))) {
    (void)sema.diags
        .report<diag::BitcastWidth>(operand.span, info(own).bits, name(own), name(dtype),
                                    info(dtype).bits)
        .help("`__to<{}>({})` converts the value", name(dtype), sema.sources.text(operand.span))
        .emit();
    return std::nullopt;
  }
  const auto value = convert_to(sema, operand, own, false);
  if (!value || own == dtype) return value;
  return emit_value(sema, ir::Bitcast{*value}, operand.span, ir::ScalarType{dtype});
}

std::optional<ir::ValueId> convert_to_bool(Sema& sema, const Operand& operand) {
  if (operand.is_error()) return std::nullopt;
  if (operand.kind == Operand::Kind::kScalar && operand.dtype == DType::kBool) return operand.id;
  const bool integer = operand.kind == Operand::Kind::kInt ||
                       (operand.kind == Operand::Kind::kScalar && is_integer(operand.dtype));
  if (!integer) {
    const std::string written(sema.sources.text(operand.span));
    (void)sema.diags.report<diag::ConditionNotBool>(operand.span, describe(operand, sema.function))
        .help_if(operand.kind == Operand::Kind::kEvent ? format("wait for it: `wait {};`", written)
                 : operand.is_number()                 ? format("compare it: `{} != 0`", written)
                                                       : "")
        .emit();
    return std::nullopt;
  }
  const Operand flag = combine(sema, ast::BinaryOp::kNotEqual, operand.span, operand,
                               make_int(ir::Expr(0), operand.span));
  if (flag.kind == Operand::Kind::kInt) {
    return emit_value(sema, ir::Const{flag.integer.value.is(0) ? 0.0 : 1.0}, operand.span,
                      ir::ScalarType{DType::kBool});
  }
  return flag.is_error() ? std::nullopt : std::optional(flag.id);
}

namespace {

Operand combine_scalars(Sema& sema, ast::BinaryOp op, Span op_span, const Operand& left,
                        const Operand& right) {
  const ir::BinaryKind kind = *kind_of(op);
  const Span span = cover(left.span, right.span);
  Operand error;
  error.span = span;
  if (ir::is_logical(kind)) {
    const auto a = convert_to_bool(sema, left);
    const auto b = convert_to_bool(sema, right);
    if (!a || !b) return error;
    return make_scalar(
        emit_value(sema, ir::Binary{kind, *a, *b}, span, ir::ScalarType{DType::kBool}),
        DType::kBool, span);
  }
  const bool integers = !is_float(left.dtype) && !is_float(right.dtype);
  if (!left.is_number() || !right.is_number() || (needs_integers(kind) && !integers)) {
    (void)sema.diags
        .report<diag::OperandTypes>(op_span, spelling(op), describe(left, sema.function),
                                    describe(right, sema.function))
        .label(left.span, "{}", describe(left, sema.function))
        .label(right.span, "{}", describe(right, sema.function))
        .emit();
    return error;
  }
  const DType dtype = promote(left, right);
  if (!check_literal(sema, left, dtype) || !check_literal(sema, right, dtype)) return error;
  const auto a = convert_explicitly(sema, left, dtype);
  const auto b = convert_explicitly(sema, right, dtype);
  if (!a || !b) return error;
  const DType result = ir::is_comparison(kind) ? DType::kBool : dtype;
  return make_scalar(emit_value(sema, ir::Binary{kind, *a, *b}, span, ir::ScalarType{result}),
                     result, span);
}

// Reports a shift by a constant that C++ gives no meaning.
bool check_shift(Sema& sema, ir::BinaryKind kind, const Operand& left, const Operand& right) {
  if (kind != ir::BinaryKind::kShl && kind != ir::BinaryKind::kShr) return true;
  const auto distance =
      right.kind == Operand::Kind::kInt ? right.integer.value.constant() : std::nullopt;
  if (!distance || is_float(left.dtype)) return true;
  const bool folded = left.kind == Operand::Kind::kInt && left.integer.value.constant();
  const DType common = promote(left, right);
  const DTypeInfo& type = info(folded && !is_unsigned_index(common) ? DType::kS64 : common);
  if (*distance >= 0 && *distance < type.bits) return true;
  (void)sema.diags.report<diag::ShiftRange>(right.span, *distance, type.name, type.bits)
      .label(left.span, "{}", describe(left, sema.function))
      .help("shift by 0 to {}", type.bits - 1)
      .emit();
  return false;
}

// Whether it has no sign and is to be seen as a number only when it is brought to its type.
bool may_be_wrapped(const Operand& operand) {
  return is_unsigned_index(operand.dtype) && !operand.integer.value.constant();
}

// Two constants of a type without a sign, in that type; nothing where an index, which is signed,
// does not hold one of them or the result.
std::optional<Operand> combine_unsigned(ir::BinaryKind kind, const Operand& left,
                                        const Operand& right, Span span) {
  const DType dtype = type_of_index(left, right);
  const ir::IntegerType type(dtype);
  const std::int64_t x = type.wrapped(*left.integer.value.constant());
  const std::int64_t y = type.wrapped(*right.integer.value.constant());
  const auto value = ir::value_of(kind, dtype, x, y);
  if (!value || x < 0 || y < 0 || *value < 0) return std::nullopt;
  Operand out = make_int(ir::Expr(*value), span);
  out.dtype = ir::is_comparison(kind) || ir::is_logical(kind) ? DType::kBool : dtype;
  return out;
}

// The product of two, of which one is u32, is no number that leaves 64 bits.
bool stays_short(const Operand& left, const Operand& right) {
  constexpr std::int64_t kFactorMax = std::int64_t{1} << 24;
  const ir::Expr product = left.integer.value * right.integer.value;
  return !product.overflowed() && std::ranges::all_of(product.terms(), [](const ir::Term& term) {
    return term.atoms.size() <= 1 && std::abs(term.coefficient) <= kFactorMax;
  });
}

// Numbers without a sign wrap and an Expr does not. Of u32 the bits of a sum, a difference and a
// product are the same, but what compares, divides or goes on in 64 bits must see wrapped numbers.
// Types below 32 bits wrap as well.
bool folds(ir::BinaryKind kind, const Operand& left, const Operand& right) {
  const DTypeInfo& type = info(promote(left, right));
  if (type.bits < 32 && type.kind != NumberKind::kBool) return false;
  const DType dtype = type_of_index(left, right);
  if (dtype == DType::kU64) return false;
  if (dtype == DType::kU32) {
    return kind == ir::BinaryKind::kAdd || kind == ir::BinaryKind::kSub ||
           (kind == ir::BinaryKind::kMul && stays_short(left, right));
  }
  return !may_be_wrapped(left) && !may_be_wrapped(right);
}

// Nothing where it takes an operation.
std::optional<Operand> combine_indices(Sema& sema, ir::BinaryKind kind, const Operand& left,
                                       const Operand& right, Span span) {
  if (left.kind != Operand::Kind::kInt || right.kind != Operand::Kind::kInt) return std::nullopt;
  const DType dtype = type_of_index(left, right);
  const bool constants = left.integer.value.constant() && right.integer.value.constant();
  if (constants && is_unsigned_index(dtype)) return combine_unsigned(kind, left, right, span);
  if (!folds(kind, left, right)) return std::nullopt;
  auto out = combine_exprs(sema, kind, left, right, span);
  if (out && out->dtype != DType::kBool) {
    const bool wide = !is_unsigned_index(dtype) && is_wide(*out);
    out->dtype = wide ? DType::kS64 : dtype;
  }
  return out;
}

}  // namespace

std::optional<Operand> extremum_of_indices(bool is_max, const Operand& left, const Operand& right,
                                           Span span) {
  if (left.kind != Operand::Kind::kInt || right.kind != Operand::Kind::kInt) return std::nullopt;
  const ir::Expr& a = left.integer.value;
  const ir::Expr& b = right.integer.value;
  if (may_be_wrapped(left) || may_be_wrapped(right)) return std::nullopt;
  const DType dtype = type_of_index(left, right);
  if (is_unsigned_index(dtype)) {
    const auto kind = is_max ? ir::BinaryKind::kMax : ir::BinaryKind::kMin;
    const bool constants = a.constant() && b.constant();
    return constants ? combine_unsigned(kind, left, right, span) : std::nullopt;
  }
  Operand out = make_int(is_max ? ir::max(a, b) : ir::min(a, b), span);
  out.dtype = dtype;
  return out;
}

Operand combine(Sema& sema, ast::BinaryOp op, Span op_span, Operand left, Operand right) {
  if (left.is_error() || right.is_error()) return {};
  const Span span = cover(left.span, right.span);
  const bool lists = left.kind == Operand::Kind::kTuple || left.kind == Operand::Kind::kShape ||
                     right.kind == Operand::Kind::kTuple || right.kind == Operand::Kind::kShape;
  if (lists) {
    Operand out = combine_lists(sema, op, op_span, left, right);
    out.span = span;
    return out;
  }
  if (op == ast::BinaryOp::kCompose) return compose(sema, left, right, span);
  if (is_rebound(op)) return rebound(sema, op, left, right, span);
  if (left.kind == Operand::Kind::kView && right.kind == Operand::Kind::kView) {
    refuse(sema, op_span, "arithmetic on whole buffers");
    return {};
  }
  const auto kind = kind_of(op);
  KILN_CHECK(kind.has_value(), "operator {} has no row", spelling(op));
  const bool divides = *kind == ir::BinaryKind::kDiv || *kind == ir::BinaryKind::kRem;
  const bool both_ints = !is_float(left.dtype) && !is_float(right.dtype);
  if (divides && both_ints && right.kind == Operand::Kind::kInt && right.integer.value.is(0)) {
    (void)sema.diags.report<diag::ConstantDivisionByZero>(op_span, sema.sources.text(left.span))
        .label(right.span, "this is 0")
        .emit();
    return {};
  }
  if (!check_shift(sema, *kind, left, right)) return {};
  if (auto folded = combine_indices(sema, *kind, left, right, span)) return *folded;
  return combine_scalars(sema, op, op_span, left, right);
}

ast::BinaryOp operator_of(ast::AssignOp op) {
  switch (op) {
    case ast::AssignOp::kSet:
    case ast::AssignOp::kAdd: return ast::BinaryOp::kAdd;
    case ast::AssignOp::kSubtract: return ast::BinaryOp::kSubtract;
    case ast::AssignOp::kMultiply: return ast::BinaryOp::kMultiply;
    case ast::AssignOp::kDivide: return ast::BinaryOp::kDivide;
    case ast::AssignOp::kRemainder: return ast::BinaryOp::kRemainder;
  }
  return ast::BinaryOp::kAdd;
}

}  // namespace kiln::sema
