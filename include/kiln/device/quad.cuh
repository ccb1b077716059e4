// Elements of 8 bits that go from accumulators' registers to those of an operand: between the four lanes of a quad.
//
//   kiln::convert_in_quads(operand, tile, [](int i) { return i; });
//
// Of each row a lane has two neighbours in each of two registers, and gets four in one:
//
//   row 0, columns 0 to 15, in lanes 0 to 3:    0 1|8 9  2 3|10 11  4 5|12 13  6 7|14 15
//                                         =>    0 1 2 3  4 5 6 7    8 9 10 11  12 13 14 15
//
// The halves of a register are of two rows. Lanes 0 and 1 want the first of both registers, from lanes 0 and 1 and from
// lanes 2 and 3, lanes 2 and 3 the second ones: each register goes whole to one lane, and with two exchanges all have
// arrived.
#pragma once

#include "kiln/device/fragment.cuh"

namespace kiln {

// Registers 2 p and 2 p + 1 of `to` become two rows' elements, of which registers source(2 p) and source(2 p + 1) of `from`
// have those of the first and the second 8 columns. All lanes of the warp must call.
template <int N, int M, class Source>
__device__ inline void convert_in_quads(u32 (&to)[N], const u32 (&from)[M], Source source) {
  static_assert(N % 2 == 0, "two rows");
  const u32 lane = threadIdx.x % 4;
  const bool odd = lane % 2 != 0;
  const bool upper = lane >= 2;
  // Even lanes send their first registers at first, odd ones their second ones.
  const int one = static_cast<int>(2 * (lane % 2) + lane / 2);
  const u32 low = upper ? 0x1054u : 0x5410u;
  const u32 high = upper ? 0x3276u : 0x7632u;
#pragma unroll
  for (int p = 0; p < N / 2; ++p) {
    const u32 first = from[source(2 * p)];
    const u32 second = from[source(2 * p + 1)];
    const u32 a = __shfl_sync(0xffffffffu, odd ? second : first, one, 4);
    const u32 b = __shfl_sync(0xffffffffu, odd ? first : second, one ^ 1, 4);
    to[2 * p] = __byte_perm(a, b, low);
    to[2 * p + 1] = __byte_perm(a, b, high);
  }
}

}  // namespace kiln
