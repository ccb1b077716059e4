// Mathematical functions: `__exp(x)` and its like, some of them made of others.
//
//   __sigmoid(x)    =>  1 / (1 + exp(-x))
//   __gelu(x)       =>  x * (erf(x * sqrt(1/2)) + 1) / 2
//   __softplus(x)   =>  max(x, 0) + log1p(exp(-fabs(x)))
//   __isfinite(x)   =>  fabs(x) < infinity
//   __fmaf(a, b, c) =>  an operation of its own: rounded once
//
// Operands are promoted to one type, as those of an operator. What is smaller than f32 is computed
// in f32 and rounded.
#include "ir/functions.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sema/expression.h"
#include "sema/literal.h"

namespace kiln::sema {

namespace {

using ir::BinaryKind;
using ir::UnaryKind;
using ir::ValueId;

// Builds the value of one call, in the type it is computed in: f32, or f64 for f64.
class Function {
 public:
  Function(Sema& sema, Span span, DType dtype) : sema_(sema), span_(span), dtype_(dtype) {}

  // Nothing for what is no function of floats.
  std::optional<ValueId> value(ast::Builtin builtin, const std::vector<ValueId>& x) {
    for (const UnaryRow& row : kUnary) {
      if (row.builtin == builtin) return of(row.kind, x[0]);
    }
    for (const BinaryRow& row : kBinary) {
      if (row.builtin == builtin) return join(row.kind, x[0], x[1]);
    }
    if (builtin == ast::Builtin::kSigmoid) return sigmoid(x[0]);
    if (builtin == ast::Builtin::kGelu) return gelu(x[0]);
    if (builtin == ast::Builtin::kSoftplus) return softplus(x[0]);
    if (builtin == ast::Builtin::kIsFinite) return is_finite(x[0]);
    if (builtin == ast::Builtin::kFma) {
      return make(ir::Fma{x[0], x[1], x[2]}, dtype_);
    }
    return std::nullopt;
  }

 private:
  struct UnaryRow {
    ast::Builtin builtin;
    UnaryKind kind;
  };
  static constexpr UnaryRow kUnary[] = {
#define KILN_FUNCTION(Name, ...) {ast::Builtin::k##Name, UnaryKind::k##Name},
#include "kiln/device/function.def"
  };
  struct BinaryRow {
    ast::Builtin builtin;
    BinaryKind kind;
  };
  static constexpr BinaryRow kBinary[] = {
#define KILN_FUNCTION_OF_TWO(Name, ...) {ast::Builtin::k##Name, BinaryKind::k##Name},
#include "kiln/device/function.def"
  };

  ValueId make(ir::OpData data, DType dtype) {
    return emit_value(sema_, std::move(data), span_, ir::ScalarType{dtype});
  }
  ValueId of(UnaryKind kind, ValueId x) { return make(ir::Unary{kind, x}, dtype_); }
  ValueId number(double value) { return make(ir::Const{value}, dtype_); }
  ValueId join(BinaryKind kind, ValueId left, ValueId right) {
    const DType result = ir::is_comparison(kind) ? DType::kBool : dtype_;
    return make(ir::Binary{kind, left, right}, result);
  }

  ValueId sigmoid(ValueId x) {
    const ValueId power = of(UnaryKind::kExp, of(UnaryKind::kNegate, x));
    const ValueId one = number(1);
    return join(BinaryKind::kDiv, one, join(BinaryKind::kAdd, one, power));
  }

  ValueId gelu(ValueId x) {
    const ValueId scaled = join(BinaryKind::kMul, x, number(round_to(dtype_, std::sqrt(0.5))));
    const ValueId one = number(1);
    const ValueId share = join(BinaryKind::kAdd, of(UnaryKind::kErf, scaled), one);
    const ValueId half = join(BinaryKind::kMul, x, number(0.5));
    return join(BinaryKind::kMul, half, share);
  }

  // log(1 + exp(x)), which is neither infinite where x is large nor 0 where it is small.
  ValueId softplus(ValueId x) {
    const ValueId small = of(UnaryKind::kExp, of(UnaryKind::kNegate, of(UnaryKind::kFabs, x)));
    const ValueId ramp = join(BinaryKind::kMax, x, number(0));
    return join(BinaryKind::kAdd, ramp, of(UnaryKind::kLog1p, small));
  }

  ValueId is_finite(ValueId x) {
    const ValueId infinity = number(std::numeric_limits<double>::infinity());
    return join(BinaryKind::kLt, of(UnaryKind::kFabs, x), infinity);
  }

  Sema& sema_;
  Span span_;
  DType dtype_;
};

bool is_float_value(const Operand& operand) {
  return operand.kind == Operand::Kind::kFloat ||
         (operand.kind == Operand::Kind::kScalar && is_float(operand.dtype));
}

// The type of all operands together: a literal takes that of a value.
Operand promoted(const std::vector<Operand>& operands) {
  Operand out = operands[0];
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const DType dtype = promote(out, operands[i]);
    if (out.kind != Operand::Kind::kScalar) out = operands[i];
    out.dtype = dtype;
  }
  return out;
}

std::optional<std::vector<ValueId>> converted(Sema& sema, const std::vector<Operand>& operands,
                                              DType common, DType computed) {
  std::vector<ValueId> out;
  for (const Operand& operand : operands) {
    if (!check_literal(sema, operand, common)) return std::nullopt;
    const auto x = convert_explicitly(sema, operand, computed);
    if (!x) return std::nullopt;
    out.push_back(*x);
  }
  return out;
}

constexpr ast::Builtin kFunctions[] = {
#define KILN_FUNCTION(Name, ...) ast::Builtin::k##Name,
#define KILN_FUNCTION_OF_TWO(Name, ...) ast::Builtin::k##Name,
#include "kiln/device/function.def"
    ast::Builtin::kSigmoid,  ast::Builtin::kGelu, ast::Builtin::kSoftplus,
    ast::Builtin::kIsFinite, ast::Builtin::kFma,
};

// The operands, of which one at least is a float; an error where they are other numbers, nothing
// where they are no numbers.
std::optional<std::vector<Operand>> operands_of(Sema& sema, const ast::CallExpr& call, Span span,
                                                bool& wrong) {
  std::vector<Operand> out;
  const Operand* other = nullptr;
  for (const ast::ExprId arg : call.args) {
    out.push_back(evaluate(sema, arg));
    wrong = wrong || out.back().is_error();
  }
  if (wrong) return std::nullopt;
  for (const Operand& operand : out) {
    if (!operand.is_number()) return std::nullopt;
    if (other == nullptr && !is_float_value(operand)) other = &operand;
  }
  if (std::ranges::any_of(out, is_float_value)) return out;
  refuse(sema, span, format("`{}` of {}", call.name.text, describe(*other, sema.function)));
  wrong = true;
  return std::nullopt;
}

}  // namespace

std::optional<Operand> call_function(Sema& sema, const ast::CallExpr& call, Span span) {
  if (std::ranges::find(kFunctions, call.builtin) == std::end(kFunctions)) return std::nullopt;
  Operand error;
  error.span = span;
  bool wrong = false;
  const auto operands = operands_of(sema, call, span, wrong);
  if (wrong) return error;
  if (!operands) return std::nullopt;
  const Operand common = promoted(*operands);
  const bool fuses = call.builtin == ast::Builtin::kFma &&
                     (common.dtype == DType::kF16 || common.dtype == DType::kBF16);
  const bool in_own_type =
      common.kind == Operand::Kind::kScalar && (common.dtype == DType::kF64 || fuses);
  const DType computed = in_own_type ? common.dtype : DType::kF32;
  const auto x = converted(sema, *operands, common.dtype, computed);
  if (!x) return error;
  const auto value = Function(sema, span, computed).value(call.builtin, *x);
  if (!value) return std::nullopt;
  if (call.builtin == ast::Builtin::kIsFinite) return make_scalar(*value, DType::kBool, span);
  const Operand result = make_scalar(*value, computed, span);
  if (common.kind != Operand::Kind::kScalar || common.dtype == computed) return result;
  const auto narrow = convert_explicitly(sema, result, common.dtype);
  return narrow ? make_scalar(*narrow, common.dtype, span) : error;
}

}  // namespace kiln::sema
