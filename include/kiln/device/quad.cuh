// Registers that go from accumulators' lanes to others: between the four lanes of a quad.
//
//   kiln::transpose_in_quads(runs, tile, [](int i) { return i; });     // elements of 16 bits, to memory
//   kiln::convert_in_quads(operand, tile, [](int i) { return i; });    // of 8 bits, to an operand
//
// Of 16 bits four registers of each lane are turned: lane i gets number i of all four, in the lanes' order.
//
// Of 8 bits a lane has, of each row, two neighbours in each of two registers, and gets four in one:
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

// Registers 4 g to 4 g + 3 of `to` become number i of those that lanes 0 to 3 have in `from`, source(4 g) to source(4 g + 3)
// being numbers 0 to 3, where i is the lane's place in its quad. All lanes of the warp must call.
template <int N, int M, class Source>
__device__ inline void transpose_in_quads(u32 (&to)[N], const u32 (&from)[M], Source source) {
  static_assert(N % 4 == 0, "four lanes");
  const bool odd = threadIdx.x % 2 != 0;
  const bool upper = threadIdx.x % 4 >= 2;
  // What `low` and `high` are in a pair of lanes `apart` is turned: the one keeps its low, the other its high.
  const auto turn = [](u32& low, u32& high, bool keeps_high, int apart) {
    const u32 got = __shfl_xor_sync(0xffffffffu, keeps_high ? low : high, apart);
    low = keeps_high ? got : low;
    high = keeps_high ? high : got;
  };
#pragma unroll
  for (int g = 0; g < N / 4; ++g) {
    u32 x[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) x[i] = from[source(4 * g + i)];
    turn(x[0], x[1], odd, 1);
    turn(x[2], x[3], odd, 1);
    turn(x[0], x[2], upper, 2);
    turn(x[1], x[3], upper, 2);
#pragma unroll
    for (int i = 0; i < 4; ++i) to[4 * g + i] = x[i];
  }
}

}  // namespace kiln
