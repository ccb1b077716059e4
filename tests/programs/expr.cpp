#include "programs/expr.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "ir/functions.h"

namespace kiln::programs {

namespace {

bool is_signed(DType type) { return info(type).kind == NumberKind::kSigned; }
bool is_wide(DType type) { return info(type).bits >= 32; }
bool any_integer(DType type) { return is_integer(type); }
bool any_bool(DType type) { return type == DType::kBool; }
bool any_float(DType type) { return is_float(type); }
double least(DType type) { return is_signed(type) ? -info(type).max - 1 : 0; }

std::string to(DType type, const std::string& text) {
  return format("__to<{}>({})", name(type), text);
}

Value converted(const Value& value, DType type) {
  if (value.type == type) return value;
  Value out = value;
  out.text = to(type, value.text);
  out.type = type;
  return out;
}

}  // namespace

std::vector<DType> float_types() { return {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}; }
std::vector<DType> integer_types() {
  return {DType::kS8,  DType::kU8,  DType::kS16, DType::kU16,
          DType::kS32, DType::kU32, DType::kS64, DType::kU64};
}
std::vector<DType> storage_types() {
  return {DType::kF64,   DType::kF32,   DType::kF16, DType::kBF16, DType::kE4M3, DType::kE5M2,
          DType::kUE4M3, DType::kUE8M0, DType::kS8,  DType::kU8,   DType::kS16,  DType::kU16,
          DType::kS32,   DType::kU32,   DType::kS64, DType::kU64,  DType::kBool};
}

Value leaf(std::string text, DType type) {
  Value out{.text = std::move(text), .type = type, .exact = true};
  if (is_integer(type)) {
    out.low = least(type);
    out.high = info(type).max;
  }
  return out;
}

Value bounded(std::string text, double high) {
  return {.text = std::move(text), .type = DType::kS32, .low = 0, .high = high, .exact = true};
}

const Value* Exprs::find(bool (*wanted)(DType), bool exact) {
  std::vector<const Value*> found;
  for (const Value& each : leaves_) {
    if (wanted(each.type) && (!exact || each.exact)) found.push_back(&each);
  }
  return found.empty() ? nullptr : gen_.draw.of(found);
}

Value Exprs::literal(DType type) {
  Draw& draw = gen_.draw;
  if (is_float(type)) {
    const std::string number = draw.of({"0.0", "0.5", "1.0", "1.25", "2.0", "0.125", "3.0"});
    return {.text = type == DType::kF64 ? number : number + "f", .type = type, .exact = true};
  }
  const double number = draw.within(0, draw.chance(70) ? 9 : 100);
  const std::string suffix = type == DType::kU32   ? "u"
                             : type == DType::kU64 ? "ull"
                             : type == DType::kS64 ? "ll"
                                                   : "";
  return {.text = format("{}{}", number, suffix),
          .type = type,
          .low = number,
          .high = number,
          .exact = true};
}

Value Exprs::integer_leaf(DType type) {
  const Value* found = find(any_integer, true);
  if (found == nullptr || gen_.draw.chance(15)) return literal(type);
  Value value = *found;
  // What the type does not hold is cut first, in the value's own type.
  if (value.high > info(type).max) value = not_negative(value, 1000);
  if (value.low < least(type)) value = not_negative(value, 1000);
  const bool keeps =
      info(value.type).bits < info(type).bits && is_signed(value.type) == is_signed(type);
  return keeps && gen_.draw.chance(50) ? Value{value.text, type, value.low, value.high, true}
                                       : converted(value, type);
}

// With `%`, `&` or a shift. A narrow operand is an s32 afterwards.
Value Exprs::not_negative(const Value& value, std::int64_t limit) {
  Draw& draw = gen_.draw;
  Value wide = is_wide(value.type) ? value : converted(value, DType::kS32);
  if (wide.low >= 0 && wide.high < static_cast<double>(limit)) return wide;
  const std::string number = literal(wide.type).text;
  const std::string suffix =
      number.substr(number.find_first_not_of("0123456789") == std::string::npos
                        ? number.size()
                        : number.find_first_not_of("0123456789"));
  std::int64_t mask = 1;
  while (2 * mask < limit) mask = 2 * mask;
  if (wide.low < 0 || draw.chance(50)) {
    return {.text = format("({} & {}{})", wide.text, mask - 1, suffix),
            .type = wide.type,
            .low = 0,
            .high = static_cast<double>(mask - 1),
            .exact = true};
  }
  return {.text = format("({} % {}{})", wide.text, limit, suffix),
          .type = wide.type,
          .low = 0,
          .high = static_cast<double>(limit - 1),
          .exact = true};
}

Value Exprs::reduced(Value value, std::int64_t limit) {
  const auto bound = static_cast<double>(limit);
  if (value.high < bound && value.low > -bound) return value;
  if (!is_wide(value.type)) value = converted(value, DType::kS32);
  if (value.low < 0 && gen_.draw.chance(60)) {
    const std::string suffix = value.type == DType::kS64 ? "ll" : "";
    return {.text = format("({} % {}{})", value.text, limit, suffix),
            .type = value.type,
            .low = 1 - bound,
            .high = bound - 1,
            .exact = true};
  }
  return not_negative(value, limit);
}

Value Exprs::index(std::int64_t count, int depth) {
  Value out = not_negative(integer(DType::kS32, depth), count);
  if (count == 1) return bounded("0", 0);
  return converted(out, DType::kS32);
}

Value Exprs::arithmetic(DType type, Value a, Value b) {
  Draw& draw = gen_.draw;
  Value out{.type = type, .exact = true};
  const int kind = draw.within(0, 3);
  if (kind == 0) {
    a = reduced(a, 1 << 20), b = reduced(b, 1 << 20);
    out.text = format("({} + {})", a.text, b.text);
    out.low = a.low + b.low, out.high = a.high + b.high;
  } else if (kind == 1 && is_signed(type)) {
    a = reduced(a, 1 << 20), b = reduced(b, 1 << 20);
    out.text = format("({} - {})", a.text, b.text);
    out.low = a.low - b.high, out.high = a.high - b.low;
  } else if (kind == 1) {
    a = not_negative(a, 256);
    out.text = format("({}u - {})", 999, a.text);
    out.low = 999 - a.high, out.high = 999 - a.low;
  } else if (kind == 2) {
    a = reduced(a, 1000), b = reduced(b, 1000);
    out.text = format("({} * {})", a.text, b.text);
    const auto all = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
    out.low = std::min(all), out.high = std::max(all);
  } else {
    const bool quotient = draw.chance(50);
    b = not_negative(b, 64);
    out.text = format("({} {} ({} + 3))", a.text, quotient ? "/" : "%", b.text);
    out.low = std::min(quotient ? a.low : std::max(a.low, -b.high - 2), 0.0);
    out.high = quotient ? std::max(a.high, 0.0) : b.high + 2;
  }
  return out;
}

Value Exprs::bitwise(DType type, Value a, Value b) {
  Draw& draw = gen_.draw;
  Value out{.type = type, .exact = true};
  const int kind = draw.within(0, 2);
  if (kind == 0) {
    a = not_negative(a, 1 << 16), b = not_negative(b, 1 << 16);
    out.text = format("({} {} {})", a.text, draw.of({"&", "|", "^"}), b.text);
    out.high = 65535;
  } else if (kind == 1) {
    a = not_negative(a, 1 << 12), b = not_negative(b, 8);
    out.text = format("({} << {})", a.text, b.text);
    out.high = 4095 * 128;
  } else {
    b = not_negative(b, 16);
    out.text = format("({} >> {})", a.text, b.text);
    out.low = std::min(a.low, 0.0), out.high = std::max(a.high, 0.0);
  }
  return out;
}

Value Exprs::chosen(DType type, const Value& a, const Value& b, int depth) {
  Value out{.type = type, .exact = true};
  const int kind = gen_.draw.within(0, 2);
  if (kind == 0) {
    out.text = format("__max({}, {})", a.text, b.text);
    out.low = std::max(a.low, b.low), out.high = std::max(a.high, b.high);
  } else if (kind == 1) {
    out.text = format("__min({}, {})", a.text, b.text);
    out.low = std::min(a.low, b.low), out.high = std::min(a.high, b.high);
  } else {
    out.text = format("({} ? {} : {})", condition(depth - 1).text, a.text, b.text);
    out.low = std::min(a.low, b.low), out.high = std::max(a.high, b.high);
  }
  return out;
}

Value Exprs::integer_binary(DType type, int depth) {
  const Value a = integer(type, depth - 1);
  const Value b = integer(type, depth - 1);
  const int kind = gen_.draw.within(0, 9);
  Value out = kind < 5   ? arithmetic(type, a, b)
              : kind < 7 ? bitwise(type, a, b)
                         : chosen(type, a, b, depth);
  // Operands that were cut may have become narrower than the type, so the result is converted.
  out.text = to(type, out.text);
  return out;
}

Value Exprs::integer(DType type, int depth) {
  Draw& draw = gen_.draw;
  if (depth <= 0 || draw.chance(20)) return integer_leaf(type);
  const int kind = draw.within(0, 9);
  if (kind == 0 && is_signed(type)) {
    Value a = reduced(integer(type, depth - 1), 1 << 30);
    return {.text = format("(-{})", a.text),
            .type = type,
            .low = -a.high,
            .high = -a.low,
            .exact = true};
  }
  if (kind == 1) {
    Value a = integer(type, depth - 1);
    const double top = is_signed(type) ? -1 : info(type).max;
    return {.text = format("(~{})", a.text),
            .type = type,
            .low = top - a.high,
            .high = top - a.low,
            .exact = true};
  }
  if (kind == 2) {
    Value a = condition(depth - 1);
    return {.text = to(type, a.text), .type = type, .low = 0, .high = 1, .exact = true};
  }
  return integer_binary(type, depth);
}

Value Exprs::floating_leaf(DType type) {
  Draw& draw = gen_.draw;
  const Value* found = find(any_float, false);
  if (draw.chance(25) || found == nullptr) {
    const Value* number = draw.chance(60) ? find(any_integer, true) : nullptr;
    if (number == nullptr)
      return {.text = to(type, literal(DType::kF32).text), .type = type, .exact = true};
    const Value small = reduced(*number, 1 << (type == DType::kBF16 ? 7 : 10));
    return {.text = to(type, small.text), .type = type, .exact = true};
  }
  Value out = converted(*found, type);
  const bool widens = info(type).mantissa_bits >= info(found->type).mantissa_bits &&
                      info(type).exponent_bits >= info(found->type).exponent_bits;
  out.exact = found->exact && widens;
  return out;
}

Value Exprs::function(DType type, int depth) {
  Draw& draw = gen_.draw;
  const Value a = floating(type, depth - 1);
  const std::string safe = to(type, format("__fabs({}) + 1.0f", a.text));
  gen_.out.exact = false;
  std::vector<std::string> calls;
  for (const ir::FunctionInfo& row : ir::all_functions()) {
    if (row.spelling.empty()) continue;
    const bool everywhere = row.least <= -DBL_MAX;
    const std::string between = format("({} / ({}))", a.text, safe);
    const std::string& x = everywhere ? a.text : row.most <= 1 ? between : safe;
    calls.push_back(format("{}({})", row.spelling, x));
  }
  for (const ir::FunctionOfTwoInfo& row : ir::all_functions_of_two()) {
    calls.push_back(format("{}({}, {})", row.spelling, safe, a.text));
  }
  for (const char* made : {"__sigmoid", "__gelu", "__softplus"}) {
    calls.push_back(format("{}({})", made, a.text));
  }
  calls.push_back(format("(__isfinite({}) ? {} : 1.0f)", a.text, a.text));
  calls.push_back(format("({} / {})", a.text, safe));
  const auto which = static_cast<std::size_t>(draw.within(0, static_cast<int>(calls.size())));
  if (which < calls.size()) return {.text = to(type, calls[which]), .type = type};
  return {.text = format("__fabs({})", a.text), .type = type, .exact = a.exact};
}

Value Exprs::floating_binary(DType type, int depth) {
  Draw& draw = gen_.draw;
  const Value a = floating(type, depth - 1);
  // The other side may be narrower: mixed arithmetic promotes.
  const DType other =
      draw.chance(30) && type == DType::kF32 ? draw.of({DType::kF16, DType::kBF16}) : type;
  const Value b = draw.chance(30) ? literal(other) : floating(other, depth - 1);
  const int kind = draw.within(0, 6);
  if (kind < 4) {
    gen_.out.exact = false;
    return {.text = to(type, format("({} {} {})", a.text, draw.of({"+", "-", "*"}), b.text)),
            .type = type};
  }
  const bool exact = a.exact && b.exact;
  if (kind == 4 && exact) {
    gen_.out.exact = false;  // either zero may be the larger one
    return {.text = to(type, format("{}({}, {})", draw.of({"__max", "__min"}), a.text, b.text)),
            .type = type,
            .exact = true};
  }
  return {.text = to(type, format("({} ? {} : {})", condition(depth - 1).text, a.text, b.text)),
          .type = type,
          .exact = exact};
}

Value Exprs::floating(DType type, int depth) {
  Draw& draw = gen_.draw;
  if (depth <= 0 || draw.chance(20)) return floating_leaf(type);
  const int kind = draw.within(0, 9);
  if (kind < 3) return function(type, depth);
  if (kind < 4) {
    const Value a = floating(type, depth - 1);
    return {.text = format("(-{})", a.text), .type = type, .exact = a.exact};
  }
  return floating_binary(type, depth);
}

Value Exprs::condition(int depth) {
  Draw& draw = gen_.draw;
  const int kind = draw.within(0, 9);
  const char* compare = draw.of({"<", "<=", ">", ">=", "==", "!="});
  Value out{.type = DType::kBool, .low = 0, .high = 1, .exact = true};
  if (depth > 0 && kind < 3) {
    out.text = format("({} {} {})", condition(depth - 1).text, draw.of({"&&", "||"}),
                      condition(depth - 1).text);
  } else if (depth > 0 && kind == 3) {
    out.text = format("(!{})", condition(depth - 1).text);
  } else if (const Value* known = find(any_bool, true); known != nullptr && kind == 4) {
    out.text = known->text;
  } else if (const Value* number = find(any_float, true); number != nullptr && kind < 7) {
    const DType type = DType::kF64;  // holds what any of them holds
    out.text =
        format("({} {} {})", to(type, number->text), compare, to(type, literal(DType::kF32).text));
  } else {
    const DType type = draw.of({DType::kS32, DType::kU32, DType::kS64});
    out.text =
        format("({} {} {})", integer(type, depth - 1).text, compare, integer(type, depth - 1).text);
  }
  return out;
}

Value Exprs::of(DType type, int depth) {
  if (type == DType::kBool) return condition(depth);
  Draw& draw = gen_.draw;
  if (is_integer(type)) {
    if (is_wide(type)) return integer(type, depth);
    const DType wide = draw.of({DType::kS32, DType::kS64});
    Value value = integer(wide, depth);
    if (value.low < least(type) || value.high > info(type).max) {
      value = is_signed(type) ? reduced(value, static_cast<std::int64_t>(info(type).max))
                              : not_negative(value, 200);
    }
    return converted(value, type);
  }
  const auto arithmetic = float_types();
  if (std::find(arithmetic.begin(), arithmetic.end(), type) != arithmetic.end())
    return floating(type, depth);
  // 8-bit floats: from what has arithmetic.
  Value value = floating(draw.of({DType::kF32, DType::kF16}), depth);
  Value out = converted(value, type);
  out.exact = false;
  return out;
}

}  // namespace kiln::programs
