#include "emit/cuda/spell.h"

#include <algorithm>
#include <cmath>

#include "support/escape.h"
#include "support/format.h"

namespace kiln::emit {

using ir::Atom;
using ir::AtomKind;
using ir::Expr;
using ir::Term;

std::string bracketed(const Spelled& spelled, Binding least) {
  return spelled.binding < least ? format("({})", spelled.text) : spelled.text;
}

std::string type_name(DType dtype) {
  switch (dtype) {
    case DType::kF64: return "double";
    case DType::kF32: return "float";
    case DType::kS32: return "int";
    case DType::kBool: return "bool";
    case DType::kTF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kE4M3:
    case DType::kE5M2:
    case DType::kUE4M3:
    case DType::kUE8M0:
    case DType::kE2M3:
    case DType::kE3M2:
    case DType::kE2M1:
    case DType::kS64:
    case DType::kU64:
    case DType::kU32:
    case DType::kS16:
    case DType::kU16:
    case DType::kS8:
    case DType::kU8:
    case DType::kS6:
    case DType::kU6:
    case DType::kS4:
    case DType::kU4:
    case DType::kS2:
    case DType::kU2:
    case DType::kU1:
    case DType::kBin1: break;
  }
  return format("kiln::{}", name(dtype));
}

namespace {

// By its bits: ptxas divides when it is told to.
std::string not_finite(double value, bool is_float) {
  const std::string_view sign = std::signbit(value) ? "f" : "7";
  const std::string_view rest = std::isnan(value) ? "fc" : "f8";
  if (is_float) return format("__int_as_float(0x{}{}00000)", sign, rest);
  return format("__longlong_as_double(0x{}f{}000000000000)", sign, std::isnan(value) ? "f8" : "f0");
}

// "2.0", "0.1", "1e+30": shortest text that reads back as the same float or double.
template <class Float>
Spelled float_text(Float value, std::string_view suffix) {
  if (!std::isfinite(value)) return {not_finite(value, sizeof(Float) == sizeof(float))};
  std::string text = format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return {text + std::string(suffix), std::signbit(value) ? Binding::kUnary : Binding::kPrimary};
}

Spelled integer_text(const DTypeInfo& row, double value) {
  if (row.kind == NumberKind::kUnsigned) {
    if (value >= 0x1p64) return {"18446744073709551615ull"};
    return {format("{}{}", static_cast<std::uint64_t>(value), row.bits > 32 ? "ull" : "u")};
  }
  if (value >= 0x1p63) return {"9223372036854775807ll"};
  if (value <= -0x1p63) return {"(-9223372036854775807ll - 1)"};
  if (value == -0x1p31 && row.bits == 32) return {"(-2147483647 - 1)"};
  return {format("{}{}", static_cast<std::int64_t>(value), row.bits > 32 ? "ll" : ""),
          value < 0 ? Binding::kUnary : Binding::kPrimary};
}

}  // namespace

Spelled literal(DType dtype, double value) {
  const double rounded = round_to(dtype, value);
  const DTypeInfo& row = info(dtype);
  const std::string type = type_name(dtype);
  switch (row.kind) {
    case NumberKind::kBool: return {rounded != 0 ? "true" : "false"};
    case NumberKind::kSigned:
    case NumberKind::kUnsigned:
      if (row.bits >= 32) return integer_text(row, rounded);
      return {format("{}({})", type, static_cast<std::int64_t>(rounded))};
    case NumberKind::kFloat: break;
  }
  if (dtype == DType::kF64) return float_text(rounded, "");
  const Spelled single = float_text(static_cast<float>(rounded), "f");
  return type == "float" ? single : Spelled{format("{}({})", type, single.text)};
}

std::string quoted(std::string_view text) {
  return format("\"{}\"", escape_for(Medium::kString, text));
}

namespace {

bool never_negative(const Atom& atom, const VarFacts& vars) {
  switch (atom.kind) {
    case AtomKind::kVar: return vars.never_negative(atom.var);
    case AtomKind::kMod: return true;
    case AtomKind::kCDiv:
    case AtomKind::kFloorDiv: return never_negative(*atom.left, vars);
    case AtomKind::kMin:
      return never_negative(*atom.left, vars) && never_negative(*atom.right, vars);
    case AtomKind::kMax:
      return never_negative(*atom.left, vars) || never_negative(*atom.right, vars);
  }
  return false;
}

}  // namespace

bool never_negative(const Expr& expr, const VarFacts& vars) {
  return std::ranges::all_of(expr.terms(), [&](const Term& term) {
    return term.coefficient >= 0 && std::ranges::all_of(term.atoms, [&](const Atom& atom) {
             return never_negative(atom, vars);
           });
  });
}

bool has_int_numbers(const Expr& expr) {
  return !expr.overflowed() && std::ranges::all_of(expr.terms(), [](const Term& term) {
    const bool fits = term.coefficient >= -INT32_MAX && term.coefficient <= INT32_MAX;
    return fits && std::ranges::all_of(term.atoms, [](const Atom& atom) {
             return atom.kind == AtomKind::kVar ||
                    (has_int_numbers(*atom.left) && has_int_numbers(*atom.right));
           });
  });
}

namespace {

Spelled called(std::string_view function, const Atom& atom, const VarFacts& vars) {
  return {format("kiln::{}({}, {})", function, spell(*atom.left, vars).text,
                 spell(*atom.right, vars).text)};
}

Spelled division(std::string_view sign, std::string_view function, const Atom& atom,
                 const VarFacts& vars) {
  if (!never_negative(*atom.left, vars)) return called(function, atom, vars);
  return {format("{} {} {}", bracketed(spell(*atom.left, vars), Binding::kProduct), sign,
                 bracketed(spell(*atom.right, vars), Binding::kUnary)),
          Binding::kProduct};
}

Spelled spell_atom(const Atom& atom, const VarFacts& vars) {
  switch (atom.kind) {
    case AtomKind::kVar: return {vars.name(atom.var)};
    case AtomKind::kCDiv: return called("cdiv", atom, vars);
    case AtomKind::kFloorDiv: return division("/", "floor_div", atom, vars);
    case AtomKind::kMod: return division("%", "mod", atom, vars);
    case AtomKind::kMin: return called("min", atom, vars);
    case AtomKind::kMax: return called("max", atom, vars);
  }
  return {};
}

// A term without its sign. Only the leftmost factor may itself be a product: a * (b / c) is not
// a * b / c in integers.
Spelled spell_term(const Term& term, const VarFacts& vars) {
  const auto coefficient = static_cast<std::uint64_t>(term.coefficient);
  const std::uint64_t size = term.coefficient < 0 ? 0 - coefficient : coefficient;
  std::string text = size != 1 || term.atoms.empty() ? format("{}", size) : "";
  if (size > INT32_MAX) text += size > INT64_MAX ? "ull" : "ll";
  if (text.empty() && term.atoms.size() == 1) return spell_atom(term.atoms[0], vars);
  for (const Atom& atom : term.atoms) {
    const Binding least = text.empty() ? Binding::kProduct : Binding::kUnary;
    if (!text.empty()) text += " * ";
    text += bracketed(spell_atom(atom, vars), least);
  }
  return {text, term.atoms.empty() ? Binding::kPrimary : Binding::kProduct};
}

}  // namespace

// The constant stands last and a sum begins with a positive term where it has one.
Spelled spell(const Expr& expr, const VarFacts& vars) {
  std::vector<const Term*> terms;
  for (const Term& term : expr.terms()) terms.push_back(&term);
  std::stable_sort(terms.begin(), terms.end(), [](const Term* a, const Term* b) {
    if (a->atoms.empty() != b->atoms.empty()) return b->atoms.empty();
    return a->coefficient > 0 && b->coefficient < 0;
  });
  if (terms.empty()) return {"0"};
  if (expr.is(INT64_MIN)) return {"(-9223372036854775807ll - 1)"};
  Spelled out = spell_term(*terms[0], vars);
  if (terms[0]->coefficient < 0) {
    out = {format("-{}", bracketed(out, Binding::kUnary)), Binding::kUnary};
  }
  for (std::size_t i = 1; i < terms.size(); ++i) {
    const Spelled term = spell_term(*terms[i], vars);
    out = {format("{} {} {}", out.text, terms[i]->coefficient < 0 ? '-' : '+',
                  bracketed(term, Binding::kProduct)),
           Binding::kSum};
  }
  return out;
}

}  // namespace kiln::emit
