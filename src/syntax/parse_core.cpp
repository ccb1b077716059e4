// Tokens, mistakes and recovery: what every parse function stands on.
#include <utility>

#include "syntax/lexer.h"
#include "syntax/parse.h"

namespace kiln::syntax {

namespace {

// Words that begin a statement whatever stands around them; recovery may stop at one.
constexpr Word kStatementWords[] = {
    Word::kParallel, Word::kForeach, Word::kWith,  Word::kWhile,    Word::kIf,
    Word::kReturn,   Word::kBreak,   Word::kYield, Word::kContinue, Word::kInthreads,
    Word::kDma,      Word::kTma,     Word::kMma,   Word::kFrag,     Word::kShared,
    Word::kLocal,    Word::kGlobal,  Word::kCpp,   Word::kAsm,      Word::kMutable,
    Word::kMdspan,   Word::kItuple};

std::string quoted(std::string_view text) { return format("`{}`", text); }

}  // namespace

Parser::Parser(const Sources& sources, const TileText& tile, const FileNames& names, ast::Ast& tree,
               Diagnostics& diags)
    : sources_(sources),
      tokens_(tile.tokens),
      names_(names),
      tree_(tree),
      diags_(diags),
      first_expr_(static_cast<std::uint32_t>(tree.exprs.size())) {}

const Token& Parser::peek(std::size_t ahead) const {
  return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}

bool Parser::at(TokenKind kind, std::size_t ahead) const { return peek(ahead).kind == kind; }

bool Parser::at(Word word, std::size_t ahead) const {
  if (ahead == 0 && misspelt_ != Word::kNone) return word == misspelt_;
  return peek(ahead).word == word && word != Word::kNone;
}

// An identifier that may be a user's name.
bool Parser::at_name(std::size_t ahead) const {
  return at(TokenKind::kIdentifier, ahead) && !is_reserved(peek(ahead).text) &&
         peek(ahead).text != "_";
}

bool Parser::at_member(Word word) const {
  return at(TokenKind::kDot) && peek(1).word == word && word != Word::kNone;
}

bool Parser::at_dtype(std::size_t ahead) const {
  if (!at(TokenKind::kIdentifier, ahead)) return false;
  const std::string_view text = peek(ahead).text;
  return dtype_from_name(text).has_value() || types_.contains(text) || names_.types.contains(text);
}

const Token& Parser::advance() {
  misspelt_ = Word::kNone;
  const Token& token = peek();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool Parser::accept(TokenKind kind) {
  if (!ok() || !at(kind)) return false;
  advance();
  return true;
}

bool Parser::accept(Word word) {
  if (!ok() || !at(word)) return false;
  advance();
  return true;
}

bool Parser::accept_member(Word word) {
  if (!ok() || !at_member(word)) return false;
  advance();
  advance();
  return true;
}

bool Parser::expect(TokenKind kind) {
  if (accept(kind)) return true;
  unexpected(spelling(kind));
  return false;
}

bool Parser::expect_word(Word word) {
  if (accept(word)) return true;
  unexpected(quoted(spelling(word)));
  return false;
}

// Like expect, for an opening bracket: counts it, so that recovery can leave it again.
bool Parser::open(TokenKind kind) {
  if (!expect(kind)) return false;
  ++open_groups_;
  return true;
}

bool Parser::close(TokenKind kind, const Token& opener) {
  if (accept(kind)) {
    --open_groups_;
    return true;
  }
  if (can_report()) {
    const std::string_view closer = kind == TokenKind::kRightParen     ? ")"
                                    : kind == TokenKind::kRightBracket ? "]"
                                    : kind == TokenKind::kRightBrace   ? "}"
                                                                       : ">";
    diags_.report<diag::UnclosedBracket>(peek().span, closer, opener.text, found())
        .label(opener.span, "opened here")
        .help("close it with `{}`", closer)
        .emit();
  }
  panic_ = true;
  return false;
}

Span Parser::last_span() const { return tokens_[at_ == 0 ? 0 : at_ - 1].span; }

Span Parser::since(const Token& first) const {
  return &first < &tokens_[at_] ? cover(first.span, last_span()) : first.span;
}

std::string Parser::found() const {
  const Token& token = peek();
  if (token.kind == TokenKind::kEnd) return std::string(end_);
  if (token.kind == TokenKind::kString) return "a string";
  constexpr std::size_t kShownMax = 40;
  if (token.text.size() <= kShownMax) return quoted(token.text);
  return quoted(std::string(token.text.substr(0, kShownMax)) + "...");
}

void Parser::unexpected(std::string_view wanted, const std::string& help) {
  if (can_report()) {
    diags_.report<diag::UnexpectedToken>(peek().span, wanted, found()).help_if(help).emit();
  }
  panic_ = true;
}

void Parser::unexpected_at(Span span, std::string_view wanted) {
  if (ok()) {
    diags_.report<diag::UnexpectedToken>(span, wanted, quoted(sources_.text(span))).emit();
  }
  panic_ = true;
}

// A `;` forgotten before something that can follow it is reported where it should stand, and
// nothing is skipped.
void Parser::expect_semicolon() {
  if (accept(TokenKind::kSemicolon) || !ok()) return;
  const bool plausible =
      peek().line_start || at(TokenKind::kRightBrace) || at(TokenKind::kEnd) || at_statement_word();
  if (!plausible || at(TokenKind::kUnknown)) {
    unexpected("`;`");
    return;
  }
  const Span last = last_span();
  const Span after = {last.file, last.end > last.begin ? last.end - 1 : last.end, last.end};
  diags_.report<diag::MissingSemicolon>(after).help("add a `;` here").emit();
}

bool Parser::at_statement_word() const {
  const auto& words = kStatementWords;
  return at(TokenKind::kIdentifier) &&
         std::find(std::begin(words), std::end(words), peek().word) != std::end(words);
}

// Ends a panic at the place where the next statement probably begins: after a `;`, before a `}` of
// the enclosing block, before the body of a broken head, or before a statement word on a new line.
void Parser::recover() {
  if (!panic_ || done_) return;
  panic_ = false;
  misspelt_ = Word::kNone;
  int depth = std::exchange(open_groups_, 0);
  int braces = 0;
  while (!at(TokenKind::kEnd)) {
    const Token& token = peek();
    const bool outside = braces == 0 && (depth <= 0 || token.line_start);
    if (outside && token.line_start && at_statement_word()) return;
    const bool ends_line = peek(1).line_start;
    const bool body = (header_ && ends_line) || (depth <= 0 && (header_ || ends_line));
    if (braces == 0 && token.kind == TokenKind::kLeftBrace && body) return;
    if (braces == 0 && token.kind == TokenKind::kSemicolon) {
      advance();
      return;
    }
    if (token.kind == TokenKind::kLeftParen || token.kind == TokenKind::kLeftBracket) ++depth;
    if (token.kind == TokenKind::kRightParen || token.kind == TokenKind::kRightBracket) --depth;
    if (token.kind == TokenKind::kLeftBrace) ++braces;
    if (token.kind == TokenKind::kRightBrace) {
      if (braces == 0 && depth <= 0) return;
      if (braces == 0 && token.line_start) return;
      if (braces > 0)
        --braces;
      else
        --depth;
    }
    advance();
  }
}

void Parser::enter() {
  if (++depth_ > kNestingMax) give_up(peek().span);
}

void Parser::give_up(Span span) {
  if (!done_) diags_.report<diag::NestingTooDeep>(span, kNestingMax).emit();
  done_ = true;
  panic_ = true;
  at_ = tokens_.size() - 1;
}

// Postfix chains need no recursion here, but whoever walks the tree recurses: so the height of
// every tree is kept within bounds while it grows. The left side of a binary operation adds none:
// whoever walks `a + b + c + ...` does so in a loop.
void Parser::measure_height(ExprId id) {
  int height = 1;
  const auto* binary = std::get_if<ast::BinaryExpr>(&tree_.exprs[id].node);
  for (const ExprId child : children(tree_.exprs[id].node)) {
    const int level = binary != nullptr && child == binary->left ? 0 : 1;
    if (child.valid()) height = std::max(height, heights_[child.index - first_expr_] + level);
  }
  heights_[id.index - first_expr_] = static_cast<std::uint16_t>(std::min(height, 0xffff));
  if (height > kNestingMax) give_up(span_of(id));
}

// ---- Small parts ----

ast::Name Parser::name(std::string_view what) {
  const Token& token = peek();
  if (!at(TokenKind::kIdentifier)) {
    unexpected(what);
    return {};
  }
  if (token.text == "_") {
    fail<diag::WildcardName>(token.span, "give it a name: `_` stands for a whole extent");
    return {};
  }
  if (is_reserved(token.text)) {
    fail<diag::ReservedName>(token.span, format("choose another name, such as `my_{}`", token.text),
                             token.text);
    return {};
  }
  advance();
  return {std::string(token.text), token.span};
}

std::vector<ast::Name> Parser::names(std::string_view what) {
  std::vector<Name> out{name(what)};
  while (accept(TokenKind::kComma)) out.push_back(name(what));
  return out;
}

std::vector<ast::Name> Parser::braced_names(std::string_view what) {
  const Token& opener = peek();
  open(TokenKind::kLeftBrace);
  std::vector<Name> out = names(what);
  close(TokenKind::kRightBrace, opener);
  return out;
}

// f, ns::f, ns::inner::f
std::string Parser::qualified_name(Span& span) {
  Name part = name("a function");
  span = part.span;
  std::string text = part.text;
  while (accept(TokenKind::kColonColon)) {
    part = name("a name after `::`");
    text += "::" + part.text;
    if (part.valid()) span = cover(span, part.span);
  }
  return text;
}

// At a type.
ast::Type Parser::type_here() {
  const Token& token = advance();
  if (const auto type = dtype_from_name(token.text)) return *type;
  ast::Type named;
  named.name = token.text;
  named.span = token.span;
  return named;
}

std::optional<ast::Type> Parser::dtype(std::string_view what) {
  const Token& token = peek();
  if (at_dtype()) return type_here();
  if (can_report()) {
    std::vector<std::string> types;
    for (int i = 0; i < kDTypeCount; ++i) {
      types.emplace_back(kiln::name(static_cast<DType>(i)));
    }
    diags_.report<diag::UnexpectedToken>(token.span, what, found())
        .help_if(at(TokenKind::kIdentifier) ? did_you_mean(token.text, types) : "")
        .emit();
  }
  panic_ = true;
  return std::nullopt;
}

std::string Parser::string_literal() {
  std::string value;
  if (!at(TokenKind::kString)) unexpected("a string");
  while (ok() && at(TokenKind::kString)) {
    const Token& token = advance();
    std::optional<std::size_t> bad;
    value += string_value(token.text, &bad);
    if (!bad) continue;
    Span escape = token.span;
    if (!token.definition.valid()) {
      escape.begin += static_cast<std::uint32_t>(*bad);
      escape.end = escape.begin + 2;
    }
    diags_.report<diag::UnknownEscape>(escape, token.text.substr(*bad, 2))
        .help(
            "the escapes are `\\n`, `\\t`, `\\\"` and `\\\\`; a raw string `R\"(...)\"` needs none")
        .emit();
  }
  return value;
}

std::optional<ast::PragmaStmt> Parser::pragma(const Sources& sources, const Token& token,
                                              Diagnostics& diags) {
  const auto end = token.span.end;
  Lexer lexer(sources, token.span.file, token.span.begin, end, nullptr);
  static_cast<void>(lexer.next());  // croq
  const Token intrinsic = lexer.next();
  const Token kind = lexer.next();
  Token part = lexer.next();
  ast::PragmaStmt pragma;
  pragma.kind =
      kind.text == "prefix" ? ast::PragmaStmt::Kind::kPrefix : ast::PragmaStmt::Kind::kNamespace;
  pragma.name = {std::string(part.text), part.span};
  const bool known = intrinsic.text == "intrinsic" &&
                     (kind.text == "prefix" || kind.text == "namespace") &&
                     part.kind == TokenKind::kIdentifier;
  for (part = lexer.next(); part.kind == TokenKind::kColonColon; part = lexer.next()) {
    const Token inner = lexer.next();
    pragma.name.text += "::" + std::string(inner.text);
    pragma.name.span = cover(pragma.name.span, inner.span);
  }
  if (known && part.kind == TokenKind::kEnd) return pragma;
  const std::string_view rest = token.text.substr(std::min<std::size_t>(5, token.text.size()));
  diags.report<diag::UnknownPragma>(token.span, rest)
      .help("write `intrinsic prefix NAME_` or `intrinsic namespace NAME`")
      .emit();
  return std::nullopt;
}

}  // namespace kiln::syntax
