// Number: a value in fp64 and how far the machine's value may lie from it.
//
// Every scalar of the reference interpreter is a pair (value, error) with the promise
//   |what a correct machine computes - value| <= error.
//
//   f32 x = 0.1f                    value 0.1f exactly,        error 0
//   f32 y = x * 3.0f                value 0.1f * 3 (in fp64),  error 2^-24 * |y| + 2^-150
//   f32 z = x * 2.0f                value 2 * 0.1f,            error 0: the result is an f32
//
// A 64-bit integer that no double holds is value + rest; of everything else the rest is 0.
//
// The value is not rounded where an error is kept: a machine may fuse a product into the sum that
// follows. error = infinity says that nothing is known (an uninitialised read, a division by a
// number that may be 0, an accumulator that may overflow on the way).
#pragma once

#include <limits>
#include <span>

#include "ir/op.h"
#include "support/dtype.h"
#include "support/exact_integer.h"

namespace kiln::reference {

inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();

struct Number {
  double value = 0;
  double error = 0;
  double rest = 0;

  friend bool operator==(const Number&, const Number&) = default;
};

// A value nothing is known about.
[[nodiscard]] Number unknown();

// An integer, without error.
[[nodiscard]] Number exactly(const ExactInteger& integer);
// The integer that the type reads in these bits; those above its width do not count.
[[nodiscard]] Number from_bits(DType dtype, std::uint64_t bits);

// The number after a conversion of type to `to` (docs/numbers.md): exactly that where the number is
// exact, else one more rounding error, or the way to the largest value of a type that saturates.
// Floats to integers truncate and saturate; integers wrap into narrower ones.
[[nodiscard]] Number convert(Number number, DType from, DType to);

// The number of type `to` that has the bits of one of type `from`: unknown where that has an error.
[[nodiscard]] Number bitcast(const Number& number, DType from, DType to);
// Number `at` of those that have the bits of a row of others, of narrower or wider ones: the lowest bits
// of one come first. Unknown where one that it shares bits with has an error.
[[nodiscard]] Number recast(std::span<const Number> row, DType from, DType to, std::size_t at);

// One arithmetic operation in `dtype`. Comparisons give a bool whose error is 1 where the operands'
// errors leave the answer open. Integers wrap.
[[nodiscard]] Number apply(ir::BinaryKind kind, DType dtype, Number left, Number right);
[[nodiscard]] Number apply(ir::UnaryKind kind, DType dtype, Number operand);

// a * b + c of floats, rounded once.
[[nodiscard]] Number fused(DType dtype, const Number& a, const Number& b, const Number& c);

// if_true or if_false; where the condition is open, the error covers both.
[[nodiscard]] Number choose(Number condition, Number if_true, Number if_false);

}  // namespace kiln::reference
