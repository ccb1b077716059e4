// Declarations: scalars, buffers, events, fragments, shapes and integer tuples.
#include "syntax/parse.h"

namespace kiln::syntax {

// At a type, a storage word, `mutable`, `frag`, `mdspan`, `ituple` or `event`.
ast::StmtId Parser::declaration() {
  const Token& first = peek();
  if (at(Word::kFrag)) {
    const bool stores = at(TokenKind::kDot, 1) && peek(2).word == Word::kStore;
    return stores ? frag_store() : frag_decl();
  }
  if (at(Word::kMdspan)) return mdspan_decl();
  if (at(Word::kItuple)) return ituple_decl();
  ast::Storage storage = ast::Storage::kNone;
  if (accept(Word::kGlobal))
    storage = ast::Storage::kGlobal;
  else if (accept(Word::kShared))
    storage = ast::Storage::kShared;
  else if (accept(Word::kLocal))
    storage = ast::Storage::kLocal;
  const Span storage_span = storage == ast::Storage::kNone ? Span() : first.span;
  if (at(Word::kEvent)) return event_decl(first, storage, storage_span);
  ast::ScalarDeclStmt scalar;
  scalar.storage = storage;
  scalar.storage_span = storage_span;
  const Token& mutable_word = peek();
  scalar.is_mutable = accept(Word::kMutable);
  if (scalar.is_mutable) scalar.mutable_span = mutable_word.span;
  const Token& type = peek();
  scalar.is_int = type.text == "int";
  if (!scalar.is_mutable || at_dtype()) {
    scalar.type = dtype(storage == ast::Storage::kNone ? "a type" : "an element type or `event`");
    scalar.type_span = type.span;
  }
  if (!at(TokenKind::kLeftBracket)) return scalar_decl(first, std::move(scalar));
  if (scalar.is_mutable) unexpected("the name of a mutable scalar");
  ast::BufferDeclStmt buffer;
  buffer.storage = storage;
  buffer.storage_span = storage_span;
  buffer.type = scalar.type.value_or(DType::kF32);
  buffer.type_span = scalar.type_span;
  return buffer_decl(first, std::move(buffer));
}

// constexpr int TILE = 64 * WG, HALF = TILE / 2;   constexpr type T = bf16;
ast::StmtId Parser::constant() {
  const Token& first = advance();
  ast::ConstantStmt node;
  node.kind = constant_kind("`int`, `bool` or `type`").value_or(ast::ConstantStmt::Kind::kInteger);
  do {
    ast::ConstantStmt::Item& item = node.items.emplace_back();
    item.name = name("the name of a constant");
    const bool is_type = node.kind == ast::ConstantStmt::Kind::kType;
    if (is_type && item.name.valid()) types_.insert(item.name.text);
    expect(TokenKind::kEqual);
    item.value = constant_value();
  } while (accept(TokenKind::kComma));
  expect_semicolon();
  return stmt(std::move(node), first);
}

// x, x[2][3], x = 1, x {1}
ast::Declarator Parser::declarator() {
  const Token& first = peek();
  ast::Declarator declarator;
  declarator.name = name("a name to declare");
  while (ok() && at(TokenKind::kLeftBracket)) {
    const Token& opener = peek();
    open(TokenKind::kLeftBracket);
    declarator.extents.push_back(expression());
    close(TokenKind::kRightBracket, opener);
  }
  if (accept(TokenKind::kEqual)) {
    declarator.init = expression();
  } else if (at(TokenKind::kLeftBrace)) {
    const Token& opener = peek();
    open(TokenKind::kLeftBrace);
    declarator.braces = true;
    declarator.init = expression();
    close(TokenKind::kRightBrace, opener);
  }
  declarator.span = since(first);
  return declarator;
}

ast::StmtId Parser::scalar_decl(const Token& first, ast::ScalarDeclStmt decl) {
  do {
    decl.declarators.push_back(declarator());
  } while (accept(TokenKind::kComma));
  expect_semicolon();
  return stmt(std::move(decl), first);
}

ast::StmtId Parser::buffer_decl(const Token& first, ast::BufferDeclStmt decl) {
  const Token& shape = peek();
  decl.shape = bracketed_list(TokenKind::kLeftBracket);
  decl.shape_span = since(shape);
  do {
    decl.declarators.push_back(declarator());
  } while (accept(TokenKind::kComma));
  expect_semicolon();
  return stmt(std::move(decl), first);
}

ast::StmtId Parser::event_decl(const Token& first, ast::Storage storage, Span storage_span) {
  advance();  // event
  ast::EventDeclStmt decl;
  decl.storage = storage;
  decl.storage_span = storage_span;
  if (at(TokenKind::kLess)) decl.threads = angle_value();
  do {
    ast::EventDeclStmt::Item item;
    item.declarator = declarator();
    const auto* init = tree_.as<ast::NameExpr>(item.declarator.init);
    item.ready = init != nullptr && init->name == "ready" && !item.declarator.braces;
    if (item.declarator.init.valid() && !item.ready) {
      fail<diag::EventInitialiser>(span_of(item.declarator.init), "", item.declarator.name.text);
    }
    if (item.ready) item.declarator.init = {};
    decl.items.push_back(std::move(item));
  } while (accept(TokenKind::kComma));
  expect_semicolon();
  return stmt(std::move(decl), first);
}

// frag f32 [64] peak {-inf};   frag f32 x = y * 2;   frag.f32 mc[2] {0.0f};   frag mc {0.0f};
ast::StmtId Parser::frag_decl() {
  const Token& first = advance();
  ast::FragDeclStmt decl;
  const bool dotted = accept(TokenKind::kDot);
  const Token& type = peek();
  if (dotted || at_dtype()) {
    decl.type = dtype("an element type");
    decl.type_span = type.span;
  }
  decl.accumulator = dotted || !decl.type;
  if (!decl.accumulator && at(TokenKind::kLeftBracket))
    decl.shape = bracketed_list(TokenKind::kLeftBracket);
  do {
    decl.declarators.push_back(declarator());
  } while (accept(TokenKind::kComma));
  expect_semicolon();
  return stmt(std::move(decl), first);
}

// mdspan<2> s : [4, 8];   s : [4, 8];
ast::StmtId Parser::mdspan_decl() {
  const Token& first = peek();
  ast::MdspanDeclStmt decl;
  if (accept(Word::kMdspan) && at(TokenKind::kLess)) decl.rank = angle_value();
  decl.name = name("the name of a shape");
  return mdspan_value(first, std::move(decl));
}

ast::StmtId Parser::mdspan_value(const Token& first, ast::MdspanDeclStmt decl) {
  const std::string help = "a shape is declared as `name : [extents]`";
  const Token& sign = peek();
  if (!accept(TokenKind::kColon)) {
    fail<diag::ShapeBrackets>(sign.span, help, decl.name.text, sign.text);
    return stmt(ast::ErrorStmt{}, first);
  }
  const Token& value = peek();
  if (at(TokenKind::kLeftBracket) && at(TokenKind::kRightBracket, 1)) {
    advance();
    unexpected("an extent");
    return stmt(ast::ErrorStmt{}, first);
  }
  decl.shape = expression();
  if (ok() && tree_.as<ast::TupleExpr>(decl.shape) != nullptr) {
    fail<diag::ShapeBrackets>(value.span, help, decl.name.text, value.text);
  }
  expect_semicolon();
  return stmt(std::move(decl), first);
}

// ituple<2> t = {4, 8};
ast::StmtId Parser::ituple_decl() {
  const Token& first = advance();
  const std::string help = "an ituple is declared as `ituple name = {values}`";
  ast::ItupleDeclStmt decl;
  if (at(TokenKind::kLess)) decl.rank = angle_value();
  decl.name = name("the name of an ituple");
  const Token& sign = peek();
  if (!accept(TokenKind::kEqual)) {
    fail<diag::TupleBrackets>(sign.span, help, decl.name.text, sign.text);
    return stmt(ast::ErrorStmt{}, first);
  }
  const Token& value = peek();
  decl.value = expression();
  if (ok() && tree_.as<ast::ShapeExpr>(decl.value) != nullptr) {
    fail<diag::TupleBrackets>(value.span, help, decl.name.text, value.text);
  }
  expect_semicolon();
  return stmt(std::move(decl), first);
}

}  // namespace kiln::syntax
