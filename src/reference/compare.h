// Is a result right? Each element of a tensor against its expected value and its bound.
//
//   expected 3.5 +- 0.01, actual 3.506    inside, worst 0.6
//   expected 12 +- 0,     actual 12       inside, worst 0
//   expected 12 +- 0,     actual 13       outside, worst infinity
//   expected nan,         actual inf      outside
//   expected 65503 +- 40 in f16, actual inf   inside: the value may round past the largest f16
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "reference/interpreter.h"
#include "support/tensor.h"

namespace kiln::reference {

struct Mismatch {
  std::vector<std::int64_t> coordinates;
  double expected = 0;
  double bound = 0;
  double actual = 0;
};

// The smallest mistake that a comparison is sure to find.
enum class Tells : std::uint8_t {
  kNothing,  // much of the output was compared with nothing
  kTiles,    // a tile that is missing; a lost step of a contraction may hide in the bound
  kSteps,    // a lost step; one product, or the rounding of a partial sum, may hide
  kAll,      // every bound is 0, and the sums of products need more bits than a bf16 has
};
[[nodiscard]] std::string_view name(Tells tells);  // "nothing", "tiles", "steps", "all"

struct Comparison {
  std::int64_t elements = 0;
  // Of a sample: those that the program was not run for, where no other statement says something.
  std::int64_t left_out = 0;
  std::int64_t outside = 0;
  std::int64_t outside_unwritten = 0;  // those of them that the kernel did not write
  // Those of them for which the program was not run: what roundings it declares there is not known.
  std::int64_t outside_left_out = 0;
  // Compared with nothing: no bound, or one so wide that a zero would have passed. Where a user's
  // formula has the element, what the program itself says does not make up for it.
  std::int64_t not_compared = 0;
  std::int64_t unstated = 0;  // those of them that the program says something of
  // Those whose bound by the user's statement is that of the program's own roundings, and more than
  // kMoreRoundings times what the statement would need.
  std::int64_t widened = 0;
  double worst = 0;  // the largest error over its bound
  double hides = 0;  // the largest bound of an element that was compared
  Tells tells = Tells::kAll;
  std::optional<Mismatch> first;  // of those outside, preferably one that was written
};

// A bound this part of the output's typical magnitude (the root of the mean square of what is
// expected) or more is wide.
inline constexpr double kWideBound = 0.25;

inline constexpr double kMoreRoundings = 2;

// `actual` must have the output's shape and type (KILN_CHECK).
[[nodiscard]] Comparison compare(const Output& expected, const Tensor& actual);
// Against several statements of the same output: an element must be inside each of the bounds. The
// first is what the interpreter says of the program: no bound is narrower than what its roundings
// need. Statements that know their slack must also be the same as the first, but for the slack.
// `unwritten`: by element, row-major; none when nothing is known of it.
[[nodiscard]] Comparison compare(const std::vector<const Output*>& expected, const Tensor& actual,
                                 const std::vector<bool>& unwritten = {});
// Adds the counts of one thread's share of a comparison to those of the others.
void add(const Comparison& share, Comparison& all);
// Above this part of the elements, not to be compared is a failure.
inline constexpr double kNotComparedMax = 0.25;
// What the comparison with `program`, an output of the reference's run, could have found.
[[nodiscard]] Tells tells(const Comparison& comparison, const Output& program, const Outcome& run);

// What a machine that makes no error would give: the expected values in the output's type.
[[nodiscard]] Tensor rounded(const Output& output);

}  // namespace kiln::reference
