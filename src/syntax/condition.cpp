#include "syntax/condition.h"

#include <limits>

#include "syntax/lexer.h"

namespace kiln::syntax {

namespace {

constexpr int kDepthMax = 256;

// Precedence of a binary operator, loosest 1; 0 for anything else.
int precedence(TokenKind kind) {
  struct Row {
    TokenKind kind;
    int precedence;
  };
  static constexpr Row kRows[] = {
      {TokenKind::kOrOr, 1},       {TokenKind::kAndAnd, 2},       {TokenKind::kOr, 3},
      {TokenKind::kXor, 4},        {TokenKind::kAnd, 5},          {TokenKind::kEqualEqual, 6},
      {TokenKind::kNotEqual, 6},   {TokenKind::kLess, 7},         {TokenKind::kLessEqual, 7},
      {TokenKind::kGreater, 7},    {TokenKind::kGreaterEqual, 7}, {TokenKind::kShiftLeft, 8},
      {TokenKind::kShiftRight, 8}, {TokenKind::kPlus, 9},         {TokenKind::kMinus, 9},
      {TokenKind::kStar, 10},      {TokenKind::kSlash, 10},       {TokenKind::kPercent, 10}};
  for (const Row& row : kRows) {
    if (row.kind == kind) return row.precedence;
  }
  return 0;
}

std::uint64_t bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }
std::int64_t wrapped(std::uint64_t value) { return static_cast<std::int64_t>(value); }

std::int64_t compare(TokenKind op, std::int64_t a, std::int64_t b) {
  if (op == TokenKind::kEqualEqual) return a == b;
  if (op == TokenKind::kNotEqual) return a != b;
  if (op == TokenKind::kLess) return a < b;
  if (op == TokenKind::kLessEqual) return a <= b;
  if (op == TokenKind::kGreater) return a > b;
  return a >= b;
}

// True when `a op b` is no value of 64 bits.
bool overflows(TokenKind op, std::int64_t a, std::int64_t b) {
  std::int64_t unused = 0;
  if (op == TokenKind::kPlus) return __builtin_add_overflow(a, b, &unused);
  if (op == TokenKind::kMinus) return __builtin_sub_overflow(a, b, &unused);
  if (op == TokenKind::kStar) return __builtin_mul_overflow(a, b, &unused);
  if (op == TokenKind::kSlash || op == TokenKind::kPercent) {
    return a == std::numeric_limits<std::int64_t>::min() && b == -1;
  }
  const bool shifts = op == TokenKind::kShiftLeft || op == TokenKind::kShiftRight;
  return shifts && (b < 0 || b > 63);
}

// Any operator but && and ||; never a division by zero. An overflow wraps.
std::int64_t compute(TokenKind op, std::int64_t a, std::int64_t b) {
  const bool divides = op == TokenKind::kSlash || op == TokenKind::kPercent;
  if (divides && overflows(op, a, b)) return op == TokenKind::kSlash ? a : 0;
  if (op == TokenKind::kPlus) return wrapped(bits(a) + bits(b));
  if (op == TokenKind::kMinus) return wrapped(bits(a) - bits(b));
  if (op == TokenKind::kStar) return wrapped(bits(a) * bits(b));
  if (op == TokenKind::kSlash) return a / b;
  if (op == TokenKind::kPercent) return a % b;
  if (op == TokenKind::kShiftLeft) return wrapped(bits(a) << (bits(b) & 63));
  if (op == TokenKind::kShiftRight) return a >> (bits(b) & 63);
  if (op == TokenKind::kOr) return a | b;
  if (op == TokenKind::kXor) return a ^ b;
  if (op == TokenKind::kAnd) return a & b;
  return compare(op, a, b);
}

class Evaluator {
 public:
  Evaluator(const std::vector<Token>& tokens, std::string_view directive, Span line,
            Diagnostics& diags)
      : tokens_(tokens), directive_(directive), line_(line), diags_(diags) {}

  std::optional<std::int64_t> run() {
    const std::int64_t value = conditional(true);
    if (!failed_ && peek().kind == TokenKind::kEqual) {
      malformed("`=` compares nothing", "compare with `==`");
    } else if (!failed_ && peek().kind != TokenKind::kEnd) {
      malformed("an operator is missing");
    }
    if (failed_) return std::nullopt;
    return value;
  }

 private:
  const Token& peek() const {
    static const Token end;
    return at_ < tokens_.size() ? tokens_[at_] : end;
  }
  bool accept(TokenKind kind) {
    if (failed_ || peek().kind != kind) return false;
    ++at_;
    return true;
  }
  void malformed(std::string_view why, std::string_view help = "") {
    malformed_at(peek().kind == TokenKind::kEnd ? line_ : peek().span, why, help);
  }
  void malformed_at(Span span, std::string_view why, std::string_view help = "") {
    if (failed_) return;
    failed_ = true;
    diags_.report<diag::ConditionMalformed>(span, directive_, why)
        .help_if(std::string(help))
        .emit();
  }

  // `live` is false where the value is not needed: 0 && 1 / 0 is no mistake.
  std::int64_t conditional(bool live) {
    const std::int64_t condition = binary(1, live);
    if (!accept(TokenKind::kQuestion)) return condition;
    if (++depth_ > kDepthMax) return too_deep();
    const std::int64_t yes = conditional(live && condition != 0);
    if (!accept(TokenKind::kColon)) malformed("`?` needs a `:`");
    const std::int64_t no = conditional(live && condition == 0);
    --depth_;
    return condition != 0 ? yes : no;
  }

  std::int64_t binary(int lowest, bool live) {
    std::int64_t left = unary(live);
    while (!failed_) {
      const Token op = peek();
      const int level = precedence(op.kind);
      if (level < lowest || level == 0) return left;
      ++at_;
      const bool needed = op.kind == TokenKind::kAndAnd ? left != 0
                          : op.kind == TokenKind::kOrOr ? left == 0
                                                        : true;
      const std::int64_t right = binary(level + 1, live && needed);
      left = apply(op, left, right, live);
    }
    return left;
  }

  std::int64_t apply(const Token& op, std::int64_t left, std::int64_t right, bool live) {
    if (op.kind == TokenKind::kAndAnd) return left != 0 && right != 0;
    if (op.kind == TokenKind::kOrOr) return left != 0 || right != 0;
    const bool divides = op.kind == TokenKind::kSlash || op.kind == TokenKind::kPercent;
    if (!divides || right != 0) {
      if (live && overflows(op.kind, left, right)) {
        malformed_at(op.span, format("`{}` gives no 64-bit integer here", op.text));
      }
      return compute(op.kind, left, right);
    }
    if (live && !failed_) {
      failed_ = true;
      diags_.report<diag::ConditionDivisionByZero>(op.span, op.text, directive_).emit();
    }
    return 0;
  }

  std::int64_t unary(bool live) {
    if (++depth_ > kDepthMax) return too_deep();
    std::int64_t value = 0;
    if (accept(TokenKind::kNot)) {
      value = unary(live) == 0;
    } else if (accept(TokenKind::kMinus)) {
      value = wrapped(0 - bits(unary(live)));
    } else if (accept(TokenKind::kPlus)) {
      value = unary(live);
    } else if (accept(TokenKind::kTilde)) {
      value = ~unary(live);
    } else {
      value = primary(live);
    }
    --depth_;
    return value;
  }

  std::int64_t primary(bool live) {
    const Token token = peek();
    if (accept(TokenKind::kLeftParen)) {
      const std::int64_t value = conditional(live);
      if (!accept(TokenKind::kRightParen)) malformed("a `)` is missing");
      return value;
    }
    if (accept(TokenKind::kInteger)) {
      return integer(token);
    }
    if (accept(TokenKind::kIdentifier)) {
      if (peek().kind == TokenKind::kLeftParen) skip_call();
      return token.word == Word::kTrue ? 1 : 0;
    }
    malformed(token.kind == TokenKind::kEnd ? "it ends too early" : "a value is missing");
    return 0;
  }

  std::int64_t integer(const Token& token) {
    const auto value = integer_value(token.text);
    const bool is_prefix = token.text.size() == 2 && token.text[0] == '0' &&
                           std::string_view("xXbB").find(token.text[1]) != std::string_view::npos;
    if (is_prefix) {
      malformed_at(token.span, format("`{}` lacks its digits", token.text));
    } else if (!value && !failed_) {
      failed_ = true;
      constexpr std::size_t kShownMax = 24;
      const bool is_long = token.text.size() > kShownMax;
      const std::string shown =
          format("{}{}", token.text.substr(0, kShownMax), is_long ? "..." : "");
      diags_.report<diag::IntegerTooLarge>(token.span, shown)
          .help("the largest integer is {}", std::numeric_limits<std::uint64_t>::max())
          .emit();
    }
    return wrapped(value.value_or(0));
  }

  // `__has_include(<x>)` and the like: questions for the C++ compiler, unknown here, hence 0.
  void skip_call() {
    int open = 0;
    do {
      if (peek().kind == TokenKind::kEnd) return malformed("a `)` is missing");
      if (peek().kind == TokenKind::kLeftParen) ++open;
      if (peek().kind == TokenKind::kRightParen) --open;
      ++at_;
    } while (open > 0);
  }

  std::int64_t too_deep() {
    if (!failed_) {
      failed_ = true;
      diags_
          .report<diag::NestingTooDeep>(peek().kind == TokenKind::kEnd ? line_ : peek().span,
                                        kDepthMax)
          .emit();
    }
    return 0;
  }

  const std::vector<Token>& tokens_;
  std::string_view directive_;
  Span line_;
  Diagnostics& diags_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool failed_ = false;
};

}  // namespace

std::optional<std::int64_t> evaluate_condition(const std::vector<Token>& tokens,
                                               std::string_view directive, Span line,
                                               Diagnostics& diags) {
  return Evaluator(tokens, directive, line, diags).run();
}

}  // namespace kiln::syntax
