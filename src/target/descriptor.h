// Matrix descriptors: where `wgmma` finds an operand's tile in shared memory.
//
//   A tile of 64 rows of 64 f16 (128 bytes), swizzle 128, K along the rows:
//     start 0, stride 1024 (from 8 rows to the next 8); row 9, byte 32 of K lies at
//     1024 + 1 * 128 + 32 = 1184, XORed with (9 % 8) * 16  ->  1200
//
// PTX ISA, "Matrix Descriptor Format" and "Shared Memory Matrix Layout" of
// wgmma.mma_async. The tile is panels as wide as the swizzle; a panel's rows follow each other, and
// in each group of 8 rows the hardware XORs address bits 4 to 6 with bits 7 to 9, as far as the
// swizzle is wide: not at all where panels are 16 bytes wide (the "no swizzle" mode). Rows are
// those of the operand (its contraction along them, "K-major") or, for types that can be
// transposed, K's ("MN-major").
//   K-major:  the instruction's 32 bytes of K lie in one panel, and `leading` is not used, but in
//             two where panels are 16 bytes wide.
//   MN-major: M or N goes on in the next panel, `leading` bytes further.
// The pattern follows address bits, so a start inside a panel is fine when it is at the first of 8
// rows and a multiple of 16 bytes along them.
#pragma once

#include <bit>
#include <cstdint>

namespace kiln::target {

struct MatrixDescriptor {
  std::int64_t start = 0;    // byte address in shared memory before the XOR
  std::int64_t leading = 0;  // bytes from panel to panel
  std::int64_t stride = 0;   // bytes from 8 rows to the next 8
  std::int64_t swizzle = 0;  // bytes of a panel: one of kPanels
};

inline constexpr std::int64_t kPlainPanel = 16;  // not XORed
// A swizzle moves units of so many bytes, which stay whole.
inline constexpr std::int64_t kChunkBytes = 16;
inline constexpr std::int64_t kPanels[] = {128, 64, 32, kPlainPanel};  // widest first

inline constexpr int kDescriptorRows = 8;  // that repeat the pattern

// The address of byte `byte` of row `row`, both counted from the descriptor's start.
[[nodiscard]] constexpr std::int64_t address_of(const MatrixDescriptor& at, std::int64_t row,
                                                std::int64_t byte) {
  // Without divisions, which a caller's loop over a tile would spend its time on.
  const int panel_bits = std::countr_zero(static_cast<std::uint64_t>(at.swizzle));
  const std::int64_t plain = at.start + (byte >> panel_bits) * at.leading +
                             row / kDescriptorRows * at.stride +
                             row % kDescriptorRows * at.swizzle + (byte & (at.swizzle - 1));
  return plain ^ (((plain >> 7) & (at.swizzle / 16 - 1)) << 4);
}

static_assert(address_of({0, 0, 1024, 128}, 9, 32) == 1200);

// The instruction takes address and distances in units of 16 bytes, 14 bits each, and the swizzle
// as a number in bits 62 and 63 (1 is 128 bytes, 2 is 64, 3 is 32, 0 is 16). Its "leading" and
// "stride" offsets are ours, but for MN-major tiles in panels of 16 bytes, where they change
// places.
struct EncodedDistances {
  std::int64_t leading = 0;  // bits 16 to 29
  std::int64_t stride = 0;   // bits 32 to 45
};
[[nodiscard]] constexpr EncodedDistances encoded_distances(const MatrixDescriptor& at,
                                                           bool mn_major) {
  const bool exchanged = mn_major && at.swizzle == kPlainPanel;
  return exchanged ? EncodedDistances{at.stride, at.leading}
                   : EncodedDistances{at.leading, at.stride};
}

}  // namespace kiln::target
