// `template <type T = bf16, [[tune(2, 3, 4)]] int STAGES = 4> requires (STAGES >= 2)`
#include "syntax/parse.h"

namespace kiln::syntax {

// Constants are integers, bools and types; `s32` says as much as `int`.
std::optional<ast::ConstantStmt::Kind> Parser::constant_kind(std::string_view what) {
  const Token& token = peek();
  if (token.text == "type") {
    advance();
    return ast::ConstantStmt::Kind::kType;
  }
  const auto type = dtype_from_name(token.text);
  const bool fits = type && (is_integer(*type) || *type == DType::kBool);
  if (!fits || !at(TokenKind::kIdentifier)) {
    unexpected(what);
    return std::nullopt;
  }
  advance();
  return *type == DType::kBool ? ast::ConstantStmt::Kind::kBool : ast::ConstantStmt::Kind::kInteger;
}

void Parser::template_head(ast::Template& templ, const Bound& bound) {
  advance();  // template
  const Token& opener = peek();
  expect(TokenKind::kLess);
  {
    const ContextScope scope(*this, {.in_angles = true});
    do {
      templ.params.push_back(template_param(bound));
    } while (accept(TokenKind::kComma));
  }
  if (ok() && !accept(TokenKind::kGreater)) close(TokenKind::kGreater, opener);
  if (accept(Word::kRequires)) templ.condition = constant_value();
}

ast::TemplateParam Parser::template_param(const Bound& bound) {
  const Token& first = peek();
  ast::TemplateParam param;
  if (at(TokenKind::kLeftBracket) && at(TokenKind::kLeftBracket, 1)) {
    open(TokenKind::kLeftBracket);
    open(TokenKind::kLeftBracket);
    if (ok() && peek().text != "tune") {
      fail<diag::UnknownAttribute>(peek().span, did_you_mean(peek().text, {"tune"}), peek().text);
    } else {
      advance();
    }
    const bool outer = std::exchange(takes_types_, true);
    param.tune = bracketed_list(TokenKind::kLeftParen);
    takes_types_ = outer;
    close(TokenKind::kRightBracket, first);
    close(TokenKind::kRightBracket, first);
  }
  param.kind = constant_kind("`int`, `bool` or `type`").value_or(param.kind);
  param.name = name("the name of a template parameter");
  const bool is_type = param.kind == ast::ConstantStmt::Kind::kType;
  if (is_type && param.name.valid()) types_.insert(param.name.text);
  if (accept(TokenKind::kEqual)) param.fallback = constant_value();
  if (const auto found = bound.find(param.name.text); found != bound.end()) {
    param.bound = found->second;
  }
  param.span = since(first);
  return param;
}

ast::ExprId Parser::bound_value() {
  const Token& first = peek();
  end_ = "the end of the value";
  const ExprId value = constant_value();
  if (ok() && !at(TokenKind::kEnd)) unexpected("one value");
  return ok() ? value : expr(ast::ErrorExpr{}, first.span);
}

ast::StmtId Parser::constant_region() {
  const Token& first = peek();
  end_ = "the end of the constant";
  const StmtId id = constant();
  if (!panic_) return id;
  // What has a name is there, and nobody asks for its value.
  ast::ConstantStmt node = *tree_.as<ast::ConstantStmt>(id);
  std::erase_if(node.items, [](const auto& item) { return !item.name.valid(); });
  for (ast::ConstantStmt::Item& item : node.items) item.value = {};
  return stmt(std::move(node), first);
}

}  // namespace kiln::syntax
