#include <algorithm>

#include "ir/parser.h"
#include "ir/print.h"

namespace kiln::ir {

// --- cursor

const Token& Parser::peek_next() const {
  return tokens_[std::min(position_ + 1, tokens_.size() - 1)];
}

const Token& Parser::advance() {
  const Token& token = tokens_[position_];
  if (position_ + 1 < tokens_.size()) ++position_;  // the end stays the end
  return token;
}

bool Parser::at(std::string_view text) const {
  const TokenKind kind = peek().kind;
  return (kind == TokenKind::kWord || kind == TokenKind::kPunctuation) && peek().text == text;
}

bool Parser::accept(std::string_view text) {
  if (!at(text)) return false;
  advance();
  return true;
}

bool Parser::expect(std::string_view text) {
  return accept(text) || fail_expected(format("`{}`", text));
}

bool Parser::take(TokenKind kind, std::string_view what, const Token*& out) {
  if (peek().kind != kind) return fail_expected(what);
  out = &advance();
  return true;
}

bool Parser::expect_line_end() {
  if (peek().first_of_line || at("}") || peek().kind == TokenKind::kEnd) return true;
  return fail_expected("the end of the line");
}

bool Parser::fail(Span span, std::string_view message) {
  mistake_ = diags_.report<diag::IrSyntax>(span, message).emit();
  return false;
}

bool Parser::fail_expected(std::string_view what) {
  const Token& seen = peek();
  if (seen.kind == TokenKind::kEnd) {
    return fail(seen.span, format("expected {}, found the end of the text", what));
  }
  const std::string_view sign = seen.kind == TokenKind::kValue    ? "%"
                                : seen.kind == TokenKind::kSymbol ? "@"
                                                                  : "";
  return fail(seen.span, format("expected {}, found `{}{}`", what, sign, seen.text));
}

bool Parser::fail_unknown(const Token& token, std::string_view what,
                          const std::vector<std::string>& known) {
  const std::string message = format("unknown {} `{}`", what, token.text);
  mistake_ = diags_.report<diag::IrSyntax>(token.span, message)
                 .help_if(did_you_mean(token.text, known))
                 .emit();
  return false;
}

// --- module

bool Parser::module(Module& out) {
  if (!expect("module")) return false;
  if (accept("arch")) {
    const Token* name = nullptr;
    if (!expect("=") || !take(TokenKind::kWord, "an architecture", name)) return false;
    out.arch = target::find_arch(name->text);
    if (out.arch == nullptr) {
      return fail(name->span, format("unknown architecture `{}`, known are {}", name->text,
                                     target::arch_names()));
    }
  }
  if (!expect("form") || !expect("=") || !value(out.form)) return false;
  if (accept("after") && (!expect("=") || !value(out.after))) return false;
  if (!expect_line_end()) return false;
  while (at("cuda")) {
    CudaPart& part = out.cuda.emplace_back();
    part.span = advance().span;
    if (!value(part.text) || !expect_line_end()) return false;
  }
  while (peek().kind != TokenKind::kEnd) {
    Function& function = out.functions.emplace_back();
    if (!this->function(function)) return false;
  }
  return true;
}

// --- functions

bool Parser::function(Function& out) {
  function_ = &out;
  values_.clear();
  vars_.clear();
  const Token* name = nullptr;
  if (!expect("func") || !take(TokenKind::kSymbol, "a name as in `@matmul`", name)) return false;
  out.name = std::string(name->text);
  out.span = name->span;
  if (!function_header() || !checks()) return false;
  return region(out.body) && expect("}") && expect_line_end();
}

// Types of parameters and extents of variables may mention any variable, so names are read first:
// variables, then their extents, then back to the parameters.
bool Parser::function_header() {
  if (!expect("(")) return false;
  const std::size_t params_at = position_;
  if (!skip_params() || !expect("{")) return false;
  const std::size_t vars_at = position_;
  if (!var_names()) return false;
  position_ = vars_at;
  if (!var_extents() || !named_indices()) return false;
  const std::size_t checks_at = position_;
  position_ = params_at;
  if (!params()) return false;
  position_ = checks_at;
  return true;
}

bool Parser::skip_params() {
  int open = 1;
  while (open > 0) {
    if (peek().kind == TokenKind::kEnd) return fail_expected("`)`");
    if (at("(")) ++open;
    if (at(")")) --open;
    advance();
  }
  return true;
}

bool Parser::params() {
  if (accept(")")) return true;
  do {
    if (!param()) return false;
  } while (accept(","));
  return expect(")");
}

bool Parser::param() {
  Param out;
  out.is_global = accept("global");
  out.is_reference = accept("ref");
  const Token* name = nullptr;
  Type type;
  if (!take(TokenKind::kValue, "a parameter as in `%lhs`", name) || !expect(":") ||
      !this->type(type) || !define_value(*name, std::move(type), {}, out.value)) {
    return false;
  }
  out.name = std::string(name->text);
  out.span = name->span;
  if (accept("as") && !value(out.var)) return false;
  function_->params.push_back(std::move(out));
  return true;
}

bool Parser::var_names() {
  while (at("var") && peek().first_of_line) {
    advance();
    const Token* name = nullptr;
    Var out;
    if (!take(TokenKind::kWord, "the name of a variable", name) || !expect(":") ||
        !value(out.kind)) {
      return false;
    }
    const char first = name->text.front();
    if (first == '.' || (first >= '0' && first <= '9')) {
      return fail(name->span, format("`{}` is no name of a variable", name->text));
    }
    out.name = std::string(name->text);
    out.span = name->span;
    const VarId id = function_->vars.push(std::move(out));
    if (!vars_.emplace(name->text, id).second) {
      return fail(name->span, format("`{}` is already declared", name->text));
    }
    while (!peek().first_of_line && peek().kind != TokenKind::kEnd) advance();
  }
  return true;
}

bool Parser::var_extents() {
  for (Var& var : function_->vars) {
    position_ += 4;  // var NAME : KIND, seen by var_names
    if (accept("<") && !expr(var.extent)) return false;
    if (!expect_line_end()) return false;
  }
  return true;
}

bool Parser::named_indices() {
  while (at("name") && peek().first_of_line) {
    advance();
    const Token* name = nullptr;
    NamedIndex out;
    if (!take(TokenKind::kWord, "the name of an index", name) || !expect("=") || !expr(out.value) ||
        !expect_line_end()) {
      return false;
    }
    out.name = std::string(name->text);
    function_->named.push_back(std::move(out));
  }
  return true;
}

bool Parser::checks() {
  while (at("check") && peek().first_of_line) {
    EntryCheck out;
    out.span = advance().span;
    if (!expr(out.left) || !value(out.relation) || !expr(out.right) || !value(out.message) ||
        !expect_line_end()) {
      return false;
    }
    function_->checks.push_back(std::move(out));
  }
  return true;
}

bool Parser::define_value(const Token& name, Type type, OpId def, ValueId& out) {
  out = function_->values.push({std::string(name.text), std::move(type), def});
  if (values_.emplace(name.text, out).second) return true;
  return fail(name.span, format("`%{}` is already defined", name.text));
}

Checked<Module> parse(Sources& sources, FileId file, Diagnostics& diags) {
  const std::vector<Token> tokens = lex(sources.text(file), file);
  Module module;
  Parser parser(tokens, diags);
  if (!parser.module(module)) return parser.mistake();
  return module;
}

}  // namespace kiln::ir
