#include "emit/cuda/launch_size.h"

#include <algorithm>

#include "support/format.h"

namespace kiln::emit {

using ir::Atom;
using ir::AtomKind;
using ir::Expr;
using ir::Term;

LaunchSizes::LaunchSizes(const std::vector<ParamSlot>& slots)
    : slots_(slots),
      facts_{.name = [this](ir::VarId var) { return slot(var).name; },
             .never_negative = [](ir::VarId) { return false; }} {}

bool LaunchSizes::knows(const Expr& expr) const {
  std::vector<ir::VarId> vars;
  expr.collect_vars(vars);
  return std::ranges::all_of(vars, [&](ir::VarId var) {
    return std::ranges::find(slots_, var, &ParamSlot::var) != slots_.end();
  });
}

const ParamSlot& LaunchSizes::slot(ir::VarId var) const {
  const auto found = std::ranges::find(slots_, var, &ParamSlot::var);
  KILN_CHECK(found != slots_.end(), "variable {} is no parameter of the launcher", var.index);
  return *found;
}

bool LaunchSizes::is_int(const Atom& atom) const {
  if (atom.kind == AtomKind::kVar) return info(slot(atom.var).dtype).bits <= 32;
  return is_int(*atom.left) && is_int(*atom.right);  // quotients are no larger than what is divided
}

bool LaunchSizes::is_int(const Expr& expr) const {
  if (const auto constant = expr.constant()) {
    return *constant >= INT32_MIN && *constant <= INT32_MAX;
  }
  const std::vector<Term>& terms = expr.terms();
  return terms.size() == 1 && terms[0].coefficient == 1 && terms[0].atoms.size() == 1 &&
         is_int(terms[0].atoms[0]);
}

std::string LaunchSizes::wide_text(const Atom& atom) const {
  const auto called = [&](std::string_view function) {
    return format("kiln::{}({}, {})", function, text(*atom.left), text(*atom.right));
  };
  switch (atom.kind) {
    case AtomKind::kVar: return slot(atom.var).name;
    case AtomKind::kCDiv: return called("cdiv");
    case AtomKind::kFloorDiv: return called("floor_div");
    case AtomKind::kMod: return called("mod");
    case AtomKind::kMin: return called("min");
    case AtomKind::kMax: return called("max");
  }
  return {};
}

std::string LaunchSizes::wide_text(const Term& term) const {
  std::string product;
  if (term.coefficient != 1 || term.atoms.size() < 2) product = format("{}ll", term.coefficient);
  for (const Atom& atom : term.atoms) {
    const std::string factor = wide_text(atom);
    product = product.empty() ? factor : format("kiln::wide_product({}, {})", product, factor);
  }
  return product;
}

std::string LaunchSizes::text(const Expr& expr) const {
  if (is_int(expr)) return spell(expr, facts_).text;
  const std::vector<Term>& terms = expr.terms();
  if (terms.size() == 1 && terms[0].coefficient == 1 && terms[0].atoms.size() == 1) {
    return wide_text(terms[0].atoms[0]);
  }
  return join(terms, " + ", [&](const Term& term) { return wide_text(term); });
}

std::string LaunchSizes::list(const std::vector<Expr>& exprs) const {
  return join(exprs, ", ", [&](const Expr& expr) { return text(expr); });
}

std::string LaunchSizes::limited(const Expr& expr, std::int64_t most) const {
  return is_int(expr) ? text(expr) : format("kiln::launchable({}, {})", text(expr), most);
}

}  // namespace kiln::emit
