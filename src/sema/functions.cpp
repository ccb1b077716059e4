// Mathematical functions: `__exp(x)` and its like, some of them made of others.
//
//   __sigmoid(x)  =>  1 / (1 + exp(-x))
//   __gelu(x)     =>  x * (erf(x * sqrt(1/2)) + 1) / 2
#include <cmath>

#include "sema/expression.h"

namespace kiln::sema {

namespace {

// Builds the value of one call, in the type it is computed in: f32, or f64 for f64.
class Function {
 public:
  Function(Sema& sema, Span span, DType dtype) : sema_(sema), span_(span), dtype_(dtype) {}

  ir::ValueId of(ir::UnaryKind kind, ir::ValueId x) { return make(ir::Unary{kind, x}); }
  ir::ValueId number(double value) { return make(ir::Const{value}); }
  ir::ValueId join(ir::BinaryKind kind, ir::ValueId left, ir::ValueId right) {
    return make(ir::Binary{kind, left, right});
  }

  // Nothing for a function that is not there yet.
  std::optional<ir::ValueId> value(ast::Builtin builtin, ir::ValueId x) {
    struct Row {
      ast::Builtin builtin;
      ir::UnaryKind kind;
    };
    constexpr Row kRows[] = {
#define KILN_FUNCTION(Name, ...) {ast::Builtin::k##Name, ir::UnaryKind::k##Name},
#include "kiln/device/function.def"
#undef KILN_FUNCTION
    };
    for (const Row& row : kRows) {
      if (row.builtin == builtin) return of(row.kind, x);
    }
    if (builtin == ast::Builtin::kFabs) {
      return join(ir::BinaryKind::kMax, x, of(ir::UnaryKind::kNegate, x));
    }
    if (builtin == ast::Builtin::kSigmoid) return sigmoid(x);
    if (builtin == ast::Builtin::kGelu) return gelu(x);
    return std::nullopt;
  }

 private:
  ir::ValueId make(ir::OpData data) {
    return emit_value(sema_, std::move(data), span_, ir::ScalarType{dtype_});
  }

  ir::ValueId sigmoid(ir::ValueId x) {
    const ir::ValueId power = of(ir::UnaryKind::kExp, of(ir::UnaryKind::kNegate, x));
    const ir::ValueId one = number(1);
    return join(ir::BinaryKind::kDiv, one, join(ir::BinaryKind::kAdd, one, power));
  }

  ir::ValueId gelu(ir::ValueId x) {
    const ir::ValueId scaled =
        join(ir::BinaryKind::kMul, x, number(round_to(dtype_, std::sqrt(0.5))));
    const ir::ValueId share =
        join(ir::BinaryKind::kAdd, of(ir::UnaryKind::kErf, scaled), number(1));
    const ir::ValueId half = join(ir::BinaryKind::kMul, x, number(0.5));
    return join(ir::BinaryKind::kMul, half, share);
  }

  Sema& sema_;
  Span span_;
  DType dtype_;
};

}  // namespace

std::optional<Operand> call_function(Sema& sema, const ast::CallExpr& call, Span span) {
  if (call.args.size() != 1 || call.builtin == ast::Builtin::kNone) return std::nullopt;
  const std::size_t before = sema.function.ops.size();
  const Operand operand = evaluate(sema, call.args[0]);
  Operand error;
  error.span = span;
  if (operand.is_error()) return error;
  const bool is_float_value = operand.kind == Operand::Kind::kFloat ||
                              (operand.kind == Operand::Kind::kScalar && is_float(operand.dtype));
  if (!is_float_value) {
    if (before != sema.function.ops.size() || operand.is_number()) {
      refuse(sema, span, format("`{}` of {}", call.name.text, describe(operand, sema.function)));
      return error;
    }
    return std::nullopt;
  }
  const bool is_double = operand.kind == Operand::Kind::kScalar && operand.dtype == DType::kF64;
  const DType computed = is_double ? DType::kF64 : DType::kF32;
  const auto x = convert_explicitly(sema, operand, computed);
  if (!x) return error;
  const auto value = Function(sema, span, computed).value(call.builtin, *x);
  if (!value) return std::nullopt;
  const Operand result = make_scalar(*value, computed, span);
  if (operand.kind != Operand::Kind::kScalar || operand.dtype == computed) return result;
  const auto narrow = convert_explicitly(sema, result, operand.dtype);
  return narrow ? make_scalar(*narrow, operand.dtype, span) : error;
}

}  // namespace kiln::sema
