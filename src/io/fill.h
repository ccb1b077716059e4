// Inputs made up for a run: the same on every machine for the same seed.
//
//   normal       independent standard normal values
//   integers     integers whose contractions the accumulators hold exactly, so that the bound of
//                the result is 0 and a lost tile cannot hide, and no smaller than they need be: the
//                sums use the bits that the accumulator promises, so that a narrower one shows.
//                Integer types that are only moved, added in integers or converted use all theirs
//   ones         1 everywhere
//   adversarial  pairs whose products cancel, subnormals, signed zeros, values at the edges of the
//                type, one infinity and one NaN; nothing overflows an f16 accumulator
//
// A tensor's infinity and NaN are single elements, so each spoils one row or one column of a
// product and no more.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "support/tensor.h"

namespace kiln::io {

enum class Fill : std::uint8_t { kNormal, kIntegers, kOnes, kAdversarial };

[[nodiscard]] std::optional<Fill> fill_from_name(std::string_view name);
[[nodiscard]] std::string_view fill_names();  // "normal, integers, ones, adversarial"

// What the kernel's matrix instructions promise of sums of integers.
struct Products {
  double exact = 0;                  // sums of magnitudes up to this are exact; 0: not known
  double largest = 0;                // what the outputs can hold; 0: anything
  std::vector<DType> operands = {};  // the types that they multiply
};

struct FillOptions {
  Fill fill = Fill::kNormal;
  std::uint64_t seed = 0;
  // The parameter's number: each gets its own values, and in adversarial pairs the odd parameters
  // repeat what the even ones negate.
  std::size_t ordinal = 0;
  // The largest extent of any tensor: no contraction is longer.
  std::int64_t longest = 1;
  Products products = {};  // for `integers`
  // Of an integer tensor: the largest magnitude that keeps the results exact, infinity for all that
  // the type holds; 0: not known.
  double largest_integer = 0;
};

// Overwrites every element.
void fill_tensor(Tensor& tensor, const FillOptions& options);

// Fills a large tensor in parts, by all cores. The values are of the kind that fill_tensor gives
// and equal on every machine, but they are others.
void fill_tensor_in_parts(Tensor& tensor, const FillOptions& options);

}  // namespace kiln::io
