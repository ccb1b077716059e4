#include "reference/number.h"

#include <algorithm>
#include <cmath>

#include "ir/functions.h"

namespace kiln::reference {

namespace {

using ir::BinaryKind;
using ir::UnaryKind;

// True when a machine that computes `value` in `dtype` gets exactly it. Sums and products of f64
// are rounded in our own arithmetic as well, so only small integers are sure.
bool representable(DType dtype, double value) {
  if (dtype == DType::kF64) return std::trunc(value) == value && std::fabs(value) < 0x1p53;
  return round_to(dtype, value) == value;
}

double rounding_error(DType dtype, double value, double error) {
  return roundoff(dtype) * (std::fabs(value) + error) + smallest(dtype) / 2;
}

// The result of a floating operation that was done in fp64 on operands with a joint error.
Number rounded(DType dtype, double value, double error) {
  if (std::isnan(error)) error = kUnbounded;
  if (error == kUnbounded || !std::isfinite(value)) return {value, error};
  if (std::fabs(value) + error > info(dtype).max) {
    const double limit = round_to(dtype, value);
    return error == 0 ? Number{limit, 0} : Number{value, kUnbounded};
  }
  if (error == 0 && representable(dtype, value)) return {value, 0};
  return {value, error + rounding_error(dtype, value, error)};
}

// The low bits of an integer, as the type reads them.
double wrapped(DType dtype, std::uint64_t bits) {
  const int width = std::max(info(dtype).bits, 1);
  if (width >= 64) return decode(dtype, bits);
  return decode(dtype, bits & ((std::uint64_t{1} << width) - 1));
}

std::uint64_t bits_of(double value) {
  if (!(value >= -0x1p63)) return 0;  // also NaN
  if (value < 0) return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  return value >= 0x1p64 ? UINT64_MAX : static_cast<std::uint64_t>(value);
}

Number truth(bool value) { return {value ? 1.0 : 0.0, 0}; }

Number divide_integers(DType dtype, Number left, Number right, bool remainder) {
  if (right.value == 0) return unknown();
  const auto a = static_cast<__int128>(left.value);
  const auto b = static_cast<__int128>(right.value);
  return {wrapped(dtype, static_cast<std::uint64_t>(remainder ? a % b : a / b)), 0};
}

Number shift_integer(DType dtype, Number left, Number right, bool up) {
  if (right.value < 0 || right.value >= info(dtype).bits) return unknown();
  const auto count = static_cast<int>(right.value);
  if (up) return {wrapped(dtype, bits_of(left.value) << count), 0};
  return {std::floor(std::ldexp(left.value, -count)), 0};
}

Number compare(BinaryKind kind, Number left, Number right) {
  const double slack = left.error + right.error;
  const bool open = slack > 0 && !(std::fabs(left.value - right.value) > slack);
  Number out;
  if (kind == BinaryKind::kEq) out = truth(left.value == right.value);
  if (kind == BinaryKind::kNe) out = truth(left.value != right.value);
  if (kind == BinaryKind::kLt) out = truth(left.value < right.value);
  if (kind == BinaryKind::kLe) out = truth(left.value <= right.value);
  if (kind == BinaryKind::kGt) out = truth(left.value > right.value);
  if (kind == BinaryKind::kGe) out = truth(left.value >= right.value);
  out.error = open ? 1 : 0;
  return out;
}

Number logical(bool both, Number left, Number right) {
  const bool a = left.value != 0;
  const bool b = right.value != 0;
  // One sure operand can settle the answer whatever the other is.
  const bool settled = (left.error == 0 && a != both) || (right.error == 0 && b != both);
  Number out = truth(both ? a && b : a || b);
  out.error = settled ? 0 : std::max(left.error, right.error);
  return out;
}

Number integer(BinaryKind kind, DType dtype, Number left, Number right) {
  const bool open = left.error > 0 || right.error > 0;
  const std::uint64_t a = bits_of(left.value);
  const std::uint64_t b = bits_of(right.value);
  auto result = [&](std::uint64_t bits) {
    return open ? unknown() : Number{wrapped(dtype, bits), 0};
  };
  switch (kind) {
    case BinaryKind::kAdd: return result(a + b);
    case BinaryKind::kSub: return result(a - b);
    case BinaryKind::kMul: return result(a * b);
    case BinaryKind::kDiv: return open ? unknown() : divide_integers(dtype, left, right, false);
    case BinaryKind::kRem: return open ? unknown() : divide_integers(dtype, left, right, true);
    case BinaryKind::kAnd: return result(a & b);
    case BinaryKind::kOr: return result(a | b);
    case BinaryKind::kXor: return result(a ^ b);
    case BinaryKind::kShl: return open ? unknown() : shift_integer(dtype, left, right, true);
    case BinaryKind::kShr: return open ? unknown() : shift_integer(dtype, left, right, false);
    case BinaryKind::kMin:
      return {std::min(left.value, right.value), std::max(left.error, right.error)};
    case BinaryKind::kMax:
      return {std::max(left.value, right.value), std::max(left.error, right.error)};
    case BinaryKind::kEq:
    case BinaryKind::kNe:
    case BinaryKind::kLt:
    case BinaryKind::kLe:
    case BinaryKind::kGt:
    case BinaryKind::kGe: return compare(kind, left, right);
    case BinaryKind::kLogicalAnd: return logical(true, left, right);
    case BinaryKind::kLogicalOr: return logical(false, left, right);
  }
  return unknown();
}

Number divide_floats(DType dtype, Number left, Number right) {
  const double value = left.value / right.value;
  const double room = std::fabs(right.value) - right.error;
  const bool open = left.error > 0 || right.error > 0;
  if (!open) {
    // An inexact quotient must not pass for an exact one because fp64 rounded it to a short number.
    const bool exact = std::fma(value, right.value, -left.value) == 0;
    if (exact || !std::isfinite(value)) return rounded(dtype, value, 0);
    return rounded(dtype, value, std::fabs(value) * 0x1p-53);
  }
  if (!(room > 0)) return unknown();
  return rounded(dtype, value, (left.error + std::fabs(value) * right.error) / room);
}

Number floating(BinaryKind kind, DType dtype, Number left, Number right) {
  const double sum_error = left.error + right.error;
  switch (kind) {
    case BinaryKind::kAdd: return rounded(dtype, left.value + right.value, sum_error);
    case BinaryKind::kSub: return rounded(dtype, left.value - right.value, sum_error);
    case BinaryKind::kMul: {
      const double error = std::fabs(left.value) * right.error +
                           std::fabs(right.value) * left.error + left.error * right.error;
      return rounded(dtype, left.value * right.value, sum_error > 0 ? error : 0);
    }
    case BinaryKind::kDiv: return divide_floats(dtype, left, right);
    case BinaryKind::kRem:
      return sum_error > 0 ? unknown() : Number{std::fmod(left.value, right.value), 0};
    case BinaryKind::kMin:
      return {std::fmin(left.value, right.value), std::max(left.error, right.error)};
    case BinaryKind::kMax:
      return {std::fmax(left.value, right.value), std::max(left.error, right.error)};
    case BinaryKind::kEq:
    case BinaryKind::kNe:
    case BinaryKind::kLt:
    case BinaryKind::kLe:
    case BinaryKind::kGt:
    case BinaryKind::kGe: return compare(kind, left, right);
    case BinaryKind::kLogicalAnd: return logical(true, left, right);
    case BinaryKind::kLogicalOr: return logical(false, left, right);
    case BinaryKind::kAnd:
    case BinaryKind::kOr:
    case BinaryKind::kXor:
    case BinaryKind::kShl:
    case BinaryKind::kShr: break;
  }
  KILN_UNREACHABLE("a bit operation on {}", name(dtype));
}

Number to_integer(Number number, DType from, DType to) {
  auto one = [&](double value) {
    if (is_float(from)) return round_to(to, value);
    return wrapped(to, bits_of(value));
  };
  if (number.error == 0) return {one(number.value), 0};
  if (number.error == kUnbounded || std::isnan(number.value)) return unknown();
  const double low = one(number.value - number.error);
  const double high = one(number.value + number.error);
  const double value = one(number.value);
  return {value, std::max(std::fabs(high - value), std::fabs(value - low))};
}

}  // namespace

Number unknown() { return {std::numeric_limits<double>::quiet_NaN(), kUnbounded}; }

Number convert(Number number, DType from, DType to) {
  if (from == to) return number;
  if (to == DType::kBool) {
    return apply(BinaryKind::kNe, from, number, Number{});
  }
  if (is_integer(to)) return to_integer(number, from, to);
  if (number.error == 0) return {round_to(to, number.value), 0};
  if (number.error == kUnbounded) return number;
  return {number.value, number.error + rounding_error(to, number.value, number.error)};
}

Number apply(BinaryKind kind, DType dtype, Number left, Number right) {
  return is_float(dtype) ? floating(kind, dtype, left, right) : integer(kind, dtype, left, right);
}

namespace {

// All of them are monotonic: the ends of the operand's interval bound the values in between.
Number function(UnaryKind kind, DType dtype, Number operand) {
  if (operand.error == kUnbounded) return unknown();
  const double value = ir::value_of(kind, operand.value);
  if (std::isnan(value) || std::isinf(value)) {
    return operand.error == 0 ? Number{value, 0} : unknown();
  }
  const double low = ir::value_of(kind, operand.value - operand.error);
  const double high = ir::value_of(kind, operand.value + operand.error);
  const double spread = std::max(std::fabs(low - value), std::fabs(high - value));
  // A unit in the last place is two roundings to nearest.
  const double error = spread + 2 * ir::kFunctionUlps * rounding_error(dtype, value, 0);
  return std::isnan(error) || std::isinf(error) ? unknown() : Number{value, error};
}

}  // namespace

Number apply(UnaryKind kind, DType dtype, Number operand) {
  switch (kind) {
    case UnaryKind::kNegate:
      if (is_float(dtype)) return {-operand.value, operand.error};
      return apply(BinaryKind::kSub, dtype, Number{}, operand);
    case UnaryKind::kNot: return {operand.value == 0 ? 1.0 : 0.0, operand.error};
    case UnaryKind::kBitNot:
      return operand.error > 0 ? unknown() : Number{wrapped(dtype, ~bits_of(operand.value)), 0};
    case UnaryKind::kExp:
    case UnaryKind::kLog:
    case UnaryKind::kTanh:
    case UnaryKind::kErf:
    case UnaryKind::kSqrt:
    case UnaryKind::kRsqrt: return function(kind, dtype, operand);
  }
  return unknown();
}

Number choose(Number condition, Number if_true, Number if_false) {
  const bool yes = condition.value != 0;
  Number out = yes ? if_true : if_false;
  const Number& other = yes ? if_false : if_true;
  if (condition.error == 0) return out;
  out.error = std::max(out.error, std::fabs(other.value - out.value) + other.error);
  if (std::isnan(out.error)) out.error = kUnbounded;
  return out;
}

}  // namespace kiln::reference
