#include "ir/expr.h"

#include <algorithm>
#include <numeric>

namespace kiln::ir {

namespace {

int compare_atoms(const Atom& a, const Atom& b) {
  if (a.kind != b.kind) return a.kind < b.kind ? -1 : 1;
  if (a.kind == AtomKind::kVar) {
    if (a.var == b.var) return 0;
    return a.var < b.var ? -1 : 1;
  }
  const int left = compare(*a.left, *b.left);
  return left != 0 ? left : compare(*a.right, *b.right);
}

// Terms order by degree (higher first), then by their atoms; the constant comes last.
int compare_keys(const Term& a, const Term& b) {
  if (a.atoms.size() != b.atoms.size()) return a.atoms.size() > b.atoms.size() ? -1 : 1;
  for (std::size_t i = 0; i < a.atoms.size(); ++i) {
    const int order = compare_atoms(a.atoms[i], b.atoms[i]);
    if (order != 0) return order;
  }
  return 0;
}

std::int64_t floor_div_int(std::int64_t a, std::int64_t b) {
  if (b <= 0) return 0;
  return a / b - (a % b < 0 ? 1 : 0);
}

// Sum and product that stop at the ends of the 64-bit range instead of leaving it.
std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? INT64_MIN : INT64_MAX;
}
std::int64_t saturating_mul(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) != (b < 0) ? INT64_MIN : INT64_MAX;
}

std::int64_t apply(AtomKind kind, std::int64_t a, std::int64_t b) {
  switch (kind) {
    case AtomKind::kVar: break;
    case AtomKind::kCDiv: return b <= 0 ? 0 : a / b + (a % b > 0 ? 1 : 0);
    case AtomKind::kFloorDiv: return floor_div_int(a, b);
    case AtomKind::kMod: return b <= 0 ? 0 : a % b + (a % b < 0 ? b : 0);
    case AtomKind::kMin: return std::min(a, b);
    case AtomKind::kMax: return std::max(a, b);
  }
  KILN_UNREACHABLE("a variable has no operands");
}

std::string_view atom_name(AtomKind kind) {
  switch (kind) {
    case AtomKind::kVar: return "var";
    case AtomKind::kCDiv: return "cdiv";
    case AtomKind::kFloorDiv: return "floordiv";
    case AtomKind::kMod: return "mod";
    case AtomKind::kMin: return "min";
    case AtomKind::kMax: return "max";
  }
  return "";
}

}  // namespace

Expr::Expr(std::int64_t value) {
  if (value != 0) terms_.push_back({value, {}});
  measure();
}

Expr Expr::var(VarId id) {
  Expr out;
  out.terms_.push_back({1, {Atom{AtomKind::kVar, id, nullptr, nullptr}}});
  out.measure();
  return out;
}

std::optional<std::int64_t> Expr::constant() const {
  if (overflowed_) return std::nullopt;
  if (terms_.empty()) return 0;
  if (terms_.size() == 1 && terms_[0].atoms.empty()) return terms_[0].coefficient;
  return std::nullopt;
}

std::optional<VarId> Expr::as_var() const {
  if (terms_.size() != 1 || terms_[0].coefficient != 1 || terms_[0].atoms.size() != 1) {
    return std::nullopt;
  }
  const Atom& atom = terms_[0].atoms[0];
  return atom.kind == AtomKind::kVar ? std::optional(atom.var) : std::nullopt;
}

void Expr::collect_vars(std::vector<VarId>& out) const {
  for (const Term& term : terms_) {
    for (const Atom& atom : term.atoms) {
      if (atom.kind != AtomKind::kVar) {
        atom.left->collect_vars(out);
        atom.right->collect_vars(out);
      } else if (std::find(out.begin(), out.end(), atom.var) == out.end()) {
        out.push_back(atom.var);
      }
    }
  }
}

bool Expr::uses(VarId id) const {
  std::vector<VarId> vars;
  collect_vars(vars);
  return std::find(vars.begin(), vars.end(), id) != vars.end();
}

std::int64_t Expr::evaluate(std::span<const std::int64_t> values) const {
  std::int64_t sum = 0;
  for (const Term& term : terms_) {
    std::int64_t product = term.coefficient;
    for (const Atom& atom : term.atoms) {
      const std::int64_t factor =
          atom.kind == AtomKind::kVar
              ? values[atom.var.index]
              : apply(atom.kind, atom.left->evaluate(values), atom.right->evaluate(values));
      product = saturating_mul(product, factor);
    }
    sum = saturating_add(sum, product);
  }
  return sum;
}

Expr Expr::substitute(const std::function<std::optional<Expr>(VarId)>& replacement) const {
  Expr sum;
  for (const Term& term : terms_) {
    Expr product(term.coefficient);
    for (const Atom& atom : term.atoms) {
      if (atom.kind == AtomKind::kVar) {
        const std::optional<Expr> found = replacement(atom.var);
        product = product * (found ? *found : Expr::var(atom.var));
      } else {
        product = product * make_atom(atom.kind, atom.left->substitute(replacement),
                                      atom.right->substitute(replacement));
      }
    }
    sum = sum + product;
  }
  sum.overflowed_ = sum.overflowed_ || overflowed_;
  return sum;
}

std::int64_t Expr::known_divisor() const {
  std::int64_t divisor = 0;
  for (const Term& term : terms_) divisor = std::gcd(divisor, term.coefficient);
  return divisor;
}

void Expr::measure() {
  size_ = 0;
  for (const Term& term : terms_) {
    ++size_;
    for (const Atom& atom : term.atoms) {
      ++size_;
      if (atom.kind != AtomKind::kVar) size_ += atom.left->size_ + atom.right->size_;
      if (too_long()) break;
    }
    if (too_long()) break;
  }
  if (!too_long()) return;
  overflowed_ = true;
  terms_.clear();
}

void Expr::normalise() {
  std::stable_sort(terms_.begin(), terms_.end(),
                   [](const Term& a, const Term& b) { return compare_keys(a, b) < 0; });
  std::vector<Term> merged;
  for (Term& term : terms_) {
    if (!merged.empty() && compare_keys(merged.back(), term) == 0) {
      overflowed_ |= __builtin_add_overflow(merged.back().coefficient, term.coefficient,
                                            &merged.back().coefficient);
    } else {
      merged.push_back(std::move(term));
    }
  }
  std::erase_if(merged, [](const Term& term) { return term.coefficient == 0; });
  terms_ = std::move(merged);
  measure();
}

Expr operator+(const Expr& a, const Expr& b) {
  Expr out = a;
  out.terms_.insert(out.terms_.end(), b.terms_.begin(), b.terms_.end());
  out.overflowed_ = a.overflowed_ || b.overflowed_;
  out.normalise();
  return out;
}

Expr operator-(const Expr& a, const Expr& b) { return a + b * Expr(-1); }

Expr operator*(const Expr& a, const Expr& b) {
  Expr out;
  out.overflowed_ = a.overflowed_ || b.overflowed_;
  if (a.terms_.size() * b.terms_.size() > kExprSizeMax) {
    out.overflowed_ = true;
    out.size_ = kExprSizeMax + 1;
    return out;
  }
  for (const Term& x : a.terms_) {
    for (const Term& y : b.terms_) {
      Term product;
      out.overflowed_ |= __builtin_mul_overflow(x.coefficient, y.coefficient, &product.coefficient);
      product.atoms = x.atoms;
      product.atoms.insert(product.atoms.end(), y.atoms.begin(), y.atoms.end());
      std::stable_sort(product.atoms.begin(), product.atoms.end(),
                       [](const Atom& p, const Atom& q) { return compare_atoms(p, q) < 0; });
      out.terms_.push_back(std::move(product));
    }
  }
  out.normalise();
  return out;
}

// *this == divisor * quotient + rest, where `rest` has the terms that the divisor does not divide.
void Expr::split_by(std::int64_t divisor, Expr& quotient, Expr& rest) const {
  for (const Term& term : terms_) {
    const bool whole = term.coefficient % divisor == 0;
    Expr& part = whole ? quotient : rest;
    part.terms_.push_back(term);  // in order, so both stay normal
    if (whole) part.terms_.back().coefficient /= divisor;
  }
  quotient.measure();
  rest.measure();
}

bool operator==(const Expr& a, const Expr& b) { return compare(a, b) == 0; }

int compare(const Expr& a, const Expr& b) {
  if (a.overflowed_ != b.overflowed_) return b.overflowed_ ? -1 : 1;
  if (a.terms_.size() != b.terms_.size()) return a.terms_.size() < b.terms_.size() ? -1 : 1;
  for (std::size_t i = 0; i < a.terms_.size(); ++i) {
    const int keys = compare_keys(a.terms_[i], b.terms_[i]);
    if (keys != 0) return keys;
    if (a.terms_[i].coefficient != b.terms_[i].coefficient) {
      return a.terms_[i].coefficient < b.terms_[i].coefficient ? -1 : 1;
    }
  }
  return 0;
}

Expr make_atom(AtomKind kind, const Expr& a, const Expr& b) {
  const bool divides =
      kind == AtomKind::kCDiv || kind == AtomKind::kFloorDiv || kind == AtomKind::kMod;
  Expr out;
  out.overflowed_ = a.overflowed_ || b.overflowed_;
  if (out.overflowed_) return out;
  const std::optional<std::int64_t> x = a.constant();
  const std::optional<std::int64_t> y = b.constant();
  if (x && y && (!divides || *y > 0)) return Expr(apply(kind, *x, *y));
  if (divides) {
    if (y && *y > 0) {
      Expr quotient;
      Expr rest;
      a.split_by(*y, quotient, rest);
      const bool is_mod = kind == AtomKind::kMod;
      if (const auto value = rest.constant()) {
        const Expr folded(apply(kind, *value, *y));
        return is_mod ? folded : quotient + folded;
      }
      if (!quotient.terms_.empty()) {
        const Expr atom = make_atom(kind, rest, b);
        return is_mod ? atom : quotient + atom;
      }
    }
    if (!y && a.is(0)) return Expr(0);
    if (!y && a == b) return kind == AtomKind::kMod ? Expr(0) : Expr(1);
  } else {
    if (const auto difference = (a - b).constant()) {
      return (*difference <= 0) == (kind == AtomKind::kMin) ? a : b;
    }
    if (compare(b, a) < 0) return make_atom(kind, b, a);
  }
  out.terms_.push_back(
      {1, {Atom{kind, {}, std::make_shared<const Expr>(a), std::make_shared<const Expr>(b)}}});
  out.measure();
  return out;
}

Expr cdiv(const Expr& a, const Expr& b) { return make_atom(AtomKind::kCDiv, a, b); }
Expr floor_div(const Expr& a, const Expr& b) { return make_atom(AtomKind::kFloorDiv, a, b); }
Expr mod(const Expr& a, const Expr& b) { return make_atom(AtomKind::kMod, a, b); }
Expr min(const Expr& a, const Expr& b) { return make_atom(AtomKind::kMin, a, b); }
Expr max(const Expr& a, const Expr& b) { return make_atom(AtomKind::kMax, a, b); }

std::string Expr::text(const std::function<std::string(VarId)>& name) const {
  if (overflowed_) return "<overflow>";
  if (terms_.empty()) return "0";
  std::string out;
  for (const Term& term : terms_) {
    const bool negative = term.coefficient < 0;
    if (!out.empty()) out += negative ? " - " : " + ";
    if (out.empty() && negative) out += "-";
    std::uint64_t magnitude = static_cast<std::uint64_t>(term.coefficient);
    if (negative) magnitude = 0 - magnitude;
    std::string product;
    if (magnitude != 1 || term.atoms.empty()) product = format("{}", magnitude);
    for (const Atom& atom : term.atoms) {
      if (!product.empty()) product += "*";
      product += atom.kind == AtomKind::kVar
                     ? name(atom.var)
                     : format("{}({}, {})", atom_name(atom.kind), atom.left->text(name),
                              atom.right->text(name));
    }
    out += product;
  }
  return out;
}

}  // namespace kiln::ir
