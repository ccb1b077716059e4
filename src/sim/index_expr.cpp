#include "sim/index_expr.h"

#include "support/check.h"

namespace kiln::sim {

namespace {

// A divisor that is not positive gives 0, as Expr::evaluate does: entry checks have refused it.
std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  if (b <= 0) return 0;
  const std::int64_t quotient = a / b;
  return quotient * b > a ? quotient - 1 : quotient;
}

std::int64_t apply(ir::AtomKind kind, std::int64_t a, std::int64_t b) {
  switch (kind) {
    case ir::AtomKind::kVar: break;
    case ir::AtomKind::kCDiv: return b <= 0 ? 0 : -floor_div(-a, b);
    case ir::AtomKind::kFloorDiv: return floor_div(a, b);
    case ir::AtomKind::kMod: return b <= 0 ? 0 : a - floor_div(a, b) * b;
    case ir::AtomKind::kMin: return a < b ? a : b;
    case ir::AtomKind::kMax: return a < b ? b : a;
  }
  KILN_UNREACHABLE("a variable has no operands");
}

}  // namespace

IndexExpr::IndexExpr(const ir::Expr& expr, const VarFacts& facts) {
  const ir::Expr folded = expr.substitute([&](ir::VarId var) -> std::optional<ir::Expr> {
    if (!facts.known[var.index]) return std::nullopt;
    return ir::Expr(facts.values[var.index]);
  });
  std::vector<ir::VarId> vars;
  folded.collect_vars(vars);
  for (const ir::VarId var : vars) {
    if (!facts.uniform[var.index]) varying_.push_back(var.index);
  }
  for (const ir::Term& term : folded.terms()) add(term, facts);
}

void IndexExpr::add(const ir::Term& term, const VarFacts& facts) {
  if (term.atoms.empty()) {
    constant_ += term.coefficient;
    return;
  }
  if (term.atoms.size() == 1 && term.atoms[0].kind == ir::AtomKind::kVar) {
    linear_.push_back({term.coefficient, term.atoms[0].var.index});
    return;
  }
  Product product{term.coefficient, {}};
  for (const ir::Atom& atom : term.atoms) {
    if (atom.kind == ir::AtomKind::kVar) {
      product.factors.push_back({atom.kind, atom.var.index, 0, 0});
      continue;
    }
    operands_.emplace_back(*atom.left, facts);
    operands_.emplace_back(*atom.right, facts);
    product.factors.push_back({atom.kind, 0, operands_.size() - 2, operands_.size() - 1});
  }
  products_.push_back(std::move(product));
}

std::int64_t IndexExpr::evaluate_products(const std::int64_t* vars, std::uint32_t lane) const {
  std::int64_t sum = 0;
  for (const Product& product : products_) {
    std::int64_t value = product.coefficient;
    for (const Factor& factor : product.factors) {
      value *= factor.kind == ir::AtomKind::kVar
                   ? vars[factor.var * kLanes + lane]
                   : apply(factor.kind, operands_[factor.left].evaluate(vars, lane),
                           operands_[factor.right].evaluate(vars, lane));
    }
    sum += value;
  }
  return sum;
}

}  // namespace kiln::sim
