// Data movement: dma and tma.
//
//   h = dma.copy.swiz<64>.async src.subspan(32, 32).at(i, k) => shared after f;
//
// Modifiers come in any order. `.zfill` on the source view is moved to the statement.
#include "syntax/parse.h"

namespace kiln::syntax {

namespace {

bool one_of(std::uint64_t value, std::initializer_list<std::uint64_t> values) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

ast::StmtId Parser::move() { return move(peek(), {}); }

ast::StmtId Parser::move(const Token& first, Name handle) {
  ast::MoveStmt node;
  node.handle = std::move(handle);
  node.engine = at(Word::kDma) ? ast::Engine::kDma : ast::Engine::kTma;
  const Token& engine = advance();
  Operation operation{std::string(spelling(node.engine)), engine.span};
  if (accept_member(Word::kAny)) {
    if (!node.handle.valid()) {
      fail<diag::HandleMissing>(since(engine),
                                format("name it, as in `f = {}.any;`", operation.text),
                                operation.text + ".any");
    }
    expect_semicolon();
    return stmt(ast::PlaceholderStmt{node.handle, node.engine}, first);
  }
  if (!move_op(node, operation)) return stmt(ast::ErrorStmt{}, first);
  move_config(node);
  while (ok() && at(TokenKind::kDot)) {
    if (!modifier(node, operation)) break;
  }
  source_and_target(node);
  if (accept(Word::kAfter)) node.after = name("the name of a future");
  if (ok() && node.is_async && !node.handle.valid() && !node.event.valid()) {
    diags_
        .report<diag::HandleMissing>(cover(engine.span, node.async_span), operation.text + ".async")
        .help("name it, as in `f = {}.async ...`, and `wait f`", operation.text)
        .emit();
    broken_head_ = true;
  }
  expect_semicolon();
  return stmt(std::move(node), first);
}

bool Parser::move_op(ast::MoveStmt& move, Operation& operation) {
  if (accept_member(Word::kCopy)) {
    move.op = ast::MoveOp::kCopy;
  } else if (accept_member(Word::kLoad)) {
    move.op = ast::MoveOp::kLoad;
  } else if (accept_member(Word::kPad)) {
    move.op = ast::MoveOp::kPad;
  } else if (accept_member(Word::kTransp)) {
    move.op = ast::MoveOp::kTransp;
  } else if (at(TokenKind::kDot) && at(TokenKind::kIdentifier, 1)) {
    const std::string_view word = peek(1).text;
    fail<diag::UnknownMember>(peek(1).span,
                              did_you_mean(word, {"copy", "load", "pad", "transp", "any"}),
                              operation.text, word);
    return false;
  } else {
    unexpected(format("an operation such as `{}.copy`", operation.text));
    return false;
  }
  operation.span = cover(operation.span, last_span());
  operation.text += "." + std::string(spelling(move.op));
  move.word_span = operation.span;
  return true;
}

// ---- .pad<{low}, {high}, {mid}, value> and .transp<1, 0> ----

void Parser::move_config(ast::MoveStmt& move) {
  if (move.op == ast::MoveOp::kPad) pad_config(move);
  if (move.op == ast::MoveOp::kTransp) transp_config(move);
}

void Parser::pad_config(ast::MoveStmt& move) {
  const Token& first = peek();
  if (!ok()) return;
  const std::vector<ExprId> parts = at(TokenKind::kLess) ? angle_list() : std::vector<ExprId>();
  ast::PadConfig pad;
  pad.span = parts.empty() ? move.word_span : since(first);
  std::vector<ExprId>* const lists[] = {&pad.low, &pad.high, &pad.middle};
  bool fits = parts.size() == 4;
  for (std::size_t i = 0; fits && i < 3; ++i) {
    const auto* tuple = tree_.as<ast::TupleExpr>(parts[i]);
    fits = tuple != nullptr;
    if (fits) *lists[i] = tuple->items;
  }
  if (!fits) {
    fail<diag::PadConfig>(pad.span, "as in `.pad<{0, 1}, {0, 1}, {0, 0}, 0>`",
                          spelling(move.engine));
    return;
  }
  pad.value = parts[3];
  move.pad = std::move(pad);
}

void Parser::transp_config(ast::MoveStmt& move) {
  const Token& first = peek();
  if (!ok()) return;
  if (at(TokenKind::kLess)) move.permutation = angle_list();
  move.permutation_span = move.permutation.empty() ? move.word_span : since(first);
  std::vector<bool> seen(move.permutation.size(), false);
  bool fits = !seen.empty();
  for (const ExprId id : move.permutation) {
    const auto value = literal_value(id);
    if (!value) continue;  // a name: its value is known later
    fits = fits && *value < seen.size() && !seen[*value];
    if (fits) seen[*value] = true;
  }
  if (fits) return;
  fail<diag::TranspConfig>(move.permutation_span,
                           "list every dimension once, as in `.transp<1, 0>`",
                           spelling(move.engine));
}

// ---- Modifiers ----

ast::Swizzle Parser::swizzle(const Token& dot) {
  ast::Swizzle swizzle;
  if (ok() && at(TokenKind::kLess)) {
    swizzle.bytes = angle_value();
    const auto value = literal_value(swizzle.bytes);
    if (ok() && value && !one_of(*value, {0, 1, 2, 3, 32, 64, 128})) {
      diags_.report<diag::SwizzleNumber>(span_of(swizzle.bytes), *value)
          .help("a swizzle is 32, 64 or 128 bytes wide, or 0 for none")
          .emit();
      broken_head_ = true;
    }
  }
  swizzle.span = cover(dot.span, last_span());
  return swizzle;
}

// .sp, .sp<2:4>, .sp<2, 4>
ast::Sparsity Parser::sparsity(const Token& dot) {
  ast::Sparsity sparsity;
  if (accept(TokenKind::kLess)) {
    const ContextScope scope(*this, {.in_angles = true});
    sparsity.kept = expression();
    if (!accept(TokenKind::kColon) && !accept(TokenKind::kComma)) unexpected("`:`");
    sparsity.of = expression();
    expect(TokenKind::kGreater);
  }
  sparsity.span = cover(dot.span, last_span());
  return sparsity;
}

void Parser::promote(ast::MoveStmt& move) {
  move.promote = angle_value();
  const auto value = literal_value(move.promote);
  if (ok() && value && !one_of(*value, {64, 128, 256})) {
    diags_.report<diag::PromoteNumber>(span_of(move.promote), *value)
        .help("the cache is promoted by 64, 128 or 256 bytes")
        .emit();
    broken_head_ = true;
  }
}

void Parser::eviction(ast::MoveStmt& move, ast::Eviction eviction, Span span) {
  if (move.eviction != ast::Eviction::kNone) {
    fail<diag::ModifierTwice>(span, "", format(".{}", spelling(eviction)),
                              format(".{}", spelling(move.eviction)));
  }
  move.eviction = eviction;
}

// Reads one modifier at a dot. False after a mistake.
bool Parser::modifier(ast::MoveStmt& move, const Operation& operation) {
  const Token& dot = peek();
  const Token& word = peek(1);
  const auto once = [&](bool again) {
    if (again) {
      fail<diag::ModifierTwice>(word.span, "", format(".{}", word.text), format(".{}", word.text));
    }
  };
  if (accept_member(Word::kAsync)) {
    once(move.is_async);
    move.is_async = true;
    if (at(TokenKind::kLess)) move.event = angle_value();
    move.async_span = since(dot);
  } else if (accept_member(Word::kSwiz) || accept_member(Word::kSwizzle)) {
    once(move.swizzle.has_value());
    move.swizzle = swizzle(dot);
  } else if (accept_member(Word::kZfill)) {
    move.zfill = true;
  } else if (accept_member(Word::kSp)) {
    once(move.sparse.has_value());
    move.sparse = sparsity(dot);
  } else if (accept_member(Word::kPromote)) {
    once(move.promote.valid());
    promote(move);
  } else if (accept_member(Word::kMulticast)) {
    move.multicast = true;
  } else if (accept_member(Word::kAdd)) {
    once(move.adds);
    move.adds = true;
  } else if (accept_member(Word::kEvictFirst)) {
    eviction(move, ast::Eviction::kFirst, word.span);
  } else if (accept_member(Word::kEvictLast)) {
    eviction(move, ast::Eviction::kLast, word.span);
  } else if (at(TokenKind::kIdentifier, 1)) {
    fail<diag::UnknownMember>(
        word.span,
        did_you_mean(word.text, {"async", "swiz", "swizzle", "zfill", "sp", "promote", "multicast",
                                 "add", "evict_first", "evict_last"}),
        operation.text, word.text);
  } else {
    advance();
    unexpected("a modifier after `.`");
  }
  return ok();
}

// dma.copy b <= a;
void Parser::fail_reversed(const ast::BinaryExpr& reversed) {
  const auto written = [&](ExprId id) { return sources_.text(span_of(id)); };
  const std::string help = format("data moves to the right: write `{} => {}`",
                                  written(reversed.right), written(reversed.left));
  fail<diag::UnexpectedToken>(reversed.op_span, help, "`=>`", "`<=`");
}

void Parser::source_and_target(ast::MoveStmt& move) {
  move.source = expression();
  if (!ok()) return;
  if (const auto* view = tree_.as<ast::ViewExpr>(move.source);
      view != nullptr && view->ops.back().kind == ast::ViewOpKind::kZeroFill) {
    move.zfill = true;
    ast::ViewExpr shorter = *view;
    shorter.ops.pop_back();
    if (shorter.ops.empty()) {
      move.source = shorter.base;
    } else {
      const Span span = cover(span_of(shorter.base), shorter.ops.back().span);
      move.source = expr(std::move(shorter), span);
    }
  }
  const auto* reversed = tree_.as<ast::BinaryExpr>(move.source);
  if (reversed != nullptr && reversed->op == ast::BinaryOp::kLessEqual && !at(TokenKind::kArrow)) {
    fail_reversed(*reversed);
    return;
  }
  expect(TokenKind::kArrow);
  const Token& target = peek();
  if (accept(Word::kShared))
    move.target_storage = ast::Storage::kShared;
  else if (accept(Word::kLocal))
    move.target_storage = ast::Storage::kLocal;
  else if (accept(Word::kGlobal))
    move.target_storage = ast::Storage::kGlobal;
  else
    move.target = expression();
  move.target_span = since(target);
}

}  // namespace kiln::syntax
