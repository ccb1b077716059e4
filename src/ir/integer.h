// Integers as a GPU computes with them: what a row of binary.def says of two of one type.
//
//   value_of(BinaryKind::kMul, kU8, 200, 2) == 144          it wraps
//   value_of(BinaryKind::kDiv, kS32, -7, 2) == -3           it truncates
//   value_of(BinaryKind::kDiv, kS32, 7, 0)  == nothing
//
// Every integer is held in 64 bits: one with a sign as itself, one without as its bits, so that the
// largest u64 is -1 here.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/functions.h"
#include "support/dtype.h"

namespace kiln::ir {

// The type of both operands, and its operations that C++ has no operator for. The results of plus,
// minus, times, quotient and shifted_left may leave the type: `wrapped` brings them back.
class IntegerType {
 public:
  explicit IntegerType(DType dtype)
      : bits_(info(dtype).bits),
        is_unsigned_(info(dtype).kind != NumberKind::kSigned),
        is_bool_(dtype == DType::kBool) {}

  // The integer that the type reads in the low bits; of a bool whether there is one.
  [[nodiscard]] std::int64_t wrapped(std::int64_t value) const {
    if (is_bool_) return value != 0 ? 1 : 0;
    const int spare = 64 - bits_;
    if (spare <= 0) return value;
    const std::uint64_t top = raw(value) << spare;
    return is_unsigned_ ? held(top >> spare) : held(top) >> spare;
  }

  [[nodiscard]] static std::int64_t plus(std::int64_t a, std::int64_t b) {
    return held(raw(a) + raw(b));
  }
  [[nodiscard]] static std::int64_t minus(std::int64_t a, std::int64_t b) {
    return held(raw(a) - raw(b));
  }
  [[nodiscard]] static std::int64_t times(std::int64_t a, std::int64_t b) {
    return held(raw(a) * raw(b));
  }
  // Truncated; of the least integer and -1 the least again.
  [[nodiscard]] std::optional<std::int64_t> quotient(std::int64_t a, std::int64_t b) const {
    if (b == 0) return std::nullopt;
    if (is_unsigned_) return held(raw(a) / raw(b));
    return b == -1 ? minus(0, a) : a / b;
  }
  // What truncation leaves, with the sign of `a`.
  [[nodiscard]] std::optional<std::int64_t> rest(std::int64_t a, std::int64_t b) const {
    if (b == 0) return std::nullopt;
    if (is_unsigned_) return held(raw(a) % raw(b));
    return b == -1 ? 0 : a % b;
  }
  // A shift by the type's width or more leaves nothing but the sign; C++ gives it no meaning.
  [[nodiscard]] bool shifts_by(std::int64_t count) const { return count >= 0 && count < bits_; }
  [[nodiscard]] std::int64_t shifted_left(std::int64_t a, std::int64_t count) const {
    return shifts_by(count) ? held(raw(a) << count) : 0;
  }
  [[nodiscard]] std::int64_t shifted_right(std::int64_t a, std::int64_t count) const {
    if (is_unsigned_) return shifts_by(count) ? held(raw(a) >> count) : 0;
    return a >> (shifts_by(count) ? count : 63);
  }
  [[nodiscard]] bool less(std::int64_t a, std::int64_t b) const {
    return is_unsigned_ ? raw(a) < raw(b) : a < b;
  }

 private:
  [[nodiscard]] static std::uint64_t raw(std::int64_t value) {
    return static_cast<std::uint64_t>(value);
  }
  [[nodiscard]] static std::int64_t held(std::uint64_t bits) {
    return static_cast<std::int64_t>(bits);
  }

  int bits_;
  bool is_unsigned_;
  bool is_bool_;
};

// Of two integers or bools of the type, in the type; of a comparison 0 or 1. Nothing: a division by
// zero. The operation must be one of integers.
[[nodiscard]] inline std::optional<std::int64_t> value_of(BinaryKind kind, DType dtype,
                                                          std::int64_t a, std::int64_t b) {
  const IntegerType type(dtype);
  std::optional<std::int64_t> out;
  switch (kind) {
#define KILN_BINARY(Name, name, text, binding, category, floats, integers) \
  case BinaryKind::k##Name:                                                \
    out = integers;                                                        \
    break;
#include "ir/binary.def"
#undef KILN_BINARY
  }
  if (out && !is_comparison(kind)) out = type.wrapped(*out);
  return out;
}

}  // namespace kiln::ir
