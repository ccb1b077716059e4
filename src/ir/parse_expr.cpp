#include <charconv>

#include "ir/parser.h"

namespace kiln::ir {

// expr    = ["-"] product { ("+" | "-") product }
// product = factor { "*" factor }
// factor  = number | variable | name "(" expr "," expr ")" | "(" expr ")" | "-" factor

bool Parser::expr(Expr& out) {
  const Span begin = peek().span;
  if (++depth_ > kDepthMax) return fail(begin, format("brackets nested above {}", kDepthMax));
  if (!product(out)) return false;
  while (at("+") || at("-")) {
    // The least number has no positive: its sign is its own.
    const bool plus = at_least_number() || advance().text == "+";
    Expr right;
    if (!product(right)) return false;
    out = plus ? out + right : out - right;
    if (!sized(out, begin)) return false;
  }
  --depth_;
  return true;
}

bool Parser::product(Expr& out) {
  const Span begin = peek().span;
  if (!factor(out)) return false;
  while (accept("*")) {
    Expr right;
    if (!factor(right)) return false;
    if (out.terms().size() * right.terms().size() > kTermsMax) {
      return fail(begin, format("a product of {} x {} terms, the limit is {}", out.terms().size(),
                                right.terms().size(), kTermsMax));
    }
    out = out * right;
    if (!sized(out, begin)) return false;
  }
  return true;
}

// Refuses what has left 64 bits or grown past any use.
bool Parser::sized(const Expr& expr, Span span) {
  if (expr.overflowed()) return fail(span, "an expression that leaves 64 bits");
  if (expr.terms().size() > kTermsMax) {
    return fail(span, format("a sum of {} terms, the limit is {}", expr.terms().size(), kTermsMax));
  }
  for (const Term& term : expr.terms()) {
    if (term.atoms.size() > kFactorsMax) {
      return fail(
          span, format("a product of {} factors, the limit is {}", term.atoms.size(), kFactorsMax));
    }
  }
  return true;
}

bool Parser::at_least_number() const {
  return at("-") && peek_next().text == "9223372036854775808";
}

bool Parser::factor(Expr& out) {
  if (at("-")) {
    if (at_least_number()) {
      advance();
      advance();
      out = Expr(INT64_MIN);
      return true;
    }
    const Span begin = advance().span;
    if (++depth_ > kDepthMax) return fail(begin, format("signs nested above {}", kDepthMax));
    if (!factor(out)) return false;
    --depth_;
    out = Expr(0) - out;
    return sized(out, begin);
  }
  if (accept("(")) return expr(out) && expect(")");
  if (peek_next().text == "(" && peek().kind == TokenKind::kWord) {
    const std::optional<AtomKind> kind = from_name<AtomKind>(peek().text);
    if (kind && *kind != AtomKind::kVar) return call(*kind, out);
  }
  return variable_or_number(out);
}

bool Parser::call(AtomKind kind, Expr& out) {
  const Span begin = advance().span;
  Expr left;
  Expr right;
  if (!expect("(") || !expr(left) || !expect(",") || !expr(right) || !expect(")")) return false;
  out = make_atom(kind, left, right);
  return sized(out, begin);
}

bool Parser::variable_or_number(Expr& out) {
  const Token& token = peek();
  if (token.kind != TokenKind::kWord) return fail_expected("an expression");
  if (token.text.front() >= '0' && token.text.front() <= '9') {
    std::int64_t number = 0;
    if (!value(number)) return false;
    out = Expr(number);
    return true;
  }
  VarId id;
  if (!value(id)) return false;
  out = Expr::var(id);
  return true;
}

// --- types

bool Parser::type(Type& out) {
  if (at("cell") && peek_next().text == "<") {
    advance();
    advance();
    CellType cell;
    if (!dtype(cell.dtype) || !expect(">")) return false;
    out = cell;
    return true;
  }
  if (accept("view")) return view_type(out);
  if (accept("frag")) return frag_type(out);
  if (accept("event")) {
    EventType event;
    if (!expect("<") || !value(event.slots) || !expect(">")) return false;
    out = event;
    return true;
  }
  if (accept("future")) {
    out = FutureType{};
    return true;
  }
  ScalarType scalar;
  if (!dtype(scalar.dtype)) return false;
  out = scalar;
  return true;
}

bool Parser::view_type(Type& out) {
  ViewType view;
  if (!expect("<") || !dtype(view.dtype) || !expect(",") || !value(view.space) || !expect(",") ||
      !value(view.shape) || !expect(">")) {
    return false;
  }
  out = std::move(view);
  return true;
}

namespace {

// "16x8"
bool read_extents(std::string_view text, std::int64_t& rows, std::int64_t& cols) {
  const std::size_t cross = text.find('x');
  if (cross == std::string_view::npos) return false;
  const char* end = text.data() + text.size();
  const auto left = std::from_chars(text.data(), text.data() + cross, rows);
  const auto right = std::from_chars(text.data() + cross + 1, end, cols);
  return left.ec == std::errc() && left.ptr == text.data() + cross && right.ec == std::errc() &&
         right.ptr == end;
}

}  // namespace

bool Parser::frag_type(Type& out) {
  FragType frag;
  if (!expect("<") || !value(frag.role) || !expect(",") || !dtype(frag.dtype) || !expect(",")) {
    return false;
  }
  if (!read_extents(peek().text, frag.rows, frag.cols)) {
    return fail_expected("extents as in `16x8`");
  }
  advance();
  if (!expect(">")) return false;
  out = frag;
  return true;
}

bool Parser::dtype(DType& out) {
  // Only canonical names, so that each type has one spelling.
  const std::optional<DType> found =
      peek().kind == TokenKind::kWord ? dtype_from_name(peek().text) : std::nullopt;
  if (!found || name(*found) != peek().text) return fail_expected("a type");
  out = *found;
  advance();
  return true;
}

}  // namespace kiln::ir
