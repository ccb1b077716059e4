#include "sema/launch_value.h"

#include <cmath>

#include "ir/prove.h"
#include "sema/entry_check.h"

namespace kiln::sema {

namespace {

class Formula {
 public:
  Formula(Sema& sema, Span span) : sema_(sema), span_(span) {}

  std::optional<ir::Expr> of(const ir::Expr& expr) {
    bool known = true;
    const ir::Expr out = expr.substitute([&](ir::VarId var) -> std::optional<ir::Expr> {
      if (sema_.function.vars[var].kind != ir::VarKind::kBound) return std::nullopt;
      const auto value = value_of(var);
      auto formula = value ? of(*value) : std::nullopt;
      known = known && formula.has_value();
      return formula;
    });
    if (!known || out.overflowed()) return std::nullopt;
    return out;
  }

 private:
  // It is set once, so that what it is made of says what it is.
  [[nodiscard]] std::optional<ir::ValueId> value_of(ir::VarId var) const {
    for (const ir::Op& op : sema_.function.ops) {
      const auto* bind = std::get_if<ir::Bind>(&op.data);
      if (bind != nullptr && bind->var == var) return bind->value;
    }
    return std::nullopt;
  }

  std::optional<ir::Expr> of(ir::ValueId value) {
    const auto* type = std::get_if<ir::ScalarType>(&sema_.function.type(value));
    const bool counts =
        type != nullptr && (type->dtype == DType::kS32 || type->dtype == DType::kS64);
    if (!counts || ++steps_ > kStepsMax) return std::nullopt;
    if (const auto* index = sema_.function.def_as<ir::Index>(value)) {
      return of(ir::Expr(index->expr));
    }
    if (const auto* constant = sema_.function.def_as<ir::Const>(value)) {
      return ir::Expr(static_cast<std::int64_t>(std::llround(constant->value)));
    }
    const auto* binary = sema_.function.def_as<ir::Binary>(value);
    if (binary == nullptr) return std::nullopt;
    const ir::Binary op = *binary;
    const auto left = of(op.left);
    const auto right = left ? of(op.right) : std::nullopt;
    if (!right) return std::nullopt;
    if (op.kind == ir::BinaryKind::kAdd) return *left + *right;
    if (op.kind == ir::BinaryKind::kSub) return *left - *right;
    if (op.kind == ir::BinaryKind::kMul) return *left * *right;
    if (op.kind == ir::BinaryKind::kMin) return ir::min(*left, *right);
    if (op.kind == ir::BinaryKind::kMax) return ir::max(*left, *right);
    const bool divides = op.kind == ir::BinaryKind::kDiv;
    if (!divides && op.kind != ir::BinaryKind::kRem) return std::nullopt;
    at_least(*left, 0, "what is divided here must not be negative");
    at_least(*right, 1, "what divides here must be positive");
    return divides ? ir::floor_div(*left, *right) : ir::mod(*left, *right);
  }

  void at_least(const ir::Expr& side, std::int64_t least, const char* message) {
    const auto proved = ir::minimum(sema_.function, side);
    if (proved && *proved >= least) return;
    require(sema_, {least, ir::Relation::kLessEqual, side, message, span_});
  }

  static constexpr int kStepsMax = 256;  // a number may be made of itself, twice at each step

  Sema& sema_;
  Span span_;
  int steps_ = 0;
};

}  // namespace

std::optional<ir::Expr> launch_value(Sema& sema, const ir::Expr& expr, Span span) {
  const auto out = Formula(sema, span).of(expr);
  if (!out || !ir::known_at_launch(sema.function, *out)) return std::nullopt;
  return out;
}

}  // namespace kiln::sema
