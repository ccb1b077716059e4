// What follows a name: elements, subscripts, members and view operations.
//
//   x.subspan(8, 8).at(i, j).chunkat(_, w)   one ViewExpr of two ViewOps
//   x.at(i, j)                               an AtExpr
//   x.block(r).at(i, j)                      an AtExpr, of another block
#include "syntax/foreign.h"
#include "syntax/parse.h"

namespace kiln::syntax {

namespace {

using ast::ViewOpKind;

struct ViewRow {
  Word word;
  ViewOpKind kind;
};
constexpr ViewRow kViewOps[] = {
    {Word::kChunkat, ViewOpKind::kChunkAt}, {Word::kChunk, ViewOpKind::kChunk},
    {Word::kSubspan, ViewOpKind::kSubspan}, {Word::kModspan, ViewOpKind::kModspan},
    {Word::kView, ViewOpKind::kView},       {Word::kSpanAs, ViewOpKind::kSpanAs},
    {Word::kSqz, ViewOpKind::kSqueeze},     {Word::kZfill, ViewOpKind::kZeroFill},
    {Word::kMap, ViewOpKind::kMap},         {Word::kRemap, ViewOpKind::kRemap}};

std::vector<std::string> member_names() {
  std::vector<std::string> names{"at", "block", "data", "mdata", "span", "step", "from", "stride"};
  for (const ViewRow& row : kViewOps) names.emplace_back(spelling(row.word));
  return names;
}

bool has_tile_index(ViewOpKind kind) {
  return kind == ViewOpKind::kChunk || kind == ViewOpKind::kSubspan || kind == ViewOpKind::kModspan;
}

}  // namespace

ast::ExprId Parser::postfix() {
  ExprId base = primary();
  bool more = true;
  while (ok() && more) base = postfix_step(base, more);
  check_view(base);
  return base;
}

ast::ExprId Parser::postfix_step(ExprId base, bool& more) {
  const Token& token = peek();
  const bool callable =
      tree_.as<ast::NameExpr>(base) != nullptr || tree_.as<ast::MemberExpr>(base) != nullptr ||
      tree_.as<ast::ElementExpr>(base) != nullptr || tree_.as<ast::SubscriptExpr>(base) != nullptr;
  const bool named = tree_.as<ast::NameExpr>(base) != nullptr;
  const auto span = [&] { return cover(span_of(base), last_span()); };
  if (token.kind == TokenKind::kDot) return member(base);
  if (token.kind == TokenKind::kLeftParen && callable) {
    auto indices = bracketed_list(TokenKind::kLeftParen);
    return expr(ast::ElementExpr{base, std::move(indices)}, span());
  }
  const bool attribute = token.line_start && at(TokenKind::kLeftBracket, 1);
  const bool derives = token.kind == TokenKind::kLeftBrace && named && !token.line_start &&
                       !context_.before_body && !peek(1).line_start;
  const bool subscripts =
      token.kind == TokenKind::kLeftBracket && callable && !attribute && !context_.before_extents;
  if (subscripts || derives) {
    const ContextScope scope(*this, {.in_subscript = true});
    auto items = bracketed_list(token.kind);
    return expr(ast::SubscriptExpr{base, std::move(items), derives}, span());
  }
  if (token.kind == TokenKind::kPlusPlus || token.kind == TokenKind::kMinusMinus) {
    advance();
    const auto op = token.kind == TokenKind::kPlusPlus ? ast::UnaryOp::kPostIncrement
                                                       : ast::UnaryOp::kPostDecrement;
    return expr(ast::UnaryExpr{op, token.span, base}, span());
  }
  more = false;
  return base;
}

ast::ExprId Parser::member(ExprId base) {
  const Token& dot = advance();
  const Token& token = peek();
  const auto of = [&](ast::Member member) {
    advance();
    return expr(ast::MemberExpr{base, member, token.span}, cover(span_of(base), token.span));
  };
  if (at(Word::kSpan)) return of(ast::Member::kSpan);
  if (at(Word::kData)) return of(ast::Member::kData);
  if (at(Word::kMdata)) return of(ast::Member::kMdata);
  if (at(Word::kAt) || at(Word::kStep) || at(Word::kFrom) || at(Word::kStride)) {
    return attach(base, token.word, dot);
  }
  if (at(Word::kBlock)) return element_of_block(base, dot);
  for (const ViewRow& row : kViewOps) {
    if (at(row.word)) return view_op(base, row.kind, dot);
  }
  if (at(TokenKind::kIdentifier)) {
    std::string help = foreign_help(sources_.text(span_of(base)));
    if (help.empty()) help = did_you_mean(token.text, member_names());
    fail<diag::UnknownMember>(token.span, help, sources_.text(span_of(base)), token.text);
  } else {
    unexpected("a member after `.`");
  }
  return base;
}

// `.at`, `.step`, `.from` and `.stride` complete the view operation before them, if it lacks them.
bool Parser::can_attach(ExprId base, Word word) const {
  const auto* view = tree_.as<ast::ViewExpr>(base);
  if (view == nullptr) return false;
  const ast::ViewOp& last = view->ops.back();
  if (word == Word::kStride) return last.strides.empty();
  if (last.origin_span.valid()) return false;
  if (word == Word::kStep) return last.kind == ViewOpKind::kSubspan && !last.steps_span.valid();
  if (word == Word::kFrom) return last.kind == ViewOpKind::kView;
  return has_tile_index(last.kind);
}

ast::ExprId Parser::attach(ExprId base, Word word, const Token& dot) {
  const Token& token = advance();
  if (!can_attach(base, word) && word != Word::kAt) {
    const std::string_view wanted = word == Word::kStep   ? "`.subspan(...)`"
                                    : word == Word::kFrom ? "`.view(...)`"
                                                          : "a view operation";
    const std::string_view example = word == Word::kStep   ? "x.subspan(8, 8).step(4, 4).at(i, j)"
                                     : word == Word::kFrom ? "x.view(8, 8).from(i, j)"
                                                           : "x.subspan(8, 8).stride(2, 2)";
    fail<diag::MemberPosition>(cover(dot.span, token.span), format("as in `{}`", example),
                               token.text, wanted);
    return base;
  }
  auto args = bracketed_list(TokenKind::kLeftParen);
  const Span span = cover(span_of(base), last_span());
  if (!can_attach(base, word)) return expr(ast::AtExpr{base, token.span, std::move(args)}, span);
  ast::Expr& owner = tree_.exprs[base];
  ast::ViewOp& last = std::get_if<ast::ViewExpr>(&owner.node)->ops.back();
  if (word == Word::kStride) {
    last.strides = std::move(args);
  } else if (word == Word::kStep) {
    last.steps = std::move(args);
    last.steps_span = token.span;
  } else {
    last.origin = std::move(args);
    last.origin_span = token.span;
  }
  last.span = cover(last.span, last_span());
  owner.span = span;
  measure_height(base);
  return base;
}

// `.block(r).at(i, j)`: nothing else is known of another block's memory than its elements.
ast::ExprId Parser::element_of_block(ExprId base, const Token& dot) {
  advance();
  auto block = bracketed_list(TokenKind::kLeftParen);
  const Span block_span = cover(dot.span, last_span());
  if (!ok()) return base;
  if (!at(TokenKind::kDot) || !at(Word::kAt, 1)) {
    fail<diag::BlockElement>(block_span, "read one element after the other: `x.block(r).at(i, j)`",
                             "with no element behind it");
    return base;
  }
  advance();
  const Token& word = advance();
  auto indices = bracketed_list(TokenKind::kLeftParen);
  const Span span = cover(span_of(base), last_span());
  return expr(ast::AtExpr{base, word.span, std::move(indices), std::move(block), block_span}, span);
}

// `(list [: strides])`, after `<storage>` for the maps; `.zfill` has no list.
void Parser::read_view_args(ast::ViewOp& op) {
  if (op.kind == ViewOpKind::kZeroFill) return;
  if ((op.kind == ViewOpKind::kMap || op.kind == ViewOpKind::kRemap) && accept(TokenKind::kLess)) {
    if (accept(Word::kLocal))
      op.map_storage = ast::Storage::kLocal;
    else if (accept(Word::kShared))
      op.map_storage = ast::Storage::kShared;
    else if (accept(Word::kGlobal))
      op.map_storage = ast::Storage::kGlobal;
    else
      unexpected("`local`, `shared` or `global`");
    expect(TokenKind::kGreater);
  }
  const ContextScope scope(*this, Context{});
  const Token& opener = peek();
  open(TokenKind::kLeftParen);
  op.args = list(TokenKind::kRightParen);
  if (accept(TokenKind::kColon)) op.strides = list(TokenKind::kRightParen);
  close(TokenKind::kRightParen, opener);
}

ast::ExprId Parser::view_op(ExprId base, ast::ViewOpKind kind, const Token& dot) {
  const Token& token = advance();
  ast::ViewOp op;
  op.kind = kind;
  op.word_span = token.span;
  read_view_args(op);
  op.span = cover(dot.span, last_span());
  if (kind == ViewOpKind::kSqueeze && ok()) {
    const auto* view = tree_.as<ast::ViewExpr>(base);
    const auto before = view == nullptr ? ViewOpKind::kZeroFill : view->ops.back().kind;
    if (before == ViewOpKind::kZeroFill || before == ViewOpKind::kSqueeze) {
      fail<diag::MemberPosition>(op.span, "as in `x.subspan(1, 8).at(i, j).sqz()`", "sqz",
                                 "`.subspan`, `.chunkat`, `.span_as` or `.view`");
      return base;
    }
  }
  if (tree_.as<ast::ViewExpr>(base) == nullptr) {
    const Span span = cover(span_of(base), op.span);
    return expr(ast::ViewExpr{base, {std::move(op)}}, span);
  }
  ast::Expr& owner = tree_.exprs[base];
  owner.span = cover(owner.span, op.span);
  std::get_if<ast::ViewExpr>(&owner.node)->ops.push_back(std::move(op));
  measure_height(base);
  return base;
}

void Parser::check_view(ExprId id) {
  const auto* view = tree_.as<ast::ViewExpr>(id);
  if (view == nullptr || !ok()) return;
  for (const ast::ViewOp& op : view->ops) {
    if (op.kind == ViewOpKind::kChunk && !op.origin_span.valid()) {
      fail<diag::ChunkWithoutAt>(op.span, "add the index, as in `.chunk(4).at(i)`");
    }
  }
}

// ---- Fragment references ----

// The name and subscripts that `id` consists of; anything else is a mistake.
ast::FragRef Parser::to_frag_ref(ExprId id) {
  ast::FragRef ref;
  if (!ok()) return ref;
  ref.span = span_of(id);
  ExprId base = id;
  while (const auto* subscript = tree_.as<ast::SubscriptExpr>(base)) {
    if (subscript->items.size() != 1 || subscript->braces) break;
    ref.subscripts.insert(ref.subscripts.begin(), subscript->items.front());
    base = subscript->base;
  }
  if (const auto* written = tree_.as<ast::NameExpr>(base)) {
    ref.name = {written->name, span_of(base)};
  } else if (tree_.as<ast::ErrorExpr>(base) == nullptr) {
    unexpected_at(ref.span, "the name of a fragment");
  }
  return ref;
}

ast::FragRef Parser::frag_ref() {
  const ExprId id = [&] {
    const ContextScope scope(*this, Context{});
    ExprId base = primary();
    while (ok() && at(TokenKind::kLeftBracket)) {
      bool more = true;
      base = postfix_step(base, more);
      if (!more) break;
    }
    return base;
  }();
  return to_frag_ref(id);
}

}  // namespace kiln::syntax
