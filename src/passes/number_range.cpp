#include "passes/number_range.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>

namespace kiln::passes {

namespace {

using ir::Expr;
using Range = std::optional<NumberRange>;

// Of the values at a range's ends; none where one has left 64 bits.
Range around(std::initializer_list<Expr> ends) {
  Range out;
  for (const Expr& end : ends) {
    const auto value = end.constant();
    if (!value) return std::nullopt;
    if (!out) out = NumberRange{*value, *value};
    out->least = std::min(out->least, *value);
    out->largest = std::max(out->largest, *value);
  }
  return out;
}

Range product(const NumberRange& a, const NumberRange& b) {
  return around({Expr(a.least) * Expr(b.least), Expr(a.least) * Expr(b.largest),
                 Expr(a.largest) * Expr(b.least), Expr(a.largest) * Expr(b.largest)});
}

Range parameter(const ir::Function& function, ir::VarId var) {
  const auto of_var = [&](const ir::Param& param) { return param.var == var; };
  const auto param = std::ranges::find_if(function.params, of_var);
  if (param == function.params.end()) return std::nullopt;
  const auto* scalar = std::get_if<ir::ScalarType>(&function.type(param->value));
  return scalar == nullptr ? std::nullopt : numbers_of(scalar->dtype);
}

Range of_var(const ir::Function& function, ir::VarId id) {
  const ir::Var& var = function.vars[id];
  if (var.kind == ir::VarKind::kDim) return NumberRange{1, INT32_MAX};
  if (var.kind == ir::VarKind::kScalar) return parameter(function, id);
  if (var.kind == ir::VarKind::kBound && var.extent.is(0)) return std::nullopt;
  const Range first = number_range(function, var.first);
  const Range last = number_range(function, var.extent - 1);
  if (!first || !last) return std::nullopt;
  return NumberRange{first->least, std::max(first->least, last->largest)};
}

Range of_atom(const ir::Function& function, const ir::Atom& atom) {
  if (atom.kind == ir::AtomKind::kVar) return of_var(function, atom.var);
  const Range left = number_range(function, *atom.left);
  const Range right = number_range(function, *atom.right);
  if (!left || !right) return std::nullopt;
  switch (atom.kind) {
    case ir::AtomKind::kMin:
      return NumberRange{std::min(left->least, right->least),
                         std::min(left->largest, right->largest)};
    case ir::AtomKind::kMax:
      return NumberRange{std::max(left->least, right->least),
                         std::max(left->largest, right->largest)};
    case ir::AtomKind::kMod:
      if (right->least < 1) return std::nullopt;
      return NumberRange{0, right->largest - 1};
    case ir::AtomKind::kCDiv:
    case ir::AtomKind::kFloorDiv: break;
    case ir::AtomKind::kVar: return std::nullopt;
  }
  if (right->least < 1) return std::nullopt;
  const auto divided = [&](std::int64_t a, std::int64_t b) {
    return atom.kind == ir::AtomKind::kCDiv ? cdiv(Expr(a), Expr(b)) : floor_div(Expr(a), Expr(b));
  };
  return around({divided(left->least, right->least), divided(left->least, right->largest),
                 divided(left->largest, right->least), divided(left->largest, right->largest)});
}

}  // namespace

std::optional<NumberRange> number_range(const ir::Function& function, const ir::Expr& expr) {
  if (expr.overflowed()) return std::nullopt;
  NumberRange sum;
  for (const ir::Term& term : expr.terms()) {
    Range one = NumberRange{term.coefficient, term.coefficient};
    for (const ir::Atom& atom : term.atoms) {
      const Range factor = of_atom(function, atom);
      if (!factor) return std::nullopt;
      one = product(*one, *factor);
      if (!one) return std::nullopt;
    }
    const auto least = (Expr(sum.least) + Expr(one->least)).constant();
    const auto largest = (Expr(sum.largest) + Expr(one->largest)).constant();
    if (!least || !largest) return std::nullopt;
    sum = {*least, *largest};
  }
  return sum;
}

std::optional<NumberRange> numbers_of(DType dtype) {
  if (dtype == DType::kS64) return NumberRange{INT64_MIN, INT64_MAX};
  const int bits = info(dtype).bits;
  if (!is_integer(dtype) || bits > 32) return std::nullopt;
  const std::int64_t half = std::int64_t{1} << (bits - 1);
  const bool is_signed = info(dtype).kind == NumberKind::kSigned;
  return is_signed ? NumberRange{-half, half - 1} : NumberRange{0, 2 * half - 1};
}

}  // namespace kiln::passes
