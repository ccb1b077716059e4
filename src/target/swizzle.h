// The swizzles of shared memory: which 16-byte chunk of a row lies where.
//
//   128: Swizzle{3, 4, 3} on byte addresses; chunk c of 128-byte row r is stored at chunk c ^ (r % 8)
//
// The same four patterns are those of TMA and wgmma, so a tile swizzled by any means can be read by
// any other. Addresses are relative to a base with the row's alignment.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kiln/layout.h"

namespace kiln::target {

struct SmemSwizzle {
  std::string_view name;  // "none", "32", "64", "128"
  int bytes;              // width of the pattern = bytes of a row it is made for; 0 for none
  Swizzle swizzle;        // on byte addresses
  int alignment;          // bytes, of the buffer's base
};

// All rows, narrowest first; the first is "none".
[[nodiscard]] std::span<const SmemSwizzle> all_swizzles();

// The row of this width (0, 32, 64, 128), or null.
[[nodiscard]] const SmemSwizzle* find_swizzle(int bytes);

// The widest one whose pattern divides rows of `row_bytes`: 128 for 64 f16, 32 for 16 f16, none for
// rows that are no multiple of 32 bytes.
[[nodiscard]] const SmemSwizzle& widest_swizzle(std::int64_t row_bytes);

}  // namespace kiln::target
