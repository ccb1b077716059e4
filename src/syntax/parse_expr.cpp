// Expressions, loosest binding first. Note that `& ^ |` bind tighter than arithmetic, and `#`
// tighter still: `a + b & c # d` is `a + (b & (c # d))`.
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "syntax/foreign.h"
#include "syntax/lexer.h"
#include "syntax/parse.h"

namespace kiln::syntax {

namespace {

using ast::BinaryOp;
using ast::UnaryOp;

struct BinaryRow {
  TokenKind kind;
  BinaryOp op;
  int precedence;  // 1 is the loosest
};
constexpr BinaryRow kBinary[] = {
    {TokenKind::kOrOr, BinaryOp::kOr, 1},
    {TokenKind::kAndAnd, BinaryOp::kAnd, 2},
    {TokenKind::kEqualEqual, BinaryOp::kEqual, 3},
    {TokenKind::kNotEqual, BinaryOp::kNotEqual, 3},
    {TokenKind::kLess, BinaryOp::kLess, 4},
    {TokenKind::kLessEqual, BinaryOp::kLessEqual, 4},
    {TokenKind::kGreater, BinaryOp::kGreater, 4},
    {TokenKind::kGreaterEqual, BinaryOp::kGreaterEqual, 4},
    {TokenKind::kShiftLeft, BinaryOp::kShiftLeft, 5},
    {TokenKind::kShiftRight, BinaryOp::kShiftRight, 5},
    {TokenKind::kPlus, BinaryOp::kAdd, 6},
    {TokenKind::kMinus, BinaryOp::kSubtract, 6},
    {TokenKind::kStar, BinaryOp::kMultiply, 7},
    {TokenKind::kSlash, BinaryOp::kDivide, 7},
    {TokenKind::kPercent, BinaryOp::kRemainder, 7},
    {TokenKind::kHashMinus, BinaryOp::kBoundSubtract, 8},
    {TokenKind::kHashPlus, BinaryOp::kBoundAdd, 8},
    {TokenKind::kHashStar, BinaryOp::kBoundMultiply, 9},
    {TokenKind::kHashSlash, BinaryOp::kBoundDivide, 9},
    {TokenKind::kHashPercent, BinaryOp::kBoundRemainder, 9},
    {TokenKind::kAnd, BinaryOp::kBitAnd, 10},
    {TokenKind::kXor, BinaryOp::kBitXor, 10},
    {TokenKind::kOr, BinaryOp::kBitOr, 10},
};
constexpr int kLoosest = 1;
constexpr int kBoundFrom = 8;  // `#-` and tighter need a literal on the right
constexpr int kBits = 10;

const BinaryRow* binary_row(TokenKind kind) {
  for (const BinaryRow& row : kBinary) {
    if (row.kind == kind) return &row;
  }
  return nullptr;
}

std::optional<UnaryOp> unary_op(TokenKind kind) {
  if (kind == TokenKind::kNot) return UnaryOp::kNot;
  if (kind == TokenKind::kMinus) return UnaryOp::kMinus;
  if (kind == TokenKind::kPlus) return UnaryOp::kPlus;
  if (kind == TokenKind::kAnd) return UnaryOp::kAddress;
  if (kind == TokenKind::kPlusPlus) return UnaryOp::kPreIncrement;
  if (kind == TokenKind::kMinusMinus) return UnaryOp::kPreDecrement;
  return std::nullopt;
}

}  // namespace

// ---- Operators ----

ast::ExprId Parser::expression() {
  const DepthScope depth(*this);
  return conditional();
}

ast::ExprId Parser::expression(Context context) {
  const ContextScope scope(*this, context);
  return expression();
}

ast::ExprId Parser::conditional() {
  const Token& first = peek();
  const ExprId condition = binary(kLoosest);
  if (!accept(TokenKind::kQuestion)) return condition;
  const ExprId then_value = expression();
  expect(TokenKind::kColon);
  const ExprId else_value = expression();
  return expr(ast::ConditionalExpr{condition, then_value, else_value}, since(first));
}

ast::ExprId Parser::binary(int lowest) {
  const Token& first = peek();
  ExprId left = unary();
  while (ok()) {
    const Token& op = peek();
    const BinaryRow* row = binary_row(op.kind);
    if (row == nullptr || row->precedence < lowest || row->precedence == kBits) return left;
    const bool closes_angle = op.kind == TokenKind::kGreater ||
                              op.kind == TokenKind::kGreaterEqual ||
                              op.kind == TokenKind::kShiftRight;
    if (context_.in_angles && closes_angle) return left;
    if (context_.in_bars && op.kind == TokenKind::kOrOr) return left;
    advance();
    const ExprId right = binary(row->precedence + 1);
    if (ok() && row->precedence >= kBoundFrom && !literal_value(right)) {
      fail<diag::BoundLiteral>(span_of(right), "", op.text);
    }
    left = expr(ast::BinaryExpr{row->op, op.span, left, right}, since(first));
  }
  return left;
}

ast::ExprId Parser::prefix(ast::UnaryOp op, ExprId (Parser::*operand)()) {
  const DepthScope depth(*this);
  const Token& first = advance();
  const ExprId value = (this->*operand)();
  return expr(ast::UnaryExpr{op, first.span, value}, since(first));
}

ast::ExprId Parser::unary() {
  const auto op = unary_op(peek().kind);
  return op && ok() ? prefix(*op, &Parser::unary) : bits();
}

ast::ExprId Parser::bits() {
  const Token& first = peek();
  ExprId left = compose();
  while (ok()) {
    const Token& op = peek();
    const BinaryRow* row = binary_row(op.kind);
    if (row == nullptr || row->precedence != kBits) return left;
    if (context_.in_bars && op.kind == TokenKind::kOr) return left;
    advance();
    const ExprId right = compose();
    left = expr(ast::BinaryExpr{row->op, op.span, left, right}, since(first));
  }
  return left;
}

ast::ExprId Parser::compose() {
  const Token& first = peek();
  ExprId left = bound();
  while (ok() && at(TokenKind::kHash)) {
    const Token& op = advance();
    const ExprId right = bound();
    left = expr(ast::BinaryExpr{ast::BinaryOp::kCompose, op.span, left, right}, since(first));
  }
  return left;
}

ast::ExprId Parser::bound() {
  return ok() && at(TokenKind::kHash) ? prefix(ast::UnaryOp::kBound, &Parser::tight) : tight();
}

// The operand of a tight operator; a sign may stand here too, as in `a & -1`.
ast::ExprId Parser::tight() {
  if (ok() && at(TokenKind::kTilde)) return prefix(ast::UnaryOp::kComplement, &Parser::tight);
  const auto op = unary_op(peek().kind);
  return op && ok() ? prefix(*op, &Parser::tight) : postfix();
}

// The value of an integer literal, perhaps in parentheses.
std::optional<std::uint64_t> Parser::literal_value(ExprId id) const {
  const auto* literal = tree_.as<ast::IntExpr>(id);
  if (literal == nullptr) return std::nullopt;
  return literal->value;
}

// ---- Lists ----

// Expressions up to `closer`, which is not read; may be empty.
std::vector<ast::ExprId> Parser::list(TokenKind closer) {
  std::vector<ExprId> items;
  if (at(closer)) return items;
  do {
    items.push_back(expression());
  } while (accept(TokenKind::kComma));
  return items;
}

std::vector<ast::ExprId> Parser::bracketed_list(TokenKind opener) {
  const Token& first = peek();
  const TokenKind closer = opener == TokenKind::kLeftParen     ? TokenKind::kRightParen
                           : opener == TokenKind::kLeftBracket ? TokenKind::kRightBracket
                                                               : TokenKind::kRightBrace;
  const ContextScope scope(*this, {.in_subscript = context_.in_subscript});
  open(opener);
  std::vector<ExprId> items = list(closer);
  close(closer, first);
  return items;
}

// <a, b>
std::vector<ast::ExprId> Parser::angle_list() {
  const Token& first = peek();
  const ContextScope scope(*this, {.in_angles = true});
  expect(TokenKind::kLess);
  std::vector<ExprId> items;
  do {
    if (at_dtype()) {
      const Span span = peek().span;
      items.push_back(expr(ast::TypeExpr{type_here()}, span));
    } else {
      items.push_back(expression());
    }
  } while (accept(TokenKind::kComma));
  if (ok() && !accept(TokenKind::kGreater)) close(TokenKind::kGreater, first);
  return items;
}

// <a>
ast::ExprId Parser::angle_value() {
  const Token& first = peek();
  const ContextScope scope(*this, {.in_angles = true});
  expect(TokenKind::kLess);
  const ExprId value = expression();
  if (ok() && !accept(TokenKind::kGreater)) close(TokenKind::kGreater, first);
  return value;
}

// ---- Primaries ----

ast::ExprId Parser::primary() {
  const Token& token = peek();
  if (!ok()) return expr(ast::ErrorExpr{}, token.span);
  if (at(TokenKind::kInteger)) return integer();
  if (at(TokenKind::kFloat)) return floating();
  if (at(TokenKind::kString)) {
    std::string value = string_literal();
    return expr(ast::StringExpr{std::move(value)}, since(token));
  }
  if (at(TokenKind::kLeftParen)) return parenthesised();
  if (at(TokenKind::kOr)) return measure();
  if (at(TokenKind::kIdentifier)) return literal();
  if (at(TokenKind::kLeftBracket)) {
    auto items = bracketed_list(TokenKind::kLeftBracket);
    return expr(ast::ShapeExpr{std::move(items)}, since(token));
  }
  if (at(TokenKind::kLeftBrace)) {
    auto items = bracketed_list(TokenKind::kLeftBrace);
    return expr(ast::TupleExpr{std::move(items)}, since(token));
  }
  unexpected("an expression");
  return expr(ast::ErrorExpr{}, token.span);
}

// A word that is a value by itself, or else a name.
ast::ExprId Parser::literal() {
  const Token& token = peek();
  if (accept(Word::kTrue)) return expr(ast::BoolExpr{true}, token.span);
  if (accept(Word::kFalse)) return expr(ast::BoolExpr{false}, token.span);
  if (accept(Word::kNullptr)) return expr(ast::NullptrExpr{}, token.span);
  if (accept(Word::kInf)) {
    return expr(ast::FloatExpr{std::numeric_limits<double>::infinity(), DType::kF32}, token.span);
  }
  if (token.text == "_") {
    advance();
    return expr(ast::WildcardExpr{}, token.span);
  }
  if (takes_types_ && at_dtype()) return expr(ast::TypeExpr{type_here()}, token.span);
  if (at(Word::kFrag) && at(TokenKind::kDot, 1)) return tile_value();
  if (at(Word::kTo) || at(Word::kBitcast)) return cast();
  if (token.text == "__inf" && at(TokenKind::kLess, 1)) return infinity();
  if (at(Word::kCall) && at(TokenKind::kIdentifier, 1)) return device_call();
  if (at(Word::kSelect) && at(TokenKind::kLeftParen, 1)) return select();
  return name_or_call();
}

// frag.fill.f32 [64, 1] v;   frag.load view
ast::ExprId Parser::tile_value() {
  const Token& first = advance();
  if (accept_member(Word::kLoad)) {
    const ExprId source = expression();
    return expr(ast::FragLoadExpr{source}, since(first));
  }
  if (!accept_member(Word::kFill)) {
    fail<diag::UnknownMember>(peek(1).span, did_you_mean(peek(1).text, {"fill", "load"}), "frag",
                              peek(1).text);
    return expr(ast::ErrorExpr{}, since(first));
  }
  ast::FragFillExpr fill{DType::kF32, {}, {}};
  if (accept(TokenKind::kDot)) fill.type = dtype("an element type").value_or(DType::kF32);
  fill.shape = bracketed_list(TokenKind::kLeftBracket);
  fill.value = expression();
  return expr(std::move(fill), since(first));
}

ast::ExprId Parser::integer() {
  const Token& token = advance();
  const std::uint64_t value = integer_value(token.text).value_or(0);
  const std::string_view text = token.text;
  const bool is_unsigned = text.find_first_of("uU") != std::string_view::npos;
  const bool is_long =
      text.find("ll") != std::string_view::npos || text.find("LL") != std::string_view::npos;
  const std::uint64_t small_max = is_unsigned ? 0xffffffffU : 0x7fffffffU;
  const bool small = !is_long && value <= small_max;
  const DType wide = is_unsigned || value > 0x7fffffffffffffffU ? DType::kU64 : DType::kS64;
  const DType type = !small ? wide : is_unsigned ? DType::kU32 : DType::kS32;
  return expr(ast::IntExpr{value, type}, token.span);
}

ast::ExprId Parser::floating() {
  const Token& token = advance();
  const bool is_f32 = token.text.back() == 'f' || token.text.back() == 'F';
  const double value = std::strtod(std::string(token.text).c_str(), nullptr);
  return expr(ast::FloatExpr{value, is_f32 ? DType::kF32 : DType::kF64}, token.span);
}

ast::ExprId Parser::parenthesised() {
  const Token& first = peek();
  const bool in_subscript = context_.in_subscript;
  open(TokenKind::kLeftParen);
  const ExprId value = expression(Context{.in_subscript = in_subscript});
  close(TokenKind::kRightParen, first);
  if (in_subscript && literal_value(value)) {
    return expr(ast::DerivedIndexExpr{value}, since(first));
  }
  tree_.exprs[value].span = since(first);
  return value;
}

// |shape|, |f16|
ast::ExprId Parser::measure() {
  const Token& first = advance();
  ExprId operand;
  if (at_dtype()) {
    const Span span = peek().span;
    operand = expr(ast::TypeExpr{type_here()}, span);
  } else {
    operand = expression(Context{.in_bars = true, .in_subscript = context_.in_subscript});
  }
  if (ok() && !accept(TokenKind::kOr)) unexpected("`|`");
  return expr(ast::MeasureExpr{operand}, since(first));
}

// __to<f16>(e), __to<"unsigned*">(e), __bitcast<u32>(e)
ast::ExprId Parser::cast() {
  ast::CastExpr cast;
  cast.keeps_bits = at(Word::kBitcast);
  const Token& first = advance();
  expect(TokenKind::kLess);
  const Token& type = peek();
  if (at(TokenKind::kString)) {
    cast.cpp_type = string_literal();
  } else {
    cast.type = dtype("a type");
  }
  cast.type_span = since(type);
  expect(TokenKind::kGreater);
  const Token& opener = peek();
  open(TokenKind::kLeftParen);
  cast.operand = expression(Context{});
  close(TokenKind::kRightParen, opener);
  return expr(std::move(cast), since(first));
}

// __inf<f16>()
ast::ExprId Parser::infinity() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Token& first = advance();
  expect(TokenKind::kLess);
  const std::optional<DType> known = dtype_from_name(peek().text);
  const bool unfit = known && (!is_float(*known) || !std::isinf(round_to(*known, kInfinity)));
  if (unfit || !at_dtype()) {
    unexpected("a type that has an infinity");
    return expr(ast::ErrorExpr{}, since(first));
  }
  ast::Type type = type_here();
  expect(TokenKind::kGreater);
  expect(TokenKind::kLeftParen);
  expect(TokenKind::kRightParen);
  return expr(ast::FloatExpr{kInfinity, std::move(type)}, since(first));
}

ast::ExprId Parser::select() {
  const Token& first = advance();
  std::vector<ExprId> operands = bracketed_list(TokenKind::kLeftParen);
  if (ok() && operands.size() < 2) {
    fail<diag::SelectOperands>(since(first), "as in `select(n % 2, first, second)`",
                               counted(operands.size(), "operand"));
  }
  ast::SelectExpr select;
  if (!operands.empty()) {
    select.index = operands.front();
    select.choices.assign(operands.begin() + 1, operands.end());
  }
  return expr(std::move(select), since(first));
}

ast::ExprId Parser::device_call() {
  const Token& first = advance();
  ast::DeviceCallExpr call;
  call.name.text = qualified_name(call.name.span);
  if (ok() && at(TokenKind::kLess)) call.template_args = angle_list();
  call.args = bracketed_list(TokenKind::kLeftParen);
  return expr(std::move(call), since(first));
}

// leave<4>(sum, out, done)
ast::ExprId Parser::function_call() {
  const Token& first = advance();
  ast::FunctionCallExpr call;
  call.name = {std::string(first.text), first.span};
  if (at(TokenKind::kLess)) {
    const bool outer = std::exchange(takes_types_, true);
    call.template_args = angle_list();
    takes_types_ = outer;
  }
  call.args = bracketed_list(TokenKind::kLeftParen);
  return expr(std::move(call), since(first));
}

// Where a type may stand, or be compared.
ast::ExprId Parser::constant_value() {
  const bool outer = std::exchange(takes_types_, true);
  const ExprId value = expression();
  takes_types_ = outer;
  return value;
}

ast::ExprId Parser::name_or_call() {
  const Token& token = peek();
  const auto word = token.word;
  if (word == Word::kDma || word == Word::kTma || word == Word::kMma) {
    fail<diag::StatementAsExpression>(token.span, "give its result a name in a statement before",
                                      token.text);
    return expr(ast::ErrorExpr{}, token.span);
  }
  if (is_reserved(token.text)) {
    const bool converts = at(TokenKind::kLeftParen, 1) || at(TokenKind::kRightParen, 1);
    const bool is_type = at_dtype() || token.text == "int";
    unexpected("an expression", converts && is_type ? conversion_help(token.text) : "");
    return expr(ast::ErrorExpr{}, token.span);
  }
  const ast::Builtin builtin = ast::builtin_from_name(token.text);
  if (builtin != ast::Builtin::kNone && at(TokenKind::kLeftParen, 1)) return builtin_call(builtin);
  const bool is_call = at(TokenKind::kLeftParen, 1) || at(TokenKind::kLess, 1);
  if (is_call && names_.functions.contains(token.text)) return function_call();
  if (!at(TokenKind::kColonColon, 1)) {
    advance();
    return expr(ast::NameExpr{std::string(token.text)}, token.span);
  }
  ast::CallExpr call;
  call.name.text = qualified_name(call.name.span);
  const bool is_constant = context_.in_angles && !at(TokenKind::kLeftParen);
  if (is_constant) return expr(ast::NameExpr{call.name.text}, since(token));
  call.args = bracketed_list(TokenKind::kLeftParen);
  return expr(std::move(call), since(token));
}

ast::ExprId Parser::builtin_call(ast::Builtin builtin) {
  const Token& first = advance();
  ast::CallExpr call{builtin, {std::string(first.text), first.span}, {}};
  call.args = bracketed_list(TokenKind::kLeftParen);
  const ast::BuiltinInfo& row = *ast::info(builtin);
  const int count = static_cast<int>(call.args.size());
  if (ok() && (count < row.args_min || count > row.args_max)) {
    // The call is complete: reported without a panic, so that the statement is read on.
    diags_
        .report<diag::BuiltinArguments>(first.span, first.text,
                                        counted(static_cast<std::size_t>(row.args_min), "argument"),
                                        count)
        .emit();
    return expr(ast::ErrorExpr{}, since(first));
  }
  return expr(std::move(call), since(first));
}

// ---- Shape of the tree ----

std::vector<ast::ExprId> children(const ast::ExprNode& node) {
  using namespace ast;
  std::vector<ExprId> out;
  const auto add_all = [&](const std::vector<ExprId>& ids) {
    out.insert(out.end(), ids.begin(), ids.end());
  };
  if (const auto* unary = std::get_if<UnaryExpr>(&node)) out = {unary->operand};
  if (const auto* binary = std::get_if<BinaryExpr>(&node)) out = {binary->left, binary->right};
  if (const auto* choice = std::get_if<ConditionalExpr>(&node)) {
    out = {choice->condition, choice->then_value, choice->else_value};
  }
  if (const auto* member = std::get_if<MemberExpr>(&node)) out = {member->base};
  if (const auto* measure = std::get_if<MeasureExpr>(&node)) out = {measure->operand};
  if (const auto* cast = std::get_if<CastExpr>(&node)) out = {cast->operand};
  if (const auto* index = std::get_if<DerivedIndexExpr>(&node)) out = {index->index};
  if (const auto* shape = std::get_if<ShapeExpr>(&node)) add_all(shape->items);
  if (const auto* tuple = std::get_if<TupleExpr>(&node)) add_all(tuple->items);
  if (const auto* call = std::get_if<CallExpr>(&node)) add_all(call->args);
  if (const auto* at = std::get_if<AtExpr>(&node)) {
    out = {at->base};
    add_all(at->block);
    add_all(at->indices);
  }
  if (const auto* element = std::get_if<ElementExpr>(&node)) {
    out = {element->base};
    add_all(element->indices);
  }
  if (const auto* subscript = std::get_if<SubscriptExpr>(&node)) {
    out = {subscript->base};
    add_all(subscript->items);
  }
  if (const auto* fill = std::get_if<FragFillExpr>(&node)) {
    add_all(fill->shape);
    out.push_back(fill->value);
  }
  if (const auto* load = std::get_if<FragLoadExpr>(&node)) out = {load->source};
  if (const auto* select = std::get_if<SelectExpr>(&node)) {
    out = {select->index};
    add_all(select->choices);
  }
  if (const auto* call = std::get_if<FunctionCallExpr>(&node)) {
    add_all(call->template_args);
    add_all(call->args);
  }
  if (const auto* call = std::get_if<DeviceCallExpr>(&node)) {
    add_all(call->template_args);
    add_all(call->args);
  }
  if (const auto* view = std::get_if<ViewExpr>(&node)) {
    out = {view->base};
    for (const ViewOp& op : view->ops) {
      for (const auto* ids : {&op.args, &op.strides, &op.steps, &op.origin}) add_all(*ids);
    }
  }
  return out;
}

}  // namespace kiln::syntax
