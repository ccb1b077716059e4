// Statements: which one begins here, and the simple ones.
#include "syntax/foreign.h"
#include "syntax/parse.h"

namespace kiln::syntax {

namespace {

// What a misspelt first word may have meant.
constexpr Word kFirstWords[] = {
#define KILN_WORD_STATEMENT(word, follow, parse) Word::k##word,
#define KILN_ALSO(word, follow, parse) Word::k##word,
#include "syntax/statement.def"
    Word::kShared, Word::kLocal,  Word::kGlobal, Word::kMutable,
    Word::kFrag,   Word::kMdspan, Word::kItuple, Word::kEvent};
constexpr Word kEngines[] = {Word::kDma, Word::kTma, Word::kMma};
constexpr Word kEngineMembers[] = {Word::kCopy,  Word::kLoad,  Word::kPad, Word::kTransp,
                                   Word::kAny,   Word::kFill,  Word::kRow, Word::kCol,
                                   Word::kStore, Word::kCommit};

template <std::size_t N>
std::vector<std::string> spellings(const Word (&words)[N]) {
  std::vector<std::string> out;
  for (const Word word : words) out.emplace_back(spelling(word));
  return out;
}

template <std::size_t N>
bool contains(const Word (&words)[N], Word word) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

std::optional<ast::AssignOp> assign_op(TokenKind kind) {
  if (kind == TokenKind::kEqual) return ast::AssignOp::kSet;
  if (kind == TokenKind::kPlusEqual) return ast::AssignOp::kAdd;
  if (kind == TokenKind::kMinusEqual) return ast::AssignOp::kSubtract;
  if (kind == TokenKind::kStarEqual) return ast::AssignOp::kMultiply;
  if (kind == TokenKind::kSlashEqual) return ast::AssignOp::kDivide;
  if (kind == TokenKind::kPercentEqual) return ast::AssignOp::kRemainder;
  return std::nullopt;
}

std::string rotate_help(bool is_swap, std::size_t count) {
  if (count > 2) return "use `rotate` for more than two";
  return is_swap ? "as in `swap f, g;`" : "as in `rotate(f, g, h);`";
}

}  // namespace

ast::StmtId Parser::block() {
  const Token& first = peek();
  ast::BlockStmt node;
  if (!expect(TokenKind::kLeftBrace)) return stmt(ast::ErrorStmt{}, first);
  while (!done_ && !at(TokenKind::kRightBrace) && !at(TokenKind::kEnd)) {
    node.body.push_back(statement());
  }
  if (!done_) accept(TokenKind::kRightBrace);
  return stmt(std::move(node), first);
}

// One statement, with recovery: afterwards there is no panic.
ast::StmtId Parser::statement() {
  const DepthScope depth(*this);
  const Token& first = peek();
  const std::size_t before = at_;
  const bool outer_header = std::exchange(header_, false);
  const int outer_groups = std::exchange(open_groups_, 0);
  const Context outer_context = std::exchange(context_, {});
  const bool outer_broken = std::exchange(broken_head_, false);
  StmtId id = ok() ? statement_here() : stmt(ast::ErrorStmt{}, first);
  const bool was_panic = panic_;
  if (panic_ && !done_) {
    recover();
    if (at_ == before && !at(TokenKind::kRightBrace) && !at(TokenKind::kEnd)) advance();
  }
  if (panic_ || broken_head_ || was_panic) id = stmt(ast::ErrorStmt{}, first);
  header_ = outer_header;
  broken_head_ = outer_broken;
  open_groups_ = outer_groups;
  context_ = outer_context;
  if (diags_.error_count() > Diagnostics::kErrorsMax) {
    done_ = true;
    at_ = tokens_.size() - 1;
  }
  return id;
}

// After the head of a statement: `{...}`, one statement, or `;`. A broken head does not hide the
// mistakes of its body.
ast::StmtId Parser::body() {
  if (panic_ && !done_) {
    recover();
    header_ = false;
    const StmtId id = at(TokenKind::kLeftBrace) ? statement() : stmt(ast::ErrorStmt{}, peek());
    broken_head_ = true;
    return id;
  }
  header_ = false;
  if (at(TokenKind::kRightBrace) || at(TokenKind::kEnd)) {
    unexpected("a statement");
    return stmt(ast::ErrorStmt{}, peek());
  }
  return statement();
}

ast::StmtId Parser::statement_here() {
  const Token& first = peek();
  if (at(TokenKind::kLeftBrace)) return block();
  if (accept(TokenKind::kSemicolon)) return stmt(ast::EmptyStmt{}, first);
  if (at(TokenKind::kPragma)) return pragma_statement();
  if (at(TokenKind::kLeftBracket) && at(TokenKind::kLeftBracket, 1)) return attributed();
  if (at(TokenKind::kIdentifier)) {
    if (at(Word::kCo)) return nested_function();
    if (first.text == "for" && at(TokenKind::kLeftParen, 1)) return foreign_loop();
    if (misspelt_statement()) return stmt(ast::ErrorStmt{}, first);
    const Word word = misspelt_ != Word::kNone ? misspelt_ : first.word;
    const StmtId id = word_statement(word);
    return id.valid() ? id : name_statement();
  }
  const bool operand = at(TokenKind::kPlusPlus) || at(TokenKind::kMinusMinus);
  if (operand) return name_statement();
  unexpected("a statement");
  return stmt(ast::ErrorStmt{}, first);
}

const Parser::WordRow Parser::kWordRows[] = {
#define KILN_WORD_STATEMENT(word, follow, parse) {Word::k##word, follow, &Parser::parse},
#define KILN_ALSO(word, follow, parse) {Word::k##word, follow, &Parser::parse},
#include "syntax/statement.def"
};

// The statement that begins with a word of the language; an invalid id when the word is only a name
// here.
ast::StmtId Parser::word_statement(Word word) {
  if (at_dtype() || word == Word::kMutable || word == Word::kShared || word == Word::kLocal ||
      word == Word::kGlobal || word == Word::kFrag || word == Word::kMdspan ||
      word == Word::kItuple ||
      (word == Word::kEvent && (at(TokenKind::kIdentifier, 1) || at(TokenKind::kLess, 1)))) {
    return declaration();
  }
  for (const WordRow& row : kWordRows) {
    if (row.word == word && follows(row.follow)) return (this->*row.parse)();
  }
  return {};
}

// Whether one of the tokens comes behind the current one.
bool Parser::follows(unsigned tokens) const {
  return tokens == kAnything || ((tokens & kName) != 0 && at(TokenKind::kIdentifier, 1)) ||
         ((tokens & kParenthesis) != 0 && at(TokenKind::kLeftParen, 1)) ||
         ((tokens & kBrace) != 0 && at(TokenKind::kLeftBrace, 1)) ||
         ((tokens & kDot) != 0 && at(TokenKind::kDot, 1)) ||
         ((tokens & kNot) != 0 && at(TokenKind::kNot, 1));
}

ast::StmtId Parser::else_alone() {
  const Token& first = peek();
  fail<diag::ElseWithoutIf>(first.span, "", "else", "if");
  advance();
  return stmt(ast::ErrorStmt{}, first);
}

// break; continue; yield;
ast::StmtId Parser::jump() {
  const Token& first = peek();
  const bool is_break = at(Word::kBreak);
  const bool is_continue = at(Word::kContinue);
  advance();
  expect_semicolon();
  if (is_break) return stmt(ast::BreakStmt{}, first);
  if (is_continue) return stmt(ast::ContinueStmt{}, first);
  return stmt(ast::YieldStmt{}, first);
}

// ---- Misspelt first words ----

// "did you mean `parallel`?" when the statement begins with a name in a place where only a word of
// the language can stand.
std::string Parser::statement_suggestion() const {
  const std::string_view text = peek().text;
  if (at(TokenKind::kDot, 1)) {
    return contains(kEngineMembers, peek(2).word) ? did_you_mean(text, spellings(kEngines)) : "";
  }
  if (at(TokenKind::kLeftParen, 1)) {
    std::size_t ahead = 2;
    for (int open = 1; open > 0 && !at(TokenKind::kEnd, ahead); ++ahead) {
      if (at(TokenKind::kLeftParen, ahead)) ++open;
      if (at(TokenKind::kRightParen, ahead)) --open;
    }
    const bool has_body = at(TokenKind::kLeftBrace, ahead) || at(TokenKind::kIdentifier, ahead);
    const bool missing_semicolon = peek(ahead).line_start && !at(TokenKind::kLeftBrace, ahead);
    if (!has_body || missing_semicolon) return "";
  }
  return did_you_mean(text, spellings(kFirstWords));
}

// A name before another name, a brace or a string begins no statement. Reports that, and when the
// meaning is clear lets the parser go on as if the word had been right. True when it is not.
bool Parser::misspelt_statement() {
  const Token& first = peek();
  const Token& next = peek(1);
  const bool same_line = !next.line_start;
  const bool joined =
      same_line && (next.kind == TokenKind::kIdentifier || next.kind == TokenKind::kLeftBrace ||
                    next.kind == TokenKind::kLeftParen || next.kind == TokenKind::kDot);
  const bool known = is_reserved(first.text) || first.word != Word::kNone || at_dtype() ||
                     names_.functions.contains(first.text);
  if (!joined || known || next.word == Word::kIn || next.word == Word::kBy) return false;
  const std::string suggestion = statement_suggestion();
  const bool clear = next.kind == TokenKind::kIdentifier;
  if (suggestion.empty() && !clear) return false;
  if (suggestion.empty() && at(TokenKind::kLeftBrace, 1)) return false;
  diags_.report<diag::UnknownStatement>(first.span, first.text)
      .help_if(suggestion.empty() ? foreign_help(first.text) : suggestion)
      .emit();
  const std::size_t from = suggestion.find('`') + 1;
  const std::size_t to = suggestion.find('`', from);
  misspelt_ = suggestion.empty() ? Word::kNone : word_from_text(suggestion.substr(from, to - from));
  if (misspelt_ != Word::kNone && misspelt_ != Word::kElse) return false;
  panic_ = true;
  return true;
}

// Passes over `( ... )` or `{ ... }`, or stops at the end. False when there is none here.
bool Parser::skip_group(TokenKind opener, TokenKind closer) {
  if (!at(opener)) return false;
  int depth = 0;
  do {
    if (at(opener)) ++depth;
    if (at(closer)) --depth;
    advance();
  } while (depth > 0 && !at(TokenKind::kEnd));
  return true;
}

// for (int i = 0; i < 8; i++) body
ast::StmtId Parser::foreign_loop() {
  const Token& first = advance();
  header_ = true;
  fail<diag::UnknownStatement>(first.span, "a loop is written `foreach i in [8]`", first.text);
  skip_group(TokenKind::kLeftParen, TokenKind::kRightParen);
  body();
  return stmt(ast::ErrorStmt{}, first);
}

// `__co__ void g(...) {...}` where a statement should stand: passed over as a whole.
ast::StmtId Parser::nested_function() {
  const Token& first = advance();
  diags_.report<diag::TileFunctionNested>(first.span)
      .help("close the braces of the outer function before it")
      .emit();
  while (!at(TokenKind::kEnd) && !at(TokenKind::kSemicolon) && !at(TokenKind::kLeftBrace) &&
         !at(TokenKind::kRightBrace)) {
    advance();
  }
  if (!skip_group(TokenKind::kLeftBrace, TokenKind::kRightBrace)) accept(TokenKind::kSemicolon);
  broken_head_ = true;
  return stmt(ast::ErrorStmt{}, first);
}

// ---- Statements that begin with a name ----

ast::StmtId Parser::name_statement() {
  const Token& first = peek();
  if (at_name() && at(TokenKind::kColon, 1)) return mdspan_decl();
  const ExprId value = expression();
  if (!ok()) return stmt(ast::ErrorStmt{}, first);
  if (assign_op(peek().kind)) return assignment(first, value);
  expect_semicolon();
  return stmt(ast::ExprStmt{value}, first);
}

ast::StmtId Parser::assignment(const Token& first, ExprId target) {
  const Token& op = advance();
  if (op.kind == TokenKind::kEqual && (at(Word::kDma) || at(Word::kTma) || at(Word::kMma))) {
    return named_operation(first, target);
  }
  if (op.kind == TokenKind::kEqual && at(TokenKind::kIdentifier) && at(TokenKind::kDot, 1) &&
      peek().word == Word::kNone && contains(kEngineMembers, peek(2).word) &&
      misspelt_statement()) {
    return stmt(ast::ErrorStmt{}, first);
  }
  if (misspelt_ != Word::kNone) return named_operation(first, target);
  ast::AssignStmt node{target, *assign_op(op.kind), op.span, {}};
  node.value = expression();
  const auto* name = tree_.as<ast::NameExpr>(target);
  if (ok() && name != nullptr && tree_.as<ast::ShapeExpr>(node.value) != nullptr) {
    fail<diag::ShapeBrackets>(op.span, "write `:` for a shape, or `{...}` for an ituple",
                              name->name, op.text);
  }
  expect_semicolon();
  return stmt(node, first);
}

// `h = dma...`, `mc = mma...`: at the engine's word.
ast::StmtId Parser::named_operation(const Token& first, ExprId target) {
  if (at(Word::kMma)) return mma(first, target);
  const auto* written = tree_.as<ast::NameExpr>(target);
  if (written == nullptr) {
    unexpected_at(span_of(target), "a name for the handle");
    return stmt(ast::ErrorStmt{}, first);
  }
  return move(first, {written->name, span_of(target)});
}

// ---- Simple statements ----

ast::StmtId Parser::return_statement() {
  const Token& first = advance();
  ast::ReturnStmt node;
  if (!at(TokenKind::kSemicolon) && !peek().line_start) node.value = expression();
  expect_semicolon();
  return stmt(node, first);
}

// swap f, g;  rotate(f, g, h);
ast::StmtId Parser::rotate() {
  const Token& first = peek();
  ast::RotateStmt node;
  node.is_swap = at(Word::kSwap);
  const std::string_view word = node.is_swap ? "swap" : "rotate";
  advance();
  const Token& opener = peek();
  const bool parens = accept(TokenKind::kLeftParen);
  if (parens) ++open_groups_;
  if (!parens || !at(TokenKind::kRightParen)) node.names = names("the name of a future");
  if (parens) close(TokenKind::kRightParen, opener);
  const std::size_t count = node.names.size();
  if (ok() && (count < 2 || (node.is_swap && count > 2))) {
    const std::string_view wanted = node.is_swap ? "2 names" : "2 or more names";
    diags_.report<diag::RotateOperands>(first.span, word, wanted, count)
        .help_if(rotate_help(node.is_swap, count))
        .emit();
    broken_head_ = true;
  }
  expect_semicolon();
  return stmt(std::move(node), first);
}

ast::StmtId Parser::sync() {
  if (at(TokenKind::kLeftParen, 3)) return {};  // sync.f(...): a call
  const Token& first = advance();
  ast::SyncStmt node;
  if (accept_member(Word::kShared)) {
    node.kind = ast::SyncKind::kShared;
  } else if (accept_member(Word::kLocal)) {
    node.kind = ast::SyncKind::kLocal;
  } else if (accept_member(Word::kGlobal)) {
    node.kind = ast::SyncKind::kGlobal;
  } else if (accept_member(Word::kBarrier)) {
    node.kind = ast::SyncKind::kBarrier;
  } else if (accept_member(Word::kFence)) {
    node.kind = ast::SyncKind::kFence;
  } else {
    const std::string_view word = peek(1).text;
    fail<diag::UnknownMember>(peek(1).span,
                              did_you_mean(word, {"shared", "local", "global", "barrier", "fence"}),
                              "sync", word);
  }
  if (node.kind == ast::SyncKind::kBarrier || node.kind == ast::SyncKind::kFence) {
    expect(TokenKind::kColon);
    node.level_span = peek().span;
    node.level = level();
  }
  if (node.kind == ast::SyncKind::kFence && accept(TokenKind::kLess)) {
    if (accept(Word::kShared))
      node.storage = ast::Storage::kShared;
    else if (accept(Word::kGlobal))
      node.storage = ast::Storage::kGlobal;
    else if (accept(Word::kLocal))
      node.storage = ast::Storage::kLocal;
    else
      unexpected("`shared`, `global` or `local`");
    expect(TokenKind::kGreater);
  }
  expect_semicolon();
  return stmt(node, first);
}

ast::StmtId Parser::call_statement() {
  const Token& first = peek();
  const ExprId call = device_call();
  expect_semicolon();
  return stmt(ast::CallStmt{call}, first);
}

ast::StmtId Parser::cpp() {
  const Token& first = advance();
  ast::CppStmt node;
  const Token& opener = peek();
  open(TokenKind::kLeftParen);
  const Token& text = peek();
  node.text = string_literal();
  node.text_span = since(text);
  close(TokenKind::kRightParen, opener);
  expect_semicolon();
  return stmt(std::move(node), first);
}

ast::AsmOperand Parser::asm_operand() {
  const Token& first = peek();
  ast::AsmOperand operand;
  if (accept(TokenKind::kLeftBracket)) {
    operand.name = name("the name of an operand");
    expect(TokenKind::kRightBracket);
  }
  operand.constraint = string_literal();
  const Token& opener = peek();
  open(TokenKind::kLeftParen);
  operand.value = expression();
  close(TokenKind::kRightParen, opener);
  operand.span = since(first);
  return operand;
}

std::vector<ast::AsmOperand> Parser::asm_operands() {
  std::vector<ast::AsmOperand> out;
  if (!at(TokenKind::kString) && !at(TokenKind::kLeftBracket)) return out;
  do {
    out.push_back(asm_operand());
  } while (accept(TokenKind::kComma));
  return out;
}

// __asm__ volatile ("template" : outputs : inputs : clobbers); any section may be empty, and `::`
// is two colons.
ast::StmtId Parser::assembly() {
  const Token& first = advance();
  ast::AsmStmt node;
  node.is_volatile = accept(Word::kVolatile);
  if (at(Word::kGoto)) fail<diag::AsmGoto>(peek().span, "");
  const Token& opener = peek();
  open(TokenKind::kLeftParen);
  node.text = string_literal();
  int section = 0;
  while (ok() && (at(TokenKind::kColon) || at(TokenKind::kColonColon))) {
    section += advance().kind == TokenKind::kColonColon ? 2 : 1;
    if (section == 1) {
      node.outputs = asm_operands();
    } else if (section == 2) {
      node.inputs = asm_operands();
    } else if (at(TokenKind::kString)) {
      do {
        node.clobbers.push_back(string_literal());
      } while (accept(TokenKind::kComma));
    }
  }
  close(TokenKind::kRightParen, opener);
  expect_semicolon();
  return stmt(std::move(node), first);
}

ast::StmtId Parser::assertion() {
  const Token& first = advance();
  ast::AssertStmt node;
  const Token& opener = peek();
  open(TokenKind::kLeftParen);
  node.condition = expression();
  if (accept(TokenKind::kComma)) node.message = string_literal();
  close(TokenKind::kRightParen, opener);
  expect_semicolon();
  return stmt(std::move(node), first);
}

ast::StmtId Parser::print() {
  const Token& first = peek();
  ast::PrintStmt node;
  node.newline = at(Word::kPrintln);
  advance();
  node.compile_time = accept(TokenKind::kNot);
  node.args = bracketed_list(TokenKind::kLeftParen);
  expect_semicolon();
  return stmt(std::move(node), first);
}

ast::StmtId Parser::pragma_statement() {
  const Token& first = advance();
  const auto parsed = pragma(sources_, first, diags_);
  if (!parsed) return stmt(ast::ErrorStmt{}, first);
  return stmt(*parsed, first);
}

}  // namespace kiln::syntax
