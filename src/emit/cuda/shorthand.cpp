#include "emit/cuda/shorthand.h"

#include <algorithm>

namespace kiln::emit {

using ir::Atom;
using ir::AtomKind;
using ir::Expr;
using ir::Term;
using ir::VarId;

namespace {

Expr expr_of(const Atom& atom) {
  return atom.kind == AtomKind::kVar ? Expr::var(atom.var)
                                     : ir::make_atom(atom.kind, *atom.left, *atom.right);
}

Expr expr_of(const Term& term) {
  Expr out = term.coefficient;
  for (const Atom& atom : term.atoms) out = out * expr_of(atom);
  return out;
}

// The one term that has these atoms, as an expression; 0 when there is none.
Expr like(const Expr& expr, const Term& wanted) {
  Expr unit = expr_of(Term{1, wanted.atoms});
  for (const Term& term : expr.terms()) {
    if (expr_of(Term{1, term.atoms}) == unit) return expr_of(term);
  }
  return 0;
}

// How often all of `value` is a part of the sum `expr`: a number, or 0.
std::int64_t times_in(const Expr& expr, const Expr& value) {
  std::optional<std::int64_t> times;
  for (const Term& term : value.terms()) {
    const Expr found = like(expr, term);
    if (found.is(0)) return 0;
    const std::int64_t have = found.terms()[0].coefficient;
    if (have == INT64_MIN || term.coefficient == INT64_MIN) return 0;
    if (have % term.coefficient != 0) return 0;
    if (times.value_or(have / term.coefficient) != have / term.coefficient) return 0;
    times = have / term.coefficient;
  }
  return times.value_or(0);
}

bool is_positive(const Expr& expr) {
  const auto is_positive_atom = [](const Atom& atom) {
    return atom.kind == AtomKind::kMax && (is_positive(*atom.left) || is_positive(*atom.right));
  };
  return !expr.terms().empty() && std::ranges::all_of(expr.terms(), [&](const Term& term) {
    return term.coefficient > 0 && std::ranges::all_of(term.atoms, is_positive_atom);
  });
}

// The program may have put such a division behind a test: `if (n > 0) y = x / n;`.
bool may_divide_by_zero(const Expr& expr) {
  return std::ranges::any_of(expr.terms(), [](const Term& term) {
    return std::ranges::any_of(term.atoms, [](const Atom& atom) {
      if (atom.kind == AtomKind::kVar) return false;
      const bool divides = atom.kind == AtomKind::kCDiv || atom.kind == AtomKind::kFloorDiv ||
                           atom.kind == AtomKind::kMod;
      return (divides && !is_positive(*atom.right)) || may_divide_by_zero(*atom.left) ||
             may_divide_by_zero(*atom.right);
    });
  });
}

}  // namespace

Expr shortened(const Expr& expr, const Expr& value, VarId var) {
  if (expr.constant() || expr.overflowed()) return expr;
  Expr out = 0;
  for (const Term& term : expr.terms()) {
    Expr product = term.coefficient;
    for (const Atom& atom : term.atoms) {
      const bool is_var = atom.kind == AtomKind::kVar;
      const Expr whole = expr_of(atom);
      if (!is_var && whole == value) {
        product = product * Expr::var(var);
      } else if (is_var) {
        product = product * whole;
      } else {
        product = product * ir::make_atom(atom.kind, shortened(*atom.left, value, var),
                                          shortened(*atom.right, value, var));
      }
    }
    out = out + product;
  }
  const std::int64_t times = times_in(out, value);
  return times == 0 ? out : out - Expr(times) * value + Expr(times) * Expr::var(var);
}

Shorthands::Shorthands(const ir::Function& function, std::vector<Shorthand> names)
    : function_(function), all_(std::move(names)) {
  for (Shorthand& name : all_) {
    const Expr& value = function_.named[name.index].value;
    name.can_be = has_int_numbers(value);
    name.may_divide_by_zero = emit::may_divide_by_zero(value);
    value.collect_vars(name.needs);
    if (name.place.valid()) declared_[name.place].push_back(&name);
  }
}

void Shorthands::close(const Scope& scope) {
  for (std::size_t i = scope.names; i < in_scope_.size(); ++i) all_[in_scope_[i]].in_scope = false;
  in_scope_.resize(scope.names);
  vars_.resize(scope.vars);
}

void Shorthands::take_in(std::size_t index, const VarFacts& facts) {
  Shorthand& name = all_[index];
  name.value = shorten(function_.named[name.index].value, false);
  name.never_negative = never_negative(name.value, facts);
  name.depth = operations_.size() - 1;
  name.in_scope = true;
  in_scope_.push_back(index);
}

void Shorthands::leave_region() {
  operations_.pop_back();
  for (Shorthand& name : all_) {
    if (name.used && name.may_divide_by_zero && name.depth >= operations_.size()) name.ended = true;
  }
}

std::span<const Shorthand* const> Shorthands::advance(ir::OpId op, const VarFacts& facts) {
  operations_.back() = op;
  for (std::size_t i = 0; has_new_ && i < all_.size(); ++i) {
    const bool is_there = std::ranges::all_of(
        all_[i].needs, [&](VarId var) { return std::ranges::find(vars_, var) != vars_.end(); });
    if (is_there && all_[i].can_be && !all_[i].in_scope) take_in(i, facts);
  }
  has_new_ = false;
  const auto at = declared_.find(op);
  return at == declared_.end() ? std::span<const Shorthand* const>() : at->second;
}

void Shorthands::use(Shorthand& name) {
  if (name.used) return;
  name.used = true;
  if (name.may_divide_by_zero) name.depth = operations_.size() - 1;
  name.place = operations_[name.depth];
  for (Shorthand& other : all_) {
    if (name.value.uses(other.var)) use(other);
  }
}

Expr Shorthands::shorten(Expr expr, bool is_text) {
  // A name is an int: what is computed in 64 bits goes without.
  if (in_scope_.empty() || !has_int_numbers(expr)) return expr;
  std::vector<VarId> vars;
  expr.collect_vars(vars);
  for (const std::size_t i : in_scope_) {
    const bool has_all = std::ranges::all_of(
        all_[i].needs, [&](VarId var) { return std::ranges::find(vars, var) != vars.end(); });
    if (has_all && may_be(all_[i], is_text)) expr = shortened(expr, all_[i].value, all_[i].var);
  }
  if (!is_text) return expr;
  for (const std::size_t i : in_scope_) {
    if (expr.uses(all_[i].var)) use(all_[i]);
  }
  return expr;
}

}  // namespace kiln::emit
