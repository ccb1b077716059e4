#include "sema/constant.h"

#include <algorithm>
#include <limits>

#include "sema/expression.h"
#include "sema/literal.h"
#include "sema/statement.h"

namespace kiln::sema {

std::string_view describe(Constant::Kind kind) {
  switch (kind) {
    case Constant::Kind::kInteger: return "an integer";
    case Constant::Kind::kBool: return "a bool";
    case Constant::Kind::kType: return "a type";
  }
  return "";
}

std::string text(const Constant& constant) {
  if (constant.kind == Constant::Kind::kType) return std::string(name(constant.type));
  if (constant.kind == Constant::Kind::kBool) return constant.value != 0 ? "true" : "false";
  return format("{}", constant.value);
}

namespace {

using Kind = Constant::Kind;

// Whether a number counts as a condition, as in C, or has to be compared.
enum class Numbers : std::uint8_t { kCount, kRefused };

// Evaluates constants by themselves, so that a part that is not asked for (behind `&&`, or the
// other side of `?:`) need not have a value.
class ConstantEvaluator {
 public:
  ConstantEvaluator(Sema& sema, std::string_view what, Numbers numbers = Numbers::kCount)
      : sema_(sema), what_(what), numbers_(numbers) {}

  std::optional<Constant> value(ast::ExprId id) {
    const ast::ExprNode& node = sema_.ast[id].node;
    if (const auto* type = std::get_if<ast::TypeExpr>(&node)) {
      return Constant{Kind::kType, 0, type_of(sema_, type->type)};
    }
    if (const auto* unary = std::get_if<ast::UnaryExpr>(&node)) return of_unary(*unary, id);
    if (const auto* binary = std::get_if<ast::BinaryExpr>(&node)) {
      if (is_known(binary->op)) return of_binary(*binary);
    }
    if (const auto* choice = std::get_if<ast::ConditionalExpr>(&node)) {
      const auto condition = truth(choice->condition);
      if (!condition) return std::nullopt;
      return value(*condition ? choice->then_value : choice->else_value);
    }
    return leaf(id);
  }

  std::optional<bool> truth(ast::ExprId id) {
    const auto constant = value(id);
    if (!constant) return std::nullopt;
    const bool is_type = constant->kind == Kind::kType;
    const bool is_number = constant->kind == Kind::kInteger && numbers_ == Numbers::kRefused;
    if (!is_type && !is_number) return constant->value != 0;
    (void)sema_.diags.report<diag::ConditionNotBool>(sema_.ast[id].span, describe(constant->kind))
        .help("compare it: `{} {}`", sema_.sources.text(sema_.ast[id].span),
              is_type ? "== bf16" : "!= 0")
        .emit();
    return std::nullopt;
  }

 private:
  static bool is_known(ast::BinaryOp op) {
    return op <= ast::BinaryOp::kRemainder ||
           (op >= ast::BinaryOp::kBitAnd && op <= ast::BinaryOp::kBitXor);
  }

  std::optional<Constant> leaf(ast::ExprId id) {
    const Operand operand = evaluated(id);
    if (operand.is_error()) return std::nullopt;
    const bool is_int = operand.kind == Operand::Kind::kInt;
    const auto constant = is_int ? operand.integer.value.constant() : std::nullopt;
    if (constant) {
      return Constant{operand.dtype == DType::kBool ? Kind::kBool : Kind::kInteger, *constant, {}};
    }
    auto report = sema_.diags.report<diag::ConstantNeeded>(
        operand.span, what_,
        is_int ? format("`{}`", text(sema_, operand.integer.value))
               : describe(operand, sema_.function));
    if (sema_.ast.as<ast::IntExpr>(id) == nullptr) {
      (void)std::move(report).emit();
      return std::nullopt;
    }
    (void)std::move(report)
        .help("the largest constant is that of an s64, {}",
              std::numeric_limits<std::int64_t>::max())
        .emit();
    return std::nullopt;
  }

  // Beside the functions there is no region for the operations of what turns out to be no constant:
  // they get one that is thrown away.
  Operand evaluated(ast::ExprId id) {
    if (!sema_.regions.empty()) return evaluate(sema_, id);
    Operand operand;
    (void)in_region(sema_, [&] { operand = evaluate(sema_, id); });
    return operand;
  }

  std::optional<Constant> of_unary(const ast::UnaryExpr& unary, ast::ExprId id) {
    if (unary.op == ast::UnaryOp::kNot) {
      const auto operand = truth(unary.operand);
      if (!operand) return std::nullopt;
      return Constant{Kind::kBool, *operand ? 0 : 1, {}};
    }
    if (unary.op != ast::UnaryOp::kMinus || is_least_index(sema_, unary)) return leaf(id);
    const auto operand = value(unary.operand);
    if (!operand) return std::nullopt;
    return arithmetic(ast::BinaryOp::kSubtract, unary.op_span, {Kind::kInteger, 0, {}}, *operand);
  }

  std::optional<Constant> of_binary(const ast::BinaryExpr& binary) {
    if (binary.op == ast::BinaryOp::kAnd || binary.op == ast::BinaryOp::kOr) {
      const auto first = truth(binary.left);
      if (!first) return std::nullopt;
      if (*first == (binary.op == ast::BinaryOp::kOr)) return Constant{Kind::kBool, *first, {}};
      const auto right = truth(binary.right);
      if (!right) return std::nullopt;
      return Constant{Kind::kBool, *right, {}};
    }
    const auto left = value(binary.left);
    if (!left) return std::nullopt;
    const auto right = value(binary.right);
    if (!right) return std::nullopt;
    const bool of_types = left->kind == Kind::kType || right->kind == Kind::kType;
    if (!of_types) return arithmetic(binary.op, binary.op_span, *left, *right);
    const bool compares =
        binary.op == ast::BinaryOp::kEqual || binary.op == ast::BinaryOp::kNotEqual;
    if (!compares || left->kind != right->kind) {
      (void)sema_.diags
          .report<diag::OperandTypes>(binary.op_span, spelling(binary.op), describe(left->kind),
                                      describe(right->kind))
          .help("types are compared with types, by `==` and `!=`")
          .emit();
      return std::nullopt;
    }
    const bool equal = left->type == right->type;
    return Constant{Kind::kBool, equal == (binary.op == ast::BinaryOp::kEqual), {}};
  }

  // Nothing where the result does not fit, or there is none.
  static std::optional<std::int64_t> computed(ast::BinaryOp op, std::int64_t a, std::int64_t b) {
    using enum ast::BinaryOp;
    constexpr std::int64_t kShiftMax = 62;
    std::int64_t out = 0;
    const bool divides = b != 0 && !(a == INT64_MIN && b == -1);
    const bool shifts = b >= 0 && b <= kShiftMax;
    if (op == kAdd) return __builtin_add_overflow(a, b, &out) ? std::nullopt : std::optional(out);
    if (op == kSubtract)
      return __builtin_sub_overflow(a, b, &out) ? std::nullopt : std::optional(out);
    if (op == kMultiply)
      return __builtin_mul_overflow(a, b, &out) ? std::nullopt : std::optional(out);
    if (op == kDivide && divides) return a / b;
    if (op == kRemainder && divides) return a % b;
    if (op == kShiftRight && shifts) return a >> b;
    if (op == kShiftLeft && shifts) {
      return __builtin_mul_overflow(a, std::int64_t{1} << b, &out) ? std::nullopt
                                                                   : std::optional(out);
    }
    if (op == kBitAnd) return a & b;
    if (op == kBitOr) return a | b;
    if (op == kBitXor) return a ^ b;
    return std::nullopt;
  }

  static std::optional<bool> compared(ast::BinaryOp op, std::int64_t a, std::int64_t b) {
    using enum ast::BinaryOp;
    if (op == kEqual) return a == b;
    if (op == kNotEqual) return a != b;
    if (op == kLess) return a < b;
    if (op == kLessEqual) return a <= b;
    if (op == kGreater) return a > b;
    if (op == kGreaterEqual) return a >= b;
    return std::nullopt;
  }

  std::optional<Constant> arithmetic(ast::BinaryOp op, Span op_span, const Constant& left,
                                     const Constant& right) {
    if (const auto truth = compared(op, left.value, right.value)) {
      return Constant{Kind::kBool, *truth ? 1 : 0, {}};
    }
    const auto result = computed(op, left.value, right.value);
    if (result) return Constant{Kind::kInteger, *result, {}};
    const bool by_zero =
        right.value == 0 && (op == ast::BinaryOp::kDivide || op == ast::BinaryOp::kRemainder);
    if (by_zero) {
      (void)sema_.diags.report<diag::ConstantDivisionByZero>(op_span, text(left)).emit();
    } else {
      (void)sema_.diags
          .report<diag::ConstantOverflow>(op_span, spelling(op), left.value, right.value)
          .emit();
    }
    return std::nullopt;
  }

  Sema& sema_;
  std::string_view what_;
  Numbers numbers_;
};

}  // namespace

std::optional<Constant> constant_of(Sema& sema, ast::ExprId id, std::string_view what) {
  if (!id.valid()) return std::nullopt;  // reported by the parser
  return ConstantEvaluator(sema, what).value(id);
}

std::optional<bool> condition_of(Sema& sema, ast::ExprId id, std::string_view what) {
  if (!id.valid()) return std::nullopt;
  return ConstantEvaluator(sema, what).truth(id);
}

// 0 and 1 are bools where bools are asked for, so that `-D CAUSAL` and `-D CAUSAL=0` bind one.
std::optional<Constant> constant_of_kind(Sema& sema, ast::ExprId id, const ast::Name& name,
                                         Kind kind) {
  auto constant = constant_of(sema, id, format("`{}`", name.text));
  if (!constant) return std::nullopt;
  const bool is_bit = constant->kind == Kind::kInteger && (constant->value | 1) == 1;
  if (kind == Kind::kBool && is_bit) constant->kind = kind;
  if (constant->kind == kind) return constant;
  auto report = sema.diags.report<diag::ConstantKind>(sema.ast[id].span, name.text, describe(kind),
                                                      describe(constant->kind));
  (void)std::move(report)
      .label(name.span, "{}", describe(kind))
      .help("{}", kind == Kind::kType   ? "give a type: `bf16`, `f32`"
                  : kind == Kind::kBool ? "give `true` or `false`"
                                        : "give a number")
      .emit();
  return std::nullopt;
}

Symbol symbol_of(const Constant& constant, Span span) {
  if (constant.kind == Kind::kType) {
    Symbol symbol{Symbol::Kind::kType, {}, span};
    symbol.operand.dtype = constant.type;
    return symbol;
  }
  Symbol symbol{Symbol::Kind::kOperand, make_int(ir::Expr(constant.value), span), span};
  if (constant.kind == Kind::kBool) symbol.operand.dtype = DType::kBool;
  return symbol;
}

DType type_of(Sema& sema, const ast::Type& type) {
  if (type.name.empty()) return type.dtype;
  const Symbol* symbol = sema.scopes.find(type.name);
  if (symbol != nullptr && symbol->kind == Symbol::Kind::kType) return symbol->operand.dtype;
  sema.guessed_type = true;
  const bool reported = symbol != nullptr && symbol->operand.is_error();
  if (!reported) {
    (void)sema.diags.report<diag::UnknownName>(type.span, type.name)
        .help("a type is named by `constexpr type {} = bf16;`, before it is used", type.name)
        .emit();
  }
  return DType::kF32;
}

std::optional<DType> type_of(Sema& sema, const std::optional<ast::Type>& type) {
  if (!type) return std::nullopt;
  return type_of(sema, *type);
}

void analyse(Sema& sema, const ast::ConstantStmt& stmt, ast::StmtId) {
  for (const auto& [name, value] : stmt.items) {
    const auto constant = constant_of_kind(sema, value, name, stmt.kind);
    declare(sema, name, constant ? symbol_of(*constant, name.span) : Symbol{});
  }
}

void declare_file_constants(Sema& sema) {
  sema.scopes.push();
  for (const ast::Region& region : sema.ast.regions) {
    const auto* constant = std::get_if<ast::Constant>(&region);
    if (constant == nullptr) continue;
    analyse_statement(sema, constant->statement);
    const auto& stmt = *sema.ast.as<ast::ConstantStmt>(constant->statement);
    for (const ast::ConstantStmt::Item& item : stmt.items) {
      const Symbol* symbol = sema.scopes.find(item.name.text);
      if (symbol == nullptr || symbol->operand.kind != Operand::Kind::kInt) continue;
      const auto value = symbol->operand.integer.value.constant();
      if (value) sema.function.file_constants.push_back({item.name.text, *value});
    }
  }
  sema.globals = sema.scopes;
}

namespace {

// A text that may go over several lines, in one.
std::string in_one_line(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    const std::size_t last = line.find_last_not_of(" \t\r\\");
    if (!out.empty()) out += ' ';
    out += line.substr(0, last == std::string_view::npos ? 0 : last + 1);
    at = std::min(text.find_first_not_of(" \t\r\n", end), text.size());
  }
  return out;
}

// "STAGES = 9, CAUSAL = true".
std::string values_text(const Sema& sema, const ast::Template& templ) {
  return join(templ.params, ", ", [&](const ast::TemplateParam& param) {
    const Symbol* symbol = sema.scopes.find(param.name.text);
    if (symbol == nullptr) return format("{} = ?", param.name.text);
    if (symbol->kind == Symbol::Kind::kType) {
      return format("{} = {}", param.name.text, name(symbol->operand.dtype));
    }
    const Constant constant{param.kind, symbol->operand.integer.value.constant().value_or(0), {}};
    return format("{} = {}", param.name.text, text(constant));
  });
}

}  // namespace

bool check_requires(Sema& sema, const ast::TileFunction& function, Span span) {
  const ast::ExprId condition = function.templ.condition;
  if (!condition.valid()) return true;
  const auto holds =
      ConstantEvaluator(sema, "what `requires` says", Numbers::kRefused).truth(condition);
  if (!holds || *holds) return holds.has_value();
  (void)sema.diags
      .report<diag::RequiresFalse>(span, function.name.text,
                                   in_one_line(sema.sources.text(sema.ast[condition].span)),
                                   values_text(sema, function.templ))
      .label(sema.ast[condition].span, "this is false")
      .emit();
  return false;
}

bool bind_template(Sema& sema, const ast::TileFunction& function) {
  bool fine = true;
  Span place = function.name.span;
  for (const ast::TemplateParam& param : function.templ.params) {
    const ast::ExprId value = param.bound.valid() ? param.bound : param.fallback;
    if (param.bound.valid()) place = sema.ast[param.bound].span;
    if (!value.valid()) {
      (void)sema.diags
          .report<diag::TemplateUnbound>(param.name.span, param.name.text, function.name.text)
          .help("define it, `{}=...`, or give it a default", param.name.text)
          .emit();
    }
    const auto constant = constant_of_kind(sema, value, param.name, param.kind);
    declare(sema, param.name, constant ? symbol_of(*constant, param.name.span) : Symbol{});
    fine = fine && constant;
  }
  return fine && check_requires(sema, function, place);
}

}  // namespace kiln::sema
