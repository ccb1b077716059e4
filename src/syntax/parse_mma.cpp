// Tensor-core statements, and statements on fragments.
//
//   mc = mma.fill.f32 0.0f;   ma = mma.load.swiz<128> v;   mma.row.row mc, ma, mb;
#include "syntax/parse.h"

namespace kiln::syntax {

namespace {

// How `operation` is written with all its operands: "mma.row.row acc, a, b".
std::string operands_form(std::string_view operation) {
  const auto has = [&](std::string_view part) {
    return operation.find(part) != std::string_view::npos;
  };
  const std::string head(operation);
  if (operation == "mma.load") return "a = mma.load view";
  if (operation == "frag.store") return "frag.store tile, view";
  if (has(".store")) return head + (has(".mask") ? " acc, view, rows, columns" : " acc, view");
  if (has(".fill")) return head + " acc, value";
  if (operation == "mma.scale") {
    return head + " acc, a_scale, b_scale` or `" + head + " acc, source, a_scale, b_scale";
  }
  return head + " acc, a, b" + (has(".sp") ? ", metadata" : "") +
         (has(".scale") ? ", a_scale, b_scale" : "");
}

}  // namespace

// At the word `mma`; `target` is what stood before `=`, if anything.
ast::StmtId Parser::mma() { return mma(peek(), {}); }

ast::StmtId Parser::mma(const Token& first, ExprId target) {
  const Token& word = advance();
  if (at_member(Word::kFill)) return mma_fill(first, target);
  if (at_member(Word::kLoad)) return mma_load(first, target);
  if (at_member(Word::kRow) || at_member(Word::kCol)) return mma_exec(first, target, {});
  if (!at(TokenKind::kDot) || !at(TokenKind::kIdentifier, 1)) {
    unexpected("an operation such as `.load` after `mma`");
    return stmt(ast::ErrorStmt{}, first);
  }
  const Token& member = peek(1);
  const bool known = at_member(Word::kScale) || at_member(Word::kStore) ||
                     at_member(Word::kCommit) || at_member(Word::kWait);
  if (!known) {
    fail<diag::UnknownMember>(member.span,
                              did_you_mean(member.text, {"fill", "load", "row", "col", "scale",
                                                         "store", "commit", "wait"}),
                              "mma", member.text);
    return stmt(ast::ErrorStmt{}, first);
  }
  if (target.valid()) {
    fail<diag::HandleUnexpected>(cover(word.span, member.span), "", format("mma.{}", member.text),
                                 sources_.text(span_of(target)));
    return stmt(ast::ErrorStmt{}, first);
  }
  if (at_member(Word::kScale)) return mma_scale(first);
  if (at_member(Word::kStore)) return mma_store(first);
  if (at_member(Word::kWait)) return mma_wait(first);
  accept_member(Word::kCommit);
  expect_semicolon();
  return stmt(ast::MmaCommitStmt{}, first);
}

// The comma-separated operands of `operation`; a wrong count is reported.
std::vector<ast::ExprId> Parser::operands(const Operation& operation, std::size_t fewest,
                                          std::size_t most) {
  std::vector<ExprId> out;
  if (!at(TokenKind::kSemicolon)) {
    do {
      out.push_back(expression());
    } while (accept(TokenKind::kComma));
  }
  if (ok() && (out.size() < fewest || out.size() > most)) {
    const std::string wanted =
        fewest == most ? counted(fewest, "operand") : format("{} to {} operands", fewest, most);
    fail<diag::MmaOperands>(operation.span, format("write `{}`", operands_form(operation.text)),
                            operation.text, wanted, out.size());
  }
  return ok() ? out : std::vector<ExprId>(most);
}

// mc = mma.fill.f32 v;  mc = mma.fill.f32 v [2, 4];  mma.fill mc, v;
ast::StmtId Parser::mma_fill(const Token& first, ExprId target) {
  const Span word = last_span();
  accept_member(Word::kFill);
  ast::MmaFillStmt node;
  node.declares = target.valid();
  if (accept(TokenKind::kDot)) {
    node.type_span = peek().span;
    node.type = dtype("an element type");
  }
  node.word_span = cover(word, last_span());
  const std::size_t count = target.valid() ? 1 : 2;
  const auto values = [&] {
    const ContextScope scope(*this, {.before_extents = target.valid()});
    return operands({"mma.fill", node.word_span}, count, count);
  }();
  if (target.valid() && at(TokenKind::kLeftBracket)) {
    node.extents = bracketed_list(TokenKind::kLeftBracket);
  }
  node.target = to_frag_ref(target.valid() ? target : values[0]);
  node.value = values.back();
  expect_semicolon();
  return stmt(std::move(node), first);
}

// ma = mma.load.frag.swiz<64> v;  mma.load v, mc;
ast::StmtId Parser::mma_load(const Token& first, ExprId target) {
  const Span word = last_span();
  accept_member(Word::kLoad);
  ast::MmaLoadStmt node;
  node.declares = target.valid();
  node.word_span = cover(word, last_span());
  while (ok() && at(TokenKind::kDot)) {
    const Token& dot = peek();
    if (accept_member(Word::kFrag)) {
      node.to_registers = true;
    } else if (accept_member(Word::kAsync)) {
      node.is_async = true;
    } else if (accept_member(Word::kSwiz) || accept_member(Word::kSwizzle)) {
      node.swizzle = swizzle(dot);
    } else {
      const std::string_view seen = peek(1).text;
      fail<diag::UnknownMember>(peek(1).span, did_you_mean(seen, {"frag", "swiz", "async"}),
                                "mma.load", seen);
    }
  }
  const auto values = operands({"mma.load", node.word_span}, 1, target.valid() ? 1 : 2);
  if (ok() && !target.valid() && values.size() == 1) {
    fail<diag::HandleMissing>(node.word_span, "write `a = mma.load ...`", "mma.load");
  }
  node.source = values[0];
  node.target = to_frag_ref(target.valid() ? target : values.back());
  expect_semicolon();
  return stmt(std::move(node), first);
}

// ---- Execution ----

bool Parser::mma_majors(ast::MmaExecStmt& exec, Operation& operation) {
  ast::Major* const majors[] = {&exec.a_major, &exec.b_major};
  for (ast::Major* major : majors) {
    if (accept_member(Word::kRow)) {
      *major = ast::Major::kRow;
    } else if (accept_member(Word::kCol)) {
      *major = ast::Major::kCol;
    } else {
      operation.span = cover(operation.span, last_span());
      fail<diag::MmaMajors>(operation.span, "write `mma.row.row`, or `.row.col` for a [K, N] tile",
                            operation.text);
      return false;
    }
    operation.text += format(".{}", spelling(*major));
  }
  operation.span = cover(operation.span, last_span());
  return true;
}

ast::StmtId Parser::mma_exec(const Token& first, ExprId target,
                             std::vector<ast::Attribute> attributes) {
  ast::MmaExecStmt node;
  node.attributes = std::move(attributes);
  Operation operation{"mma", last_span()};
  if (!mma_majors(node, operation)) return stmt(ast::ErrorStmt{}, first);
  node.word_span = operation.span;
  while (ok() && at(TokenKind::kDot)) {
    if (accept_member(Word::kSp)) {
      node.sparse = true;
      operation.text += ".sp";
    } else if (accept_member(Word::kScale)) {
      node.scaled = true;
      operation.text += ".scale";
    } else if (accept_member(Word::kAsync)) {
      node.is_async = true;
    } else {
      const std::string_view seen = peek(1).text;
      fail<diag::UnknownMember>(peek(1).span, did_you_mean(seen, {"sp", "scale", "async"}),
                                operation.text, seen);
    }
  }
  if (ok() && target.valid() && !node.is_async) {
    fail<diag::HandleUnexpected>(operation.span, "only the `.async` form gives a future",
                                 operation.text, sources_.text(span_of(target)));
  }
  if (ok() && !target.valid() && node.is_async) {
    fail<diag::HandleMissing>(operation.span, "name it, and `wait` for it",
                              operation.text + ".async");
  }
  if (target.valid()) {
    const ast::FragRef future = to_frag_ref(target);
    if (ok() && !future.subscripts.empty()) unexpected_at(future.span, "the name of a future");
    node.future = future.name;
  }
  mma_exec_operands(node, operation);
  expect_semicolon();
  return stmt(std::move(node), first);
}

// acc, a, b [, metadata] [, a_scale, b_scale]
void Parser::mma_exec_operands(ast::MmaExecStmt& exec, const Operation& operation) {
  const std::size_t scales = exec.scaled ? 2 : 0;
  const std::size_t most = 3 + (exec.sparse ? 1 : 0) + scales;
  const auto values = operands(operation, 3 + scales, most);
  exec.acc = to_frag_ref(values[0]);
  exec.a = values[1];
  exec.b = values[2];
  if (exec.sparse && values.size() == most) exec.metadata = values[3];
  if (!exec.scaled) return;
  exec.a_scale = values[values.size() - 2];
  exec.b_scale = values[values.size() - 1];
}

ast::StmtId Parser::mma_scale(const Token& first) {
  const Span word = last_span();
  accept_member(Word::kScale);
  ast::MmaScaleStmt node;
  node.word_span = cover(word, last_span());
  const auto values = operands({"mma.scale", node.word_span}, 3, 4);
  node.acc = to_frag_ref(values[0]);
  if (ok() && values.size() == 4) node.source = to_frag_ref(values[1]);
  node.a_scale = values[values.size() - 2];
  node.b_scale = values[values.size() - 1];
  expect_semicolon();
  return stmt(std::move(node), first);
}

ast::StmtId Parser::mma_store(const Token& first) {
  const Span word = last_span();
  accept_member(Word::kStore);
  ast::MmaStoreStmt node;
  while (ok() && at(TokenKind::kDot)) {
    if (accept_member(Word::kTransp)) {
      node.transp = true;
    } else if (accept_member(Word::kAsync)) {
      node.is_async = true;
    } else if (accept_member(Word::kMask)) {
      node.masked = true;
    } else {
      const std::string_view seen = peek(1).text;
      fail<diag::UnknownMember>(peek(1).span, did_you_mean(seen, {"transp", "async", "mask"}),
                                "mma.store", seen);
    }
  }
  node.word_span = cover(word, last_span());
  const auto values = operands({node.masked ? "mma.store.mask" : "mma.store", node.word_span},
                               node.masked ? 3 : 2, node.masked ? 4 : 2);
  const auto* part = ok() ? tree_.as<ast::ViewExpr>(values[0]) : nullptr;
  if (part != nullptr) node.part = values[0];
  node.acc = to_frag_ref(part != nullptr ? part->base : values[0]);
  node.target = values[1];
  if (values.size() > 2) node.rows = values[2];
  if (values.size() > 3) node.cols = values[3];
  expect_semicolon();
  return stmt(std::move(node), first);
}

ast::StmtId Parser::mma_wait(const Token& first) {
  accept_member(Word::kWait);
  ast::MmaWaitStmt node{angle_value()};
  expect_semicolon();
  return stmt(node, first);
}

// ---- Fragments ----

// apply {i, j} in acc.span body
ast::StmtId Parser::apply() {
  const Token& first = peek();
  header_ = true;
  advance();
  ast::ApplyStmt node;
  node.names = braced_names("the name of a coordinate");
  expect_word(Word::kIn);
  node.anchor = frag_ref();
  if (!accept_member(Word::kSpan)) unexpected("`.span`");
  node.body = body();
  return stmt(std::move(node), first);
}

// frag.store tile, view;
ast::StmtId Parser::frag_store() {
  const Token& first = advance();
  accept_member(Word::kStore);
  ast::FragStoreStmt node;
  node.word_span = since(first);
  const auto values = operands({"frag.store", node.word_span}, 2, 2);
  node.value = values[0];
  node.target = values[1];
  expect_semicolon();
  return stmt(node, first);
}

// reduce_max(target, source, 1);
ast::StmtId Parser::reduce() {
  const Token& first = peek();
  ast::ReduceStmt node;
  node.op = at(Word::kReduceMax) ? ast::ReduceOp::kMax : ast::ReduceOp::kSum;
  advance();
  const Token& opener = peek();
  open(TokenKind::kLeftParen);
  node.target = frag_ref();
  expect(TokenKind::kComma);
  node.source = frag_ref();
  expect(TokenKind::kComma);
  node.dimension = expression();
  close(TokenKind::kRightParen, opener);
  const auto dimension = literal_value(node.dimension);
  if (ok() && dimension && *dimension != 1) {
    diags_.report<diag::ReduceDimension>(span_of(node.dimension), spelling(node.op), *dimension)
        .help("write `{}(target, source, 1)`", spelling(node.op))
        .emit();
    broken_head_ = true;
  }
  expect_semicolon();
  return stmt(std::move(node), first);
}

ast::StmtId Parser::all_reduce() {
  const Token& first = peek();
  advance();
  ast::AllReduceStmt node;
  const Token& opener = peek();
  open(TokenKind::kLeftParen);
  node.operand = frag_ref();
  close(TokenKind::kRightParen, opener);
  expect_semicolon();
  return stmt(std::move(node), first);
}

// copy(target, source);
ast::StmtId Parser::frag_copy() {
  const Token& first = peek();
  advance();
  ast::FragCopyStmt node;
  const Token& opener = peek();
  open(TokenKind::kLeftParen);
  node.target = frag_ref();
  expect(TokenKind::kComma);
  node.source = frag_ref();
  close(TokenKind::kRightParen, opener);
  expect_semicolon();
  return stmt(std::move(node), first);
}

}  // namespace kiln::syntax
