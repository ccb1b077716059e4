#include "reference/number.h"

#include <algorithm>
#include <cmath>

#include "ir/functions.h"
#include "ir/integer.h"
#include "reference/spread.h"

namespace kiln::reference {

namespace {

using ir::BinaryClass;
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

// The least value of a float that saturates: without a sign 0, or the least power of two.
double lowest(DType saturating) { return round_to(saturating, -kUnbounded); }

// To a float that a conversion gives no infinity: in doubt up to the largest value, not beyond.
Number to_saturating(const Number& number, DType to) {
  const double max = info(to).max;
  const double min = lowest(to);
  const double low = std::clamp(number.value - number.error, min, max);
  const double high = std::clamp(number.value + number.error, min, max);
  const double value = std::clamp(number.value, min, max);
  if (low == max || high == min) return {value, 0};  // surely beyond the end
  const double error = std::max(high - value, value - low);
  return {value, error + rounding_error(to, value, error)};
}

// A number of which a float with infinities may have no finite one: it surely overflows, surely
// does not, or nobody knows.
Number overflowed(DType dtype, const Number& number) {
  const double magnitude = std::fabs(number.value);
  if (std::isfinite(round_to(dtype, magnitude + number.error))) return number;
  const bool surely = std::isinf(round_to(dtype, std::max(magnitude - number.error, 0.0)));
  return surely ? Number{std::copysign(kUnbounded, number.value), 0}
                : Number{number.value, kUnbounded};
}

// The result of a floating operation that was done in fp64 on operands with a joint error.
Number rounded(DType dtype, double value, double error) {
  if (std::isnan(error)) error = kUnbounded;
  if (error == kUnbounded) return {value, error};
  if (!std::isfinite(value)) return {error == 0 ? round_to(dtype, value) : value, error};
  if (error > 0 && saturates(dtype)) return to_saturating({value, error}, dtype);
  if (saturates(dtype) && value < lowest(dtype)) return {lowest(dtype), 0};
  if (std::fabs(value) + error > info(dtype).max) {
    if (error == 0) return {round_to(dtype, value), 0};
    // Of these a machine may fuse a product that is too large into a sum that is not.
    const bool fuses = dtype == DType::kF32 || dtype == DType::kF64;
    return fuses ? Number{value, kUnbounded} : overflowed(dtype, {value, error});
  }
  if (error == 0 && representable(dtype, value)) return {value, 0};
  // Of exact operands a machine in fp64 rounds to this value, too; of others it and we round apart.
  const bool apart = dtype == DType::kF64 && error > 0;
  return {value, error + (apart ? 2 : 1) * rounding_error(dtype, value, error)};
}

// The integer of an exact number, NaN being 0.
__int128 integer_of(const Number& number) {
  constexpr double kFar = 0x1p100;
  if (std::isnan(number.value)) return 0;
  return joined({std::clamp(number.value, -kFar, kFar), number.rest});
}

std::uint64_t bits_of(const Number& number) {
  return static_cast<std::uint64_t>(integer_of(number));
}

struct Range {
  __int128 low;
  __int128 high;
};

Range range_of(DType dtype) {
  const int bits = info(dtype).bits;
  if (info(dtype).kind != NumberKind::kSigned) return {0, (__int128{1} << bits) - 1};
  return {-(__int128{1} << (bits - 1)), (__int128{1} << (bits - 1)) - 1};
}

Number truth(bool value) { return {value ? 1.0 : 0.0, 0}; }

// What is between two numbers that neither wraps: their middle and the way to the ends.
Number between(DType dtype, double low, double high) {
  const Range range = range_of(dtype);
  const bool inside = low >= std::max(static_cast<double>(range.low), -0x1p53) &&
                      high <= std::min(static_cast<double>(range.high), 0x1p53);
  if (!inside) return unknown();
  const double value = std::floor(low + (high - low) / 2);
  return {value, std::max(high - value, value - low)};
}

// Operands that are not known exactly: where the result cannot wrap, its interval.
Number open_integer(BinaryKind kind, DType dtype, const Number& left, const Number& right) {
  const double low[] = {left.value - left.error, right.value - right.error};
  const double high[] = {left.value + left.error, right.value + right.error};
  if (kind == BinaryKind::kAdd) return between(dtype, low[0] + low[1], high[0] + high[1]);
  if (kind == BinaryKind::kSub) return between(dtype, low[0] - high[1], high[0] - low[1]);
  const double ends[] = {low[0] * low[1], low[0] * high[1], high[0] * low[1], high[0] * high[1]};
  if (kind == BinaryKind::kMul) {
    return between(dtype, *std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4));
  }
  if (right.error > 0) return unknown();
  if (kind == BinaryKind::kDiv && right.value > 0) {
    return between(dtype, std::trunc(low[0] / right.value), std::trunc(high[0] / right.value));
  }
  const bool shifts = right.value >= 0 && right.value < info(dtype).bits;
  if (kind == BinaryKind::kShr && shifts) {
    const int count = -static_cast<int>(right.value);
    return between(dtype, std::floor(std::ldexp(low[0], count)),
                   std::floor(std::ldexp(high[0], count)));
  }
  return unknown();
}

Number compare(BinaryKind kind, Number left, Number right) {
  const double slack = left.error + right.error;
  const bool open = slack > 0 && !(std::fabs(left.value - right.value) > slack);
  // The rests decide where the nearest doubles are one.
  const bool equal = left.value == right.value;
  const double a = equal ? left.rest : left.value;
  const double b = equal ? right.rest : right.value;
  Number out = truth(ir::value_of(kind, a, b) != 0);
  // Of what is not known at all the answer is not either.
  out.error = !open ? 0 : std::isfinite(slack) ? 1 : kUnbounded;
  return out;
}

Number logical(BinaryKind kind, Number left, Number right) {
  const bool both = kind == BinaryKind::kLogicalAnd;
  const bool a = left.value != 0;
  const bool b = right.value != 0;
  // One sure operand can settle the answer whatever the other is.
  const bool settled = (left.error == 0 && a != both) || (right.error == 0 && b != both);
  Number out = from_bits(DType::kBool, ir::value_of(kind, DType::kBool, a, b).value_or(0) != 0);
  out.error = settled ? 0 : std::max(left.error, right.error);
  return out;
}

// The smaller or the larger; what is no number is passed over.
Number select(BinaryKind kind, const Number& left, const Number& right) {
  if (left.error == kUnbounded || right.error == kUnbounded) return unknown();
  if (left.value == 0 && right.value == 0 && left.error == 0 && right.error == 0) {
    return {ir::value_of(kind, left.value, right.value), 0};  // -0 is less than 0
  }
  if (std::isnan(left.value)) return right;
  if (std::isnan(right.value)) return left;
  const bool min = kind == BinaryKind::kMin;
  const Number second =
      min ? compare(BinaryKind::kLt, right, left) : compare(BinaryKind::kLt, left, right);
  Number out = second.value != 0 ? right : left;
  // Where it is open which of them it is, they are close to each other.
  if (second.error > 0) out.error = std::max(left.error, right.error);
  return out;
}

// Numbers, or the bits of integers. What a division by zero or a shift by the width gives is known
// of no machine.
Number integer(BinaryKind kind, DType dtype, const Number& left, const Number& right) {
  if (left.error > 0 || right.error > 0) return open_integer(kind, dtype, left, right);
  const auto a = static_cast<std::int64_t>(bits_of(left));
  const auto b = static_cast<std::int64_t>(bits_of(right));
  const bool shifts = kind == BinaryKind::kShl || kind == BinaryKind::kShr;
  if (shifts && !ir::IntegerType(dtype).shifts_by(b)) return unknown();
  const std::optional<std::int64_t> out = ir::value_of(kind, dtype, a, b);
  return out ? from_bits(dtype, static_cast<std::uint64_t>(*out)) : unknown();
}

// Whether the result is the infinity `value` whatever the other operand's error makes of it: that
// operand is finite, and in a product or a quotient has one sign.
bool stays_infinite(BinaryKind kind, double value, const Number& left, const Number& right) {
  if (!std::isinf(value)) return false;
  const bool first = std::isinf(left.value);
  const Number& endless = first ? left : right;
  const Number& other = first ? right : left;
  if (!std::isinf(endless.value) || endless.error != 0 || !std::isfinite(other.value)) return false;
  if (kind == BinaryKind::kAdd || kind == BinaryKind::kSub) return std::isfinite(other.error);
  return std::fabs(other.value) > other.error;
}

Number divide_floats(DType dtype, Number left, Number right) {
  const double value = ir::value_of(BinaryKind::kDiv, left.value, right.value);
  const double room = std::fabs(right.value) - right.error;
  const bool open = left.error > 0 || right.error > 0;
  if (!open) {
    // An inexact quotient must not pass for an exact one because fp64 rounded it to a short number.
    const bool exact = std::fma(value, right.value, -left.value) == 0;
    if (exact || !std::isfinite(value)) return rounded(dtype, value, 0);
    return rounded(dtype, value, std::fabs(value) * 0x1p-53);
  }
  if (!(room > 0)) return unknown();
  if (stays_infinite(BinaryKind::kDiv, value, left, right)) return {value, 0};
  return rounded(dtype, value, (left.error + std::fabs(value) * right.error) / room);
}

// A function's value in fp64, and what is known of the device's.
struct Computed {
  double value;
  double spread;     // how far the operands' errors may move it; 0: they do not
  double ulps;       // of the device, by the function's row
  bool at_infinity;  // of an exact infinity
  double zero = 0;   // smaller results may come out as 0
};

// The device's result of exact operands is at most the row's ulps from the rounded value: half a
// unit of the last place more from the value itself. That is the host's, off by a unit of fp64.
Number as_computed(DType dtype, const Computed& computed) {
  const double value = computed.value;
  if (!std::isfinite(value)) return computed.spread == 0 ? Number{value, 0} : unknown();
  // What is rounded correctly the host has exactly, and limits that are numbers the device has.
  const bool sure = computed.ulps <= 0 || (computed.at_infinity && round_to(dtype, value) == value);
  if (computed.spread == 0 && sure) return {round_to(dtype, value), 0};
  const double rounding =
      computed.ulps < 0 ? 0
                        : (2 * computed.ulps + 1) * rounding_error(dtype, value, computed.spread) +
                              2 * rounding_error(DType::kF64, value, computed.spread);
  const bool may_vanish = std::fabs(value) - computed.spread - rounding < computed.zero;
  const double error = computed.spread + rounding + (may_vanish ? computed.zero : 0);
  if (std::isnan(error) || std::isinf(error)) return unknown();
  return saturates(dtype) ? to_saturating({value, error}, dtype)
                          : overflowed(dtype, {value, error});
}

// Of two numbers, by its row.
Number function(BinaryKind kind, DType dtype, const Number& left, const Number& right) {
  if (left.error == kUnbounded || right.error == kUnbounded) return unknown();
  const ir::FunctionOfTwoInfo& row = ir::info(kind);
  const double value = ir::value_of(kind, left.value, right.value);
  const bool exact = left.error == 0 && right.error == 0;
  return as_computed(dtype, {.value = value,
                             .spread = exact ? 0 : spread_of(kind, left, right),
                             .ulps = dtype == DType::kF64 ? row.f64_ulps : row.f32_ulps,
                             .at_infinity = false});
}

Number floating(BinaryKind kind, DType dtype, Number left, Number right) {
  KILN_CHECK(ir::class_of(kind) == BinaryClass::kArithmetic, "a bit operation on {}", name(dtype));
  const double sum_error = left.error + right.error;
  if (kind == BinaryKind::kDiv) return divide_floats(dtype, left, right);
  const double value = ir::value_of(kind, left.value, right.value);
  if (kind == BinaryKind::kRem) return sum_error > 0 ? unknown() : Number{value, 0};
  if (stays_infinite(kind, value, left, right)) return {value, 0};
  double error = sum_error;
  if (kind == BinaryKind::kMul && sum_error > 0) {
    error = std::fabs(left.value) * right.error + std::fabs(right.value) * left.error +
            left.error * right.error;
  }
  return rounded(dtype, value, error);
}

// An exact value in the type; what is too large saturates.
Number saturated(DType to, const Number& number) {
  const Range range = range_of(to);
  const __int128 integer = integer_of({std::trunc(number.value), 0});
  return exactly(split(std::clamp(integer, range.low, range.high)));
}

Number to_integer(Number number, DType from, DType to) {
  if (number.error == 0) {
    return is_float(from) ? saturated(to, number) : from_bits(to, bits_of(number));
  }
  if (number.error == kUnbounded || std::isnan(number.value)) return unknown();
  const double low = number.value - number.error;
  const double high = number.value + number.error;
  if (!is_float(from)) return between(to, low, high);
  const double ends[] = {round_to(to, low), round_to(to, high)};
  const double value = round_to(to, number.value);
  return {value, std::max(ends[1] - value, value - ends[0])};
}

Number to_overflowing(const Number& number, DType to) {
  if (!std::isfinite(number.value)) return {number.value, kUnbounded};
  const Number limited = overflowed(to, number);
  if (!std::isfinite(limited.value) || limited.error == kUnbounded) return limited;
  return {number.value, number.error + rounding_error(to, number.value, number.error)};
}

}  // namespace

Number unknown() { return {std::numeric_limits<double>::quiet_NaN(), kUnbounded}; }

Number exactly(const ExactInteger& integer) { return {integer.value, 0, integer.rest}; }

Number from_bits(DType dtype, std::uint64_t bits) {
  if (info(dtype).kind == NumberKind::kBool) return {bits != 0 ? 1.0 : 0.0, 0};
  const int spare = 64 - info(dtype).bits;
  const std::uint64_t top = bits << spare;
  if (info(dtype).kind == NumberKind::kUnsigned) return exactly(split(top >> spare));
  return exactly(split(static_cast<std::int64_t>(top) >> spare));
}

namespace {

// The bits of a number that is known exactly; nothing of others, and of NaN, which has many.
std::optional<std::uint64_t> pattern_of(const Number& number, DType dtype) {
  if (number.error != 0 || std::isnan(number.value)) return std::nullopt;
  if (!is_float(dtype)) return static_cast<std::uint64_t>(joined({number.value, number.rest}));
  std::uint64_t bits = 0;
  store_element(dtype, reinterpret_cast<std::byte*>(&bits), 0, number.value);
  return bits;
}

// What the low bits are in a type.
Number with_pattern(DType dtype, std::uint64_t bits) {
  if (!is_float(dtype)) return from_bits(dtype, bits);
  return {load_element(dtype, reinterpret_cast<const std::byte*>(&bits), 0), 0};
}

}  // namespace

Number bitcast(const Number& number, DType from, DType to) {
  return recast({&number, 1}, from, to, 0);
}

Number recast(std::span<const Number> row, DType from, DType to, std::size_t at) {
  const auto own = static_cast<std::size_t>(info(from).bits);
  const auto wanted = static_cast<std::size_t>(info(to).bits);
  std::uint64_t bits = 0;
  for (std::size_t first = at * wanted; first < (at + 1) * wanted; first += own) {
    const auto part = pattern_of(row[first / own], from);
    if (!part) return unknown();
    const std::uint64_t whole = *part & ~std::uint64_t{0} >> (64 - own);
    bits |= whole >> first % own << (first - at * wanted);
  }
  return with_pattern(to, bits);
}

Number convert(Number number, DType from, DType to) {
  if (from == to) return number;
  if (to == DType::kBool) {
    return apply(BinaryKind::kNe, from, number, Number{});
  }
  if (is_integer(to)) return to_integer(number, from, to);
  if (number.error == 0) {
    // fp64 rounds to nearest, what is narrower is rounded once.
    const double value = to == DType::kF64 ? number.value : to_odd({number.value, number.rest});
    return {round_to(to, value), 0};
  }
  if (number.error == kUnbounded) return number;
  if (std::isnan(number.value)) return number;
  return saturates(to) ? to_saturating(number, to) : to_overflowing(number, to);
}

Number apply(BinaryKind kind, DType dtype, Number left, Number right) {
  switch (ir::class_of(kind)) {
    case BinaryClass::kExtremum: return select(kind, left, right);
    case BinaryClass::kComparison: return compare(kind, left, right);
    case BinaryClass::kLogical: return logical(kind, left, right);
    case BinaryClass::kFunction: return function(kind, dtype, left, right);
    case BinaryClass::kArithmetic:
    case BinaryClass::kBits: break;
  }
  return is_float(dtype) ? floating(kind, dtype, left, right) : integer(kind, dtype, left, right);
}

namespace {

// Of a type without a sign the least value.
Number negated(DType dtype, const Number& operand) {
  const Number opposite{-operand.value, operand.error};
  return lowest(dtype) < 0 ? opposite : convert(opposite, DType::kF64, dtype);
}

// Of one number, by its row.
Number function(UnaryKind kind, DType dtype, const Number& operand) {
  if (operand.error == kUnbounded) return unknown();
  const ir::FunctionInfo& row = ir::info(kind);
  const double value = row.value(operand.value);
  const bool exact = operand.error == 0;
  return as_computed(dtype, {.value = value,
                             .spread = exact ? 0 : spread_of(row, operand),
                             .ulps = dtype == DType::kF64 ? row.f64_ulps : row.f32_ulps,
                             .at_infinity = exact && std::isinf(operand.value),
                             .zero = dtype == DType::kF64 ? 0 : row.f32_zero});
}

}  // namespace

Number apply(UnaryKind kind, DType dtype, Number operand) {
  if (kind == UnaryKind::kNegate) {
    if (is_float(dtype)) return negated(dtype, operand);
    return apply(BinaryKind::kSub, dtype, Number{}, operand);
  }
  if (kind == UnaryKind::kNot) {
    return {operand.value == 0 ? 1.0 : 0.0, operand.error};
  }
  if (kind == UnaryKind::kBitNot) {
    return operand.error > 0 ? unknown() : from_bits(dtype, ~bits_of(operand));
  }
  return function(kind, dtype, operand);
}

Number fused(DType dtype, const Number& a, const Number& b, const Number& c) {
  const double product = a.value * b.value;
  const double error =
      std::fabs(a.value) * b.error + std::fabs(b.value) * a.error + a.error * b.error;
  const bool finite = std::isfinite(product) && std::isfinite(error);
  if (finite && std::isinf(c.value) && c.error == 0) return c;
  if (stays_infinite(BinaryKind::kMul, product, a, b)) {
    return floating(BinaryKind::kAdd, dtype, {product, 0}, c);
  }
  if (error == 0 && c.error == 0) {
    return {ir::fused(dtype, a.value, b.value, c.value), 0};
  }
  return rounded(dtype, std::fma(a.value, b.value, c.value), error + c.error);
}

Number choose(Number condition, Number if_true, Number if_false) {
  const bool yes = condition.value != 0;
  Number out = yes ? if_true : if_false;
  const Number& other = yes ? if_false : if_true;
  if (condition.error == 0) return out;
  const double other_error = std::fabs(other.value - out.value) + other.error;
  out.error = std::isnan(other_error) ? kUnbounded : std::max(out.error, other_error);
  return out;
}

}  // namespace kiln::reference
