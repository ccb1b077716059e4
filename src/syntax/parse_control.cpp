// Statements with a body: parallel, with, foreach, while, if, inthreads; and attributes.
#include "syntax/parse.h"

namespace kiln::syntax {

// ---- Attributes ----

// [[launch_bounds(_, 2)]] parallel ...   [[schedule(k_tiles(1, 0))]] mma.row.row ...
ast::StmtId Parser::attributed() {
  const Token& first = peek();
  if (peek(2).text == "expect") return expectation();
  std::vector<ast::Attribute> written = attributes();
  if (at(Word::kParallel)) return parallel(std::move(written));
  if (at(Word::kForeach)) return foreach (std::move(written));
  if (at(Word::kMma)) {
    advance();
    return mma_exec(first, {}, std::move(written));
  }
  if (at(TokenKind::kIdentifier) && at(TokenKind::kEqual, 1) && peek(2).word == Word::kMma) {
    const ExprId future = expression();
    advance();
    advance();
    return mma_exec(first, future, std::move(written));
  }
  unexpected("`parallel`, `foreach` or `mma` after an attribute");
  return stmt(ast::ErrorStmt{}, first);
}

// [[expect({ ... })]] statement   [[expect(value)]] statement
ast::StmtId Parser::expectation() {
  const Token& first = peek();
  ast::ExpectStmt node;
  open(TokenKind::kLeftBracket);
  open(TokenKind::kLeftBracket);
  node.word_span = advance().span;
  const Token& opener = peek();
  open(TokenKind::kLeftParen);
  if (at(TokenKind::kLeftBrace)) {
    node.body = statement();
  } else {
    node.value = expression();
  }
  close(TokenKind::kRightParen, opener);
  close(TokenKind::kRightBracket, first);
  close(TokenKind::kRightBracket, first);
  if (!ok()) return stmt(ast::ErrorStmt{}, first);
  node.statement = statement();
  return stmt(node, first);
}

std::vector<ast::Attribute> Parser::attributes() {
  std::vector<ast::Attribute> out;
  while (ok() && at(TokenKind::kLeftBracket) && at(TokenKind::kLeftBracket, 1)) {
    const Token& opener = peek();
    open(TokenKind::kLeftBracket);
    open(TokenKind::kLeftBracket);
    do {
      out.push_back(attribute());
    } while (accept(TokenKind::kComma));
    close(TokenKind::kRightBracket, opener);
    close(TokenKind::kRightBracket, opener);
  }
  return out;
}

ast::Attribute Parser::attribute() {
  const Token& first = peek();
  ast::Attribute out;
  if (accept(Word::kLaunchBounds)) {
    out.kind = ast::Attribute::Kind::kLaunchBounds;
  } else if (accept(Word::kMaxnreg)) {
    out.kind = ast::Attribute::Kind::kMaxnreg;
  } else if (accept(Word::kSchedule)) {
    out.kind = ast::Attribute::Kind::kSchedule;
    const Token& opener = peek();
    open(TokenKind::kLeftParen);
    expect_word(Word::kKTiles);
    out.args = bracketed_list(TokenKind::kLeftParen);
    close(TokenKind::kRightParen, opener);
    out.span = since(first);
    return out;
  } else if (first.text == "pipeline") {
    advance();
    out.kind = ast::Attribute::Kind::kPipeline;
    if (!at(TokenKind::kLeftParen)) {  // the number is the compiler's choice
      out.span = since(first);
      return out;
    }
  } else if (first.text == "persistent") {
    advance();
    out.kind = ast::Attribute::Kind::kPersistent;
    out.span = since(first);
    return out;
  } else if (first.text == "order") {
    advance();
    out.kind = ast::Attribute::Kind::kOrder;
  } else if (first.text == "threads") {
    advance();
    out.kind = ast::Attribute::Kind::kThreads;
  } else {
    fail<diag::UnknownAttribute>(
        first.span,
        did_you_mean(first.text, {"expect", "launch_bounds", "maxnreg", "order", "persistent",
                                  "pipeline", "schedule", "threads"}),
        first.text);
  }
  out.args = bracketed_list(TokenKind::kLeftParen);
  out.span = since(first);
  return out;
}

// ---- parallel ----

ast::StmtId Parser::parallel() { return parallel(std::vector<ast::Attribute>{}); }

ast::StmtId Parser::parallel(std::vector<ast::Attribute> attributes) {
  const Token& first = peek();
  header_ = true;
  advance();
  ast::ParallelStmt node;
  node.word_span = first.span;
  node.attributes = std::move(attributes);
  const Token& dot = peek();
  node.is_async = accept_member(Word::kAsync);
  if (node.is_async) node.async_span = since(dot);
  if (accept(TokenKind::kLess)) {
    node.stream = name("the name of a stream");
    expect(TokenKind::kGreater);
  }
  do {
    node.groups.push_back(parallel_group());
  } while (accept(TokenKind::kComma));
  node.body = body();
  return stmt(std::move(node), first);
}

ast::ParallelGroup Parser::parallel_group() {
  const Token& first = peek();
  ast::ParallelGroup group;
  parallel_names(group);
  expect_word(Word::kBy);
  const ContextScope scope(*this, {.before_body = true});
  if (at(TokenKind::kLeftBracket)) {
    group.brackets = true;
    group.bounds = bracketed_list(TokenKind::kLeftBracket);
  } else {
    group.bounds.push_back(expression());
  }
  if (accept(TokenKind::kColon)) parallel_level(group);
  group.span = since(first);
  return group;
}

// Nothing, `_`, `x`, `{x, y}` or `t = {x, y}`.
void Parser::parallel_names(ast::ParallelGroup& group) {
  if (!ok() || at(Word::kBy)) return;
  if (peek().text == "_" && at(Word::kBy, 1)) {
    advance();
    return;
  }
  if (!at(TokenKind::kLeftBrace)) {
    Name name = this->name("the name of a parallel variable");
    if (!accept(TokenKind::kEqual)) {
      group.names.push_back(std::move(name));
      return;
    }
    group.tuple = std::move(name);
  }
  group.braces = true;
  group.names = braced_names("the name of a parallel variable");
}

void Parser::parallel_level(ast::ParallelGroup& group) {
  const Token& first = peek();
  group.level = level();
  group.level_span = since(first);
  if (group.level == ast::Level::kDevice && at(TokenKind::kLeftParen)) {
    const Token& opener = peek();
    open(TokenKind::kLeftParen);
    group.level_argument = name("the name of a device");
    close(TokenKind::kRightParen, opener);
  }
  if (accept(TokenKind::kLess)) {
    expect_word(Word::kCooperative);
    expect(TokenKind::kGreater);
    group.cooperative = true;
  }
}

std::optional<ast::Level> Parser::level() {
  const Token& token = peek();
  if (accept(TokenKind::kGroup4)) return ast::Level::kGroup4;
  if (at(Word::kGroup) && at(TokenKind::kMinus, 1)) {
    const Span written = cover(token.span, peek(2).span);
    fail<diag::GroupSuffix>(written, "a warpgroup is `group-4`, without blanks",
                            sources_.text(written));
    return std::nullopt;
  }
  if (accept(Word::kGroup)) return ast::Level::kGroup;
  if (accept(Word::kThread)) return ast::Level::kThread;
  if (accept(Word::kBlock)) return ast::Level::kBlock;
  if (accept(Word::kCluster)) return ast::Level::kCluster;
  if (accept(Word::kDevice)) return ast::Level::kDevice;
  if (token.text.starts_with("group-")) {
    fail<diag::GroupSuffix>(token.span, "a warpgroup is `group-4`", token.text);
  } else if (at(TokenKind::kIdentifier)) {
    fail<diag::UnknownLevel>(
        token.span,
        did_you_mean(token.text, {"block", "group-4", "group", "thread", "cluster", "device"}),
        token.text);
  } else {
    unexpected("a level such as `block`");
  }
  return std::nullopt;
}

// ---- with, foreach ----

// v in 8, {a, b} in [4, 8], t = {a, b} in s.span
ast::WithItem Parser::with_item() {
  const Token& first = peek();
  ast::WithItem item;
  if (!at(TokenKind::kLeftBrace)) {
    item.name = name("the name of a loop variable");
    item.braces = accept(TokenKind::kEqual);
  } else {
    item.braces = true;
  }
  if (item.braces) item.elements = braced_names("the name of a loop variable");
  expect_word(Word::kIn);
  item.bounds = expression(Context{.before_body = true});
  item.span = since(first);
  return item;
}

ast::StmtId Parser::with() {
  const Token& first = peek();
  header_ = true;
  advance();
  ast::WithStmt node;
  do {
    node.items.push_back(with_item());
  } while (accept(TokenKind::kComma));
  if (accept(Word::kWhere)) {
    do {
      ast::Tie tie;
      tie.left = name("a loop variable");
      expect(TokenKind::kTie);
      tie.right = name("a loop variable");
      node.ties.push_back(std::move(tie));
    } while (accept(TokenKind::kComma));
  }
  node.body = body();
  return stmt(std::move(node), first);
}

// A WithItem, or a variable with its range: v, v(1:), c = v(:-1).
ast::ForeachItem Parser::foreach_item() {
  const Token& first = peek();
  ast::ForeachItem item;
  const bool tuple =
      at(TokenKind::kLeftBrace) || (at(TokenKind::kEqual, 1) && at(TokenKind::kLeftBrace, 2));
  if (tuple || at(Word::kIn, 1)) {
    item.declares = with_item();
  } else {
    item.variable = name("a loop variable");
    if (accept(TokenKind::kEqual)) {
      item.local = std::move(item.variable);
      item.variable = name("a loop variable");
    }
    if (ok() && at(TokenKind::kLeftParen)) foreach_range(item);
    if (in_is_missing()) unexpected("`in`");
  }
  item.span = since(first);
  return item;
}

// After the variable of a foreach: what stands here can only be the bounds of a declaration.
bool Parser::in_is_missing() const {
  if (!ok() || peek().line_start) return false;
  if (at(TokenKind::kInteger)) return true;
  if (at(TokenKind::kLeftBracket)) return !at(TokenKind::kLeftBracket, 1);
  return at_name() && peek().word == Word::kNone && at(TokenKind::kLeftBrace, 1);
}

// (low:high:step), where `::` is two colons.
void Parser::foreach_range(ast::ForeachItem& item) {
  const Token& opener = peek();
  const ContextScope scope(*this, Context{});
  open(TokenKind::kLeftParen);
  item.ranged = true;
  ExprId* const parts[] = {&item.low, &item.high, &item.step};
  std::size_t part = 0;
  while (ok() && !at(TokenKind::kRightParen)) {
    if (at(TokenKind::kColon) || at(TokenKind::kColonColon)) {
      part += advance().kind == TokenKind::kColonColon ? 2 : 1;
    } else if (part < 3 && !parts[part]->valid()) {
      *parts[part] = expression();
    } else {
      unexpected("`)`");
    }
  }
  if (ok() && (part == 0 || part > 2)) unexpected("a range such as `1:-1`");
  close(TokenKind::kRightParen, opener);
}

ast::LoopSuffix Parser::loop_suffix() {
  const Token& first = peek();
  ast::LoopSuffix suffix;
  if (accept(Word::kUnroll)) {
    if (at(TokenKind::kLeftParen)) {
      const Token& opener = peek();
      open(TokenKind::kLeftParen);
      suffix.factor = expression();
      close(TokenKind::kRightParen, opener);
    }
  } else if (accept(Word::kVectorize)) {
    suffix.kind = ast::LoopSuffix::Kind::kVectorize;
    const Token& opener = peek();
    open(TokenKind::kLeftParen);
    suffix.variable = name("a loop variable");
    expect(TokenKind::kComma);
    suffix.factor = expression();
    close(TokenKind::kRightParen, opener);
  } else {
    unexpected("`unroll` or `vectorize`");
  }
  suffix.span = since(first);
  return suffix;
}

ast::StmtId Parser::foreach () { return foreach (std::vector<ast::Attribute>{}); }

ast::StmtId Parser::foreach (std::vector<ast::Attribute> attributes) {
  const Token& first = peek();
  header_ = true;
  advance();
  ast::ForeachStmt node;
  node.attributes = std::move(attributes);
  do {
    node.items.push_back(foreach_item());
  } while (accept(TokenKind::kComma));
  if (accept(TokenKind::kColon)) {
    do {
      node.suffixes.push_back(loop_suffix());
    } while (accept(TokenKind::kComma));
  }
  node.body = body();
  return stmt(std::move(node), first);
}

// ---- while, if, inthreads ----

ast::StmtId Parser::while_loop() {
  const Token& first = peek();
  header_ = true;
  advance();
  ast::WhileStmt node;
  const Token& opener = peek();
  open(TokenKind::kLeftParen);
  node.condition = expression();
  close(TokenKind::kRightParen, opener);
  node.body = body();
  return stmt(node, first);
}

ast::StmtId Parser::if_statement() {
  const Token& first = peek();
  header_ = true;
  advance();
  ast::IfStmt node;
  node.is_constexpr = accept(Word::kConstexpr);
  const Token& opener = peek();
  open(TokenKind::kLeftParen);
  node.condition = node.is_constexpr ? constant_value() : expression();
  close(TokenKind::kRightParen, opener);
  node.then_body = body();
  if (accept(Word::kElse)) node.else_body = body();
  return stmt(node, first);
}

ast::StmtId Parser::inthreads() {
  const Token& first = peek();
  header_ = true;
  advance();
  ast::InthreadsStmt node;
  node.word_span = first.span;
  node.is_async = accept_member(Word::kAsync);
  const Token& opener = peek();
  open(TokenKind::kLeftParen);
  node.condition = expression();
  close(TokenKind::kRightParen, opener);
  node.body = body();
  return stmt(node, first);
}

}  // namespace kiln::syntax
