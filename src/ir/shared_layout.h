// Where a shared tile's bytes are: the one CPU-side implementation (device/tile.cuh mirrors it).
//
// A tile is dense row-major; leading dimensions flatten into rows. Unswizzled, byte b of row r lies
// at r * pitch + b. With an N-byte swizzle the row is split into column panels of N bytes, each
// stored whole before the next, and inside a panel the 16-byte chunk number is XORed with address
// bits from 7 up (the pattern of Hopper's tensor maps; PTX ISA, "Tensor swizzling modes"):
//
// Panels of 16 bytes are not XORed.
//
//   16x16 f16, swizzle 32:   row 4, byte 0  ->  4*32 = 128  ->  128 ^ 16 = 144
#pragma once

#include <cstdint>

namespace kiln::ir {

struct SharedShape {
  std::int64_t rows = 0;
  std::int64_t pitch = 0;    // bytes of one row
  std::int64_t swizzle = 0;  // 0, 16, 32, 64 or 128; divides `pitch` when not 0
};

[[nodiscard]] constexpr std::int64_t shared_offset(const SharedShape& shape, std::int64_t row,
                                                   std::int64_t byte) {
  if (shape.swizzle == 0) return row * shape.pitch + byte;
  const std::int64_t panel = byte / shape.swizzle;
  const std::int64_t offset = (panel * shape.rows + row) * shape.swizzle + byte % shape.swizzle;
  return offset ^ (((offset >> 7) & (shape.swizzle / 16 - 1)) << 4);
}

static_assert(shared_offset({16, 32, 0}, 4, 6) == 134);
static_assert(shared_offset({16, 32, 32}, 4, 0) == 144);
static_assert(shared_offset({64, 256, 128}, 1, 128) == 64 * 128 + 128 + 16);

// A swizzled tile starts at a multiple of this many bytes, so that its address bits are its
// offset's.
inline constexpr std::int64_t kSwizzledAlignment = 1024;
inline constexpr std::int64_t kSharedAlignment = 128;

}  // namespace kiln::ir
