// Signatures: `__co__ f32 [M, 16] f(global f16 [M, K] a, int n, stream s) { ... }`.
#include "syntax/parse.h"

namespace kiln::syntax {

ast::TileFunction Parser::function(const Bound& bound) {
  const Token& first = peek();
  const std::size_t errors_before = diags_.error_count();
  ast::TileFunction function;
  if (at(Word::kTemplate)) template_head(function.templ, bound);
  function.is_device = at(Word::kCoDevice);
  if (ok() && !function.is_device && !at(Word::kCo)) unexpected("`__co__` or `__co_device__`");
  advance();
  return_type(function.result);
  function.name = name("the name of the tile function");
  params(function);
  function.signature_span = since(first);
  if (ok() && at(TokenKind::kSemicolon)) {
    fail<diag::TileFunctionWithoutBody>(function.name.span, "give it a body: it cannot be declared",
                                        function.name.text);
  } else if (panic_ && !done_) {
    // A broken signature does not hide the mistakes of the body, but its names are not known: the
    // body is read and given up.
    while (!at(TokenKind::kEnd) && !at(TokenKind::kLeftBrace)) advance();
    panic_ = false;
    open_groups_ = 0;
    if (at(TokenKind::kLeftBrace)) block();
  } else {
    function.body = at(TokenKind::kLeftBrace) ? block() : (unexpected("`{`"), StmtId());
  }
  function.has_syntax_errors = diags_.error_count() != errors_before;
  function.span = tree_.file.valid() ? cover(first.span, last_span()) : first.span;
  return function;
}

void Parser::return_type(ast::ReturnType& result) {
  const Token& first = peek();
  const bool is_fragment = accept(Word::kFrag);
  if (accept(Word::kVoid)) {
    result.kind = ast::ReturnType::Kind::kVoid;
  } else if (accept(Word::kAuto)) {
    result.kind = ast::ReturnType::Kind::kAuto;
  } else {
    result.dtype = dtype("the type of the result").value_or(DType::kF32);
    result.kind = ast::ReturnType::Kind::kScalar;
    if (is_fragment) {
      result.kind = ast::ReturnType::Kind::kFragment;
      result.shape = shape_decl();
    } else if (at(TokenKind::kLeftBracket) || at(Word::kMdspan)) {
      result.kind = ast::ReturnType::Kind::kSpanned;
      result.shape = shape_decl();
    }
  }
  result.span = since(first);
}

void Parser::params(ast::TileFunction& function) {
  const Token& opener = peek();
  open(TokenKind::kLeftParen);
  if (ok() && !at(TokenKind::kRightParen)) {
    do {
      function.params.push_back(param(function.is_device));
    } while (accept(TokenKind::kComma));
  }
  close(TokenKind::kRightParen, opener);
}

ast::Param Parser::param(bool of_device_function) {
  const Token& first = peek();
  ast::Param param;
  if (accept(Word::kIf)) {
    const Token& opener = peek();
    open(TokenKind::kLeftParen);
    param.condition = constant_value();
    close(TokenKind::kRightParen, opener);
  }
  const Token& storage = peek();
  if (accept(Word::kGlobal))
    param.storage = ast::Storage::kGlobal;
  else if (accept(Word::kShared))
    param.storage = ast::Storage::kShared;
  else if (accept(Word::kLocal))
    param.storage = ast::Storage::kLocal;
  if (param.storage != ast::Storage::kNone) param.storage_span = storage.span;
  const Token& type = peek();
  if (accept(Word::kStream)) {
    param.type.kind = ast::ParamType::Kind::kStream;
  } else if (of_device_function && (at(Word::kFrag) || at(Word::kEvent))) {
    device_param_type(param);
  } else {
    param.type.is_int = type.text == "int";
    param.type.dtype = dtype("the type of a parameter").value_or(DType::kF32);
    if (at(TokenKind::kLeftBracket) || at(Word::kMdspan)) {
      param.type.kind = ast::ParamType::Kind::kSpanned;
      param.type.shape = shape_decl();
    }
  }
  param.type.span = since(type);
  const Token& reference = peek();
  param.reference = accept(TokenKind::kAnd);
  if (param.reference) param.reference_span = reference.span;
  if (ok() && !at(TokenKind::kComma) && !at(TokenKind::kRightParen)) {
    param.name = name("the name of a parameter");
  }
  while (of_device_function && ok() && at(TokenKind::kLeftBracket)) {
    const Token& opener = peek();
    open(TokenKind::kLeftBracket);
    param.extents.push_back(expression());
    close(TokenKind::kRightBracket, opener);
  }
  param.span = since(first);
  return param;
}

// frag f32 [R, C], frag [R, 1], frag, event
void Parser::device_param_type(ast::Param& param) {
  if (accept(Word::kEvent)) {
    param.type.kind = ast::ParamType::Kind::kEvent;
    return;
  }
  advance();  // frag
  param.type.kind = ast::ParamType::Kind::kFragment;
  if (at_dtype()) param.type.dtype = dtype("an element type");
  if (at(TokenKind::kLeftBracket)) param.type.shape = shape_decl();
}

// [M, ?, 16], mdspan<2>, mdspan[M, 16]
ast::ShapeDecl Parser::shape_decl() {
  const Token& first = peek();
  ast::ShapeDecl shape;
  if (accept(Word::kMdspan) && at(TokenKind::kLess)) {
    shape.mdspan_rank = angle_value();
    shape.span = since(first);
    return shape;
  }
  const Token& opener = peek();
  open(TokenKind::kLeftBracket);
  do {
    shape.dims.push_back(dim());
  } while (accept(TokenKind::kComma));
  close(TokenKind::kRightBracket, opener);
  shape.span = since(first);
  return shape;
}

ast::Dim Parser::dim() {
  const Token& first = peek();
  ast::Dim dim;
  if (accept(TokenKind::kQuestion)) {
    dim.kind = ast::Dim::Kind::kAnonymous;
  } else if (accept(TokenKind::kQuestionQuestion)) {
    dim.kind = ast::Dim::Kind::kUnbounded;
  } else {
    dim.value = expression();
  }
  dim.span = since(first);
  return dim;
}

}  // namespace kiln::syntax
