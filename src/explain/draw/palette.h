// The colours of cells: light enough for black text, told apart by colour-blind readers.
//
//   colour 0..31: eight hues with four tints each. A thread's hue is its quad (lane / 4), its tint
//   the place in it (lane % 4); a bank's hue is its 16-byte chunk, which swizzles move as a whole.
//   colour 32..47: one hue from light to dark, for numbers that count up.
#pragma once

#include <string>

namespace kiln::explain {

inline constexpr int kCategories = 32;
inline constexpr int kRampSteps = 16;
inline constexpr int kColours = kCategories + kRampSteps;

[[nodiscard]] constexpr int category_colour(int owner) { return owner % kCategories; }

// The step for `value` of 0 .. last.
[[nodiscard]] constexpr int ramp_colour(long long value, long long last) {
  if (last <= 0 || value <= 0) return kCategories;
  if (value >= last) return kColours - 1;
  return kCategories + static_cast<int>(value * kRampSteps / (last + 1));
}

// "8ac4e0", six hexadecimal digits. `colour` is below kColours.
[[nodiscard]] std::string hex(int colour);

}  // namespace kiln::explain
