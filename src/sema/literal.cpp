#include "sema/literal.h"

#include <cmath>

namespace kiln::sema {

namespace {

bool is_integer_in_range(const DTypeInfo& row, std::int64_t value) {
  const bool is_signed = row.kind == NumberKind::kSigned;
  if (!is_signed && value < 0) return false;
  const int value_bits = row.bits - (is_signed ? 1 : 0);
  if (value_bits >= 63) return true;
  const std::int64_t end = std::int64_t{1} << value_bits;
  return value < end && value >= -end;
}

// The first magnitude that rounds to none of the type's finite numbers.
double float_end(const DTypeInfo& row) {
  const double last_place = std::ldexp(1.0, std::ilogb(row.max) - row.mantissa_bits);
  return row.max + last_place / 2;
}

bool is_float_in_range(const DTypeInfo& row, double value) {
  if (!std::isfinite(value)) return true;  // meant
  if (row.kind == NumberKind::kFloat) {
    return row.bits > 32 || std::fabs(value) < float_end(row) || std::fabs(value) <= row.max;
  }
  const double low = row.kind == NumberKind::kSigned ? -std::ldexp(1.0, row.bits - 1) : 0;
  const double whole = std::trunc(value);
  return whole >= low && whole < std::ldexp(1.0, row.bits - (low < 0 ? 1 : 0));
}

// What `__to` makes of it.
std::string converted_text(DType dtype, const Operand& operand) {
  if (operand.kind == Operand::Kind::kInt && is_integer(dtype)) {
    const DTypeInfo& row = info(dtype);
    const auto bits = static_cast<std::uint64_t>(*operand.integer.value.constant());
    if (row.kind == NumberKind::kUnsigned) {
      return format("{}", row.bits < 64 ? bits & ((std::uint64_t{1} << row.bits) - 1) : bits);
    }
    return format("{}", static_cast<std::int64_t>(bits << (64 - row.bits)) >> (64 - row.bits));
  }
  const double value = round_to(dtype, *literal_number(operand));
  if (!is_integer(dtype) || std::fabs(value) < 0x1p53) return format("{}", value);
  return value < 0 ? "the type's least value" : "the type's largest value";
}

}  // namespace

std::optional<double> literal_number(const Operand& operand) {
  if (operand.kind == Operand::Kind::kFloat) return operand.number;
  if (operand.kind != Operand::Kind::kInt) return std::nullopt;
  const auto constant = operand.integer.value.constant();
  return constant ? std::optional(static_cast<double>(*constant)) : std::nullopt;
}

bool is_least_index(Sema& sema, const ast::UnaryExpr& unary) {
  constexpr std::uint64_t kMagnitude = std::uint64_t{1} << 63;
  const auto* literal = sema.ast.as<ast::IntExpr>(unary.operand);
  return unary.op == ast::UnaryOp::kMinus && literal != nullptr && literal->value == kMagnitude &&
         sema.sources.text(sema.ast[unary.operand].span).find_first_of("uU") == std::string::npos;
}

bool is_beyond_indices(const Sema& sema, const Operand& operand) {
  if (operand.kind != Operand::Kind::kScalar || operand.dtype != DType::kU64) return false;
  const auto* cast = sema.function.def_as<ir::Cast>(operand.id);
  const auto* bits = cast == nullptr ? nullptr : sema.function.def_as<ir::Index>(cast->operand);
  return bits != nullptr && bits->expr.constant().value_or(0) < 0;
}

std::string range_text(DType dtype) {
  const DTypeInfo& row = info(dtype);
  if (row.kind == NumberKind::kFloat) return format("{} to {}", -row.max, row.max);
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - row.bits);
  if (row.kind == NumberKind::kSigned) return format("-{} to {}", all / 2 + 1, all / 2);
  return format("0 to {}", all);
}

bool is_in_range(DType dtype, const Operand& operand) {
  const auto number = literal_number(operand);
  if (!number || dtype == DType::kBool) return true;
  if (operand.kind == Operand::Kind::kInt && is_integer(dtype)) {
    return is_integer_in_range(info(dtype), *operand.integer.value.constant());
  }
  return is_float_in_range(info(dtype), *number);
}

bool check_literal(Sema& sema, const Operand& operand, DType dtype) {
  if (is_in_range(dtype, operand)) return true;
  const std::string written(sema.sources.text(operand.span));
  const std::string number = operand.kind == Operand::Kind::kInt
                                 ? format("{}", *operand.integer.value.constant())
                                 : written;
  (void)sema.diags
      .report<diag::LiteralRange>(
          operand.span,
          written == number ? format("`{}`", written) : format("`{}` = {}", written, number),
          name(dtype), range_text(dtype))
      .help("`__to<{}>({})` converts it, to {}", name(dtype), written,
            converted_text(dtype, operand))
      .emit();
  return false;
}

}  // namespace kiln::sema
