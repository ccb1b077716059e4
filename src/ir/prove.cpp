#include "ir/prove.h"

#include <algorithm>

namespace kiln::ir {

namespace {

// The least and largest value of one atom, in launch-time values.
struct Range {
  std::optional<Expr> low;
  std::optional<Expr> high;
};

Range range_of(const Function& function, const Atom& atom);

std::optional<Expr> bound(const Function& function, const Expr& expr, bool upper) {
  Expr sum;
  for (const Term& term : expr.terms()) {
    const bool take_high = (term.coefficient > 0) == upper;
    Expr product(term.coefficient);
    for (const Atom& atom : term.atoms) {
      const Range range = range_of(function, atom);
      // A product is monotone in each factor only while the factors cannot be negative.
      if (term.atoms.size() > 1 && !(range.low && minimum(function, *range.low) >= 0)) return {};
      const std::optional<Expr>& factor = take_high ? range.high : range.low;
      if (!factor) return {};
      product = product * *factor;
    }
    sum = sum + product;
  }
  return sum;
}

Range range_of(const Function& function, const Atom& atom) {
  const auto self = [&]() -> Expr {
    return atom.kind == AtomKind::kVar ? Expr::var(atom.var)
                                       : make_atom(atom.kind, *atom.left, *atom.right);
  };
  switch (atom.kind) {
    case AtomKind::kVar: {
      const Var& var = function.vars[atom.var];
      switch (var.kind) {
        case VarKind::kDim:
        case VarKind::kScalar: return {self(), self()};
        case VarKind::kParallel:
        case VarKind::kLoop:
          return {bound(function, var.first, false), bound(function, var.extent - 1, true)};
        case VarKind::kBound:
          if (var.extent.is(0)) return {};
          return {Expr(0), bound(function, var.extent - 1, true)};
      }
      return {};
    }
    case AtomKind::kCDiv:
    case AtomKind::kFloorDiv: {
      if (!atom.right->constant() || *atom.right->constant() <= 0) return {};
      const auto low = bound(function, *atom.left, false);
      const auto high = bound(function, *atom.left, true);
      Range range;
      if (low) range.low = make_atom(atom.kind, *low, *atom.right);
      if (high) range.high = make_atom(atom.kind, *high, *atom.right);
      return range;
    }
    case AtomKind::kMod:
      if (!atom.right->constant() || *atom.right->constant() <= 0) return {};
      return {Expr(0), *atom.right - 1};
    case AtomKind::kMin: {
      auto high = bound(function, *atom.left, true);
      if (!high) high = bound(function, *atom.right, true);
      const auto a = bound(function, *atom.left, false);
      const auto b = bound(function, *atom.right, false);
      Range range{std::nullopt, high};
      if (a && b) range.low = min(*a, *b);
      return range;
    }
    case AtomKind::kMax: {
      const auto a = bound(function, *atom.left, true);
      const auto b = bound(function, *atom.right, true);
      Range range{bound(function, *atom.left, false), std::nullopt};
      if (a && b) range.high = max(*a, *b);
      return range;
    }
  }
  return {};
}

// The least value of one launch-time atom: a dimension is at least 1.
std::optional<std::int64_t> least(const Function& function, const Atom& atom) {
  switch (atom.kind) {
    case AtomKind::kVar: {
      const Var& var = function.vars[atom.var];
      if (var.kind == VarKind::kDim) return 1;
      if (var.kind == VarKind::kLoop) return minimum(function, var.first);
      if (var.kind == VarKind::kParallel || (var.kind == VarKind::kBound && !var.extent.is(0)))
        return 0;
      return {};
    }
    case AtomKind::kCDiv:
    case AtomKind::kFloorDiv: {
      const auto low = minimum(function, *atom.left);
      if (!low || !atom.right->constant()) return {};
      return make_atom(atom.kind, Expr(*low), *atom.right).constant();
    }
    case AtomKind::kMod: return 0;
    case AtomKind::kMin:
    case AtomKind::kMax: {
      const auto a = minimum(function, *atom.left);
      const auto b = minimum(function, *atom.right);
      if (!a || !b) return {};
      return atom.kind == AtomKind::kMin ? std::min(*a, *b) : std::max(*a, *b);
    }
  }
  return {};
}

// A multiple of `expr` made no larger by replacing quotients by constants with what bounds them:
//   x <= t * cdiv(x, t) <= x + t - 1        x - t + 1 <= t * floordiv(x, t) <= x
// so 16 * cdiv(n, 16) - n gives 16 * n - 16 * n, which shows that it is never negative.
Expr without_quotients(Expr expr) {
  constexpr int kQuotientsMax = 8;
  for (int i = 0; i < kQuotientsMax; ++i) {
    const Term* found = nullptr;
    for (const Term& term : expr.terms()) {
      if (term.atoms.size() != 1) continue;
      const Atom& atom = term.atoms[0];
      const bool quotient = atom.kind == AtomKind::kCDiv || atom.kind == AtomKind::kFloorDiv;
      if (quotient && atom.right->constant().value_or(0) > 0) found = &term;
    }
    if (found == nullptr) return expr;
    const Atom atom = found->atoms[0];
    const std::int64_t divisor = *atom.right->constant();
    const Expr coefficient(found->coefficient);
    const bool rises = found->coefficient > 0;
    Expr bound = *atom.left;  // of divisor * quotient, from the side that the sign asks for
    if (atom.kind == AtomKind::kCDiv && !rises) bound = bound + (divisor - 1);
    if (atom.kind == AtomKind::kFloorDiv && rises) bound = bound - (divisor - 1);
    const Expr quotient = make_atom(atom.kind, *atom.left, *atom.right);
    expr = (expr - coefficient * quotient) * divisor + coefficient * bound;
  }
  return expr;
}

}  // namespace

bool known_at_launch(const Function& function, const Expr& expr) {
  std::vector<VarId> vars;
  expr.collect_vars(vars);
  return std::all_of(vars.begin(), vars.end(), [&](VarId var) {
    const VarKind kind = function.vars[var].kind;
    return known_at_launch(kind);
  });
}

std::optional<Expr> upper_bound(const Function& function, const Expr& expr) {
  return bound(function, expr, true);
}

std::optional<std::int64_t> minimum(const Function& function, const Expr& expr) {
  if (expr.overflowed()) return {};
  std::int64_t sum = 0;
  for (const Term& term : expr.terms()) {
    std::int64_t product = 1;
    for (const Atom& atom : term.atoms) {
      const auto factor = least(function, atom);
      if (!factor || (*factor < 0 && term.atoms.size() > 1)) return {};
      product *= *factor;
    }
    if (term.coefficient < 0 && !term.atoms.empty()) return {};
    sum += term.coefficient * product;
  }
  return sum;
}

bool always_less_equal(const Function& function, const Expr& left, const Expr& right) {
  if (left.overflowed() || right.overflowed()) return false;
  const auto direct = minimum(function, right - left);
  if (direct && *direct >= 0) return true;
  const auto slack = bound(function, right - left, false);
  if (!slack) return false;
  for (const Expr& least : {*slack, without_quotients(*slack)}) {
    const auto value = minimum(function, least);
    if (value && *value >= 0) return true;
  }
  return false;
}

bool always_divisible(const Expr& expr, std::int64_t divisor) {
  return !expr.overflowed() && expr.known_divisor() % divisor == 0;
}

}  // namespace kiln::ir
