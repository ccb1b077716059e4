// wait and trigger.
#include "syntax/parse.h"

namespace kiln::syntax {

// e, e[s], e.at(n), f
ast::ExprId Parser::event_ref() {
  const Token& first = peek();
  const ExprId ref = postfix();
  const bool fits = tree_.as<ast::NameExpr>(ref) != nullptr ||
                    tree_.as<ast::SubscriptExpr>(ref) != nullptr ||
                    tree_.as<ast::AtExpr>(ref) != nullptr;
  if (ok() && !fits) unexpected_at(since(first), "an event or a future");
  return ref;
}

std::vector<ast::ExprId> Parser::event_refs() {
  std::vector<ExprId> refs{event_ref()};
  while (accept(TokenKind::kComma)) refs.push_back(event_ref());
  return refs;
}

ast::StmtId Parser::wait() {
  const Token& first = peek();
  advance();
  ast::WaitStmt node{event_refs()};
  expect_semicolon();
  return stmt(std::move(node), first);
}

ast::StmtId Parser::trigger() {
  const Token& first = peek();
  advance();
  ast::TriggerStmt node;
  node.cluster = accept_member(Word::kCluster);
  node.refs = event_refs();
  if (accept(Word::kAfter)) node.after = names("the name of a future");
  expect_semicolon();
  return stmt(std::move(node), first);
}

}  // namespace kiln::syntax
