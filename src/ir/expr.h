// Expr: an integer index expression over named variables, kept in one normal form.
//
// An Expr is a polynomial with integer coefficients over *atoms*. An atom is a variable, or one of
// cdiv, floordiv, mod, min, max of two Exprs. Terms are sorted and like terms are merged, so two
// expressions that are equal as polynomials over the same atoms compare equal:
//
//   16*block_m + 3 + 16*block_m - 3   ==   32*block_m
//   cdiv(64, 16)                      ==   4            constants fold
//   cdiv(16*n, 16)                    ==   n            and so do exact divisions
//   mod(16*n + 5, 16)                 ==   5
//
// Division rounds down; every divisor must be positive. Arithmetic that leaves 64 bits marks the
// result as overflowed (see overflowed()), it never wraps silently. So does a formula that grows
// past kExprSizeMax atoms: ((a + b) * (a + c)) * ... has twice as many terms after each factor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/ids.h"

namespace kiln::ir {

struct VarTag;
using VarId = Id<VarTag>;

enum class AtomKind : std::uint8_t { kVar, kCDiv, kFloorDiv, kMod, kMin, kMax };

class Expr;

// Far more than any index of a program has, few enough that a thousand formulas take no time.
inline constexpr std::uint32_t kExprSizeMax = 1024;

struct Atom {
  AtomKind kind = AtomKind::kVar;
  VarId var;                         // kVar
  std::shared_ptr<const Expr> left;  // the others
  std::shared_ptr<const Expr> right;
};

struct Term {
  std::int64_t coefficient = 0;
  std::vector<Atom> atoms;  // sorted; empty for the constant term
};

class Expr {
 public:
  Expr() = default;  // 0
  Expr(std::int64_t value);
  [[nodiscard]] static Expr var(VarId id);

  [[nodiscard]] const std::vector<Term>& terms() const { return terms_; }
  [[nodiscard]] std::optional<std::int64_t> constant() const;
  [[nodiscard]] bool is(std::int64_t value) const { return constant() == value; }
  // The variable, when the whole expression is one.
  [[nodiscard]] std::optional<VarId> as_var() const;
  // It has no value: it left 64 bits or, too_long(), became too long a formula.
  [[nodiscard]] bool overflowed() const { return overflowed_; }
  [[nodiscard]] bool too_long() const { return size_ > kExprSizeMax; }
  [[nodiscard]] bool uses(VarId id) const;
  void collect_vars(std::vector<VarId>& out) const;  // each once, in order of first use

  // `values[id.index]` is the variable's value. Errors: none (a zero divisor gives 0).
  [[nodiscard]] std::int64_t evaluate(std::span<const std::int64_t> values) const;
  // Replaces variables; `replacement` returns nullopt for those that stay.
  [[nodiscard]] Expr substitute(const std::function<std::optional<Expr>(VarId)>& replacement) const;

  // The largest d such that every value of the expression is a multiple of d, as far as the
  // coefficients tell (0 for the expression 0): 16*n + 8 gives 8.
  [[nodiscard]] std::int64_t known_divisor() const;

  // "16*block_m + cdiv(K, 16)", with `name` spelling the variables.
  [[nodiscard]] std::string text(const std::function<std::string(VarId)>& name) const;

  friend Expr operator+(const Expr& a, const Expr& b);
  friend Expr operator-(const Expr& a, const Expr& b);
  friend Expr operator*(const Expr& a, const Expr& b);
  friend bool operator==(const Expr& a, const Expr& b);
  friend int compare(const Expr& a, const Expr& b);  // a total order, for normal forms

  friend Expr cdiv(const Expr& a, const Expr& b);
  friend Expr floor_div(const Expr& a, const Expr& b);
  friend Expr mod(const Expr& a, const Expr& b);
  friend Expr min(const Expr& a, const Expr& b);
  friend Expr max(const Expr& a, const Expr& b);

 private:
  friend Expr make_atom(AtomKind kind, const Expr& a, const Expr& b);
  void normalise();
  void split_by(std::int64_t divisor, Expr& quotient, Expr& rest) const;
  void measure();
  std::vector<Term> terms_;
  bool overflowed_ = false;
  std::uint32_t size_ = 0;  // terms and atoms, those inside of atoms too
};

// The operation on two expressions, folded where it can be.
Expr make_atom(AtomKind kind, const Expr& a, const Expr& b);
Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
bool operator==(const Expr& a, const Expr& b);
int compare(const Expr& a, const Expr& b);
Expr cdiv(const Expr& a, const Expr& b);
Expr floor_div(const Expr& a, const Expr& b);
Expr mod(const Expr& a, const Expr& b);
Expr min(const Expr& a, const Expr& b);
Expr max(const Expr& a, const Expr& b);

}  // namespace kiln::ir
