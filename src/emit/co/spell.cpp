// Types, numbers, names and index expressions.
#include <algorithm>
#include <cmath>

#include "emit/co/say.h"
#include "ir/prove.h"
#include "support/escape.h"

namespace kiln::emit_co {

std::string bracketed(const Spelled& spelled, Binding least) {
  return spelled.binding < least ? format("({})", spelled.text) : spelled.text;
}

void line(Co& co, std::string_view text) {
  co.out.append(static_cast<std::size_t>(co.depth) * 2, ' ');
  co.out += text;
  co.out += '\n';
}

void unsayable(Co& co, const ir::Op& op, std::string_view why) {
  co.failed = true;
  (void)co.diags.report<diag::CoUnsayable>(op.span, ir::mnemonic(op.kind()), why).emit();
}

std::string fresh_name(Co& co, std::string wanted) {
  const bool is_word =
      !wanted.empty() && (std::isdigit(static_cast<unsigned char>(wanted[0])) == 0);
  if (!is_word) wanted = "value_" + wanted;
  std::string name = wanted;
  for (int n = 1; !co.taken.insert(name).second; ++n) name = format("{}_{}", wanted, n);
  return name;
}

const std::string& name_of(Co& co, ir::ValueId value) {
  std::string& name = co.value_names[value.index];
  if (name.empty()) name = fresh_name(co, co.function.values[value].name);
  return name;
}

std::string type_name(DType dtype) { return std::string(name(dtype)); }

std::string quoted(std::string_view text) {
  return format("\"{}\"", escape_for(Medium::kIrString, text));
}

namespace {

// Digits on both sides of a point, or with an exponent.
std::string decimal(double value) {
  std::string text = format("{}", value);
  const bool has_point = text.find('.') != text.npos;
  const std::size_t exponent = text.find('e');
  if (!has_point) text.insert(exponent == text.npos ? text.size() : exponent, ".0");
  return text;
}

std::string integer_suffix(DType dtype) {
  if (dtype == DType::kU32) return "u";
  if (dtype == DType::kS64) return "ll";
  if (dtype == DType::kU64) return "ull";
  return "";
}

Spelled float_literal(DType dtype, double value) {
  if (std::isinf(value)) {
    const std::string text = dtype == DType::kF32 || info(dtype).bits < 32
                                 ? "inf"
                                 : format("__inf<{}>()", type_name(dtype));
    return value < 0 ? Spelled{"-" + text, Binding::kUnary} : Spelled{text};
  }
  if (std::isnan(value)) return {"(0.0f / 0.0f)"};
  const std::string suffix = dtype == DType::kF64 ? "" : "f";
  const bool is_exact = dtype == DType::kF64 || info(dtype).bits < 32;
  const double shown =
      dtype == DType::kF64 ? value : static_cast<double>(static_cast<float>(value));
  const std::string digits = is_exact ? decimal(std::fabs(shown)) : [&] {
    std::string text = format("{}", static_cast<float>(std::fabs(shown)));
    const std::size_t exponent = text.find('e');
    if (text.find('.') == text.npos) {
      text.insert(exponent == text.npos ? text.size() : exponent, ".0");
    }
    return text;
  }();
  if (std::signbit(shown)) return {"-" + digits + suffix, Binding::kUnary};
  return {digits + suffix};
}

}  // namespace

Spelled literal(DType dtype, double value) {
  if (dtype == DType::kBool) return {value != 0 ? "true" : "false"};
  if (is_float(dtype)) return float_literal(dtype, value);
  return integer_literal(dtype, static_cast<std::int64_t>(value));
}

Spelled integer_literal(DType dtype, std::int64_t whole) {
  if (whole == INT64_MIN && dtype == DType::kS64) {
    return {"-9223372036854775807ll - 1ll", Binding::kSum};  // its digits alone are no s64
  }
  if (info(dtype).kind == NumberKind::kUnsigned && info(dtype).bits == 32) {
    whole = static_cast<std::uint32_t>(whole);  // -1 stands for the largest one
  }
  const std::string digits = format("{}{}", whole, integer_suffix(dtype));
  if (info(dtype).bits < 32) return {format("__to<{}>({})", type_name(dtype), digits)};
  return {digits, whole < 0 ? Binding::kUnary : Binding::kPrimary};
}

namespace {

Spelled spell_atom(Co& co, const ir::Atom& atom) {
  if (atom.kind == ir::AtomKind::kVar) {
    const auto index = co.indices.find(atom.var);
    return {index != co.indices.end() ? index->second : co.var_names[atom.var.index]};
  }
  const Spelled left = spell(co, *atom.left);
  const Spelled right = spell(co, *atom.right);
  if (atom.kind == ir::AtomKind::kFloorDiv || atom.kind == ir::AtomKind::kMod) {
    const bool divides = atom.kind == ir::AtomKind::kFloorDiv;
    if (!ir::always_less_equal(co.function, ir::Expr(0), *atom.left)) {
      // `/` and `%` go towards 0, these towards less.
      const std::string below = format("__aligndown({}, {})", left.text, right.text);
      if (divides)
        return {format("{} / {}", below, bracketed(right, Binding::kUnary)), Binding::kProduct};
      return {format("{} - {}", bracketed(left, Binding::kSum), below), Binding::kSum};
    }
    return {format("{} {} {}", bracketed(left, Binding::kProduct), divides ? '/' : '%',
                   bracketed(right, Binding::kUnary)),
            Binding::kProduct};
  }
  const std::string_view function = atom.kind == ir::AtomKind::kCDiv  ? "cdiv"
                                    : atom.kind == ir::AtomKind::kMin ? "__min"
                                                                      : "__max";
  return {format("{}({}, {})", function, left.text, right.text)};
}

// The product without its sign.
Spelled spell_term(Co& co, const ir::Term& term) {
  // Of 64 bits without a sign: the least coefficient without its sign is no s64.
  const auto bits = static_cast<std::uint64_t>(term.coefficient);
  const std::uint64_t coefficient = term.coefficient < 0 ? 0 - bits : bits;
  if (term.atoms.empty()) return {format("{}", coefficient)};
  std::string text = coefficient == 1 ? "" : format("{}", coefficient);
  Binding binding = Binding::kProduct;
  for (const ir::Atom& atom : term.atoms) {
    const Spelled factor = spell_atom(co, atom);
    if (text.empty()) {
      text = factor.text;
      binding = factor.binding;
      continue;
    }
    text += " * " + bracketed(factor, Binding::kUnary);
    binding = Binding::kProduct;
  }
  return {text, binding};
}

}  // namespace

Spelled spell(Co& co, const ir::Expr& expr) {
  // A positive term comes first, so that no minus stands alone.
  std::vector<ir::Term> terms = expr.terms();
  std::stable_partition(terms.begin(), terms.end(),
                        [](const ir::Term& term) { return term.coefficient > 0; });
  if (terms.empty()) return {"0"};
  const Spelled first = spell_term(co, terms[0]);
  std::string text =
      terms[0].coefficient < 0 ? "-" + bracketed(first, Binding::kUnary) : first.text;
  if (terms.size() == 1) {
    return {text, terms[0].coefficient < 0 ? Binding::kUnary : first.binding};
  }
  for (std::size_t i = 1; i < terms.size(); ++i) {
    text += terms[i].coefficient < 0 ? " - " : " + ";
    text += bracketed(spell_term(co, terms[i]), Binding::kProduct);
  }
  return {text, Binding::kSum};
}

std::string spell_text(Co& co, const ir::Expr& expr) { return spell(co, expr).text; }

std::string list(Co& co, const std::vector<ir::Expr>& exprs) {
  return join(exprs, ", ", [&](const ir::Expr& e) { return spell_text(co, e); });
}

std::string event(Co& co, ir::ValueId value, const ir::Expr& slot) {
  const auto& type = std::get<ir::EventType>(co.function.type(value));
  if (type.slots == 1) return name_of(co, value);
  return format("{}[{}]", name_of(co, value), spell_text(co, slot));
}

}  // namespace kiln::emit_co
