// Running sums along the lines of register tiles.
//
//   kiln::scan_sum<float, float, 2, 4, 1, 2>(sums, x, [](int n) { return n; });
//     A line has 4 blocks of 8 elements. Of a block this lane has 2, x[0] and x[1] of the first one,
//     and the lanes whose numbers differ from its own by 1, 2 and 3 have the others.
//     sums[i] becomes the sum of the line's elements up to x[i], x[i] included.
//
// T is what the sums are, From what the elements of the source are. `place(n)` is the lane's element
// that comes as number n, going along one line after the other. Lanes are powers of two below 32, those
// of neighbours first; all lanes of the warp must call. Element indices are constants once loops are
// unrolled.
#pragma once

#include "kiln/device/reduce.cuh"

namespace kiln {

namespace detail {

// Two groups of lanes, told apart by one bit of the lane's number, become one: the second has the
// first's sum before it.
template <int Lane, class T>
__device__ inline void join_lanes(T& before, T& all) {
  const T other = from_lane(all, Lane);
  if (threadIdx.x & Lane) before = other + before;
  all = all + other;
}

}  // namespace detail

template <class T, class From, int Run, int Blocks, int... Lanes, class To, int N, class Source,
          int M, class Place>
__device__ inline void scan_sum(To (&result)[N], const Source (&source)[M], Place place) {
  constexpr int kValues = N * static_cast<int>(sizeof(To) / sizeof(T));
  T carry = zero<T>();
#pragma unroll
  for (int first = 0; first < kValues; first += Run) {
    if (first % (Run * Blocks) == 0) carry = zero<T>();  // another line
    T sums[Run];
#pragma unroll
    for (int k = 0; k < Run; ++k) {
      const T own = kiln::to<T>(element<From>(source, place(first + k)));
      sums[k] = k == 0 ? own : sums[k == 0 ? 0 : k - 1] + own;
    }
    T before = zero<T>();
    T all = sums[Run - 1];
    (detail::join_lanes<Lanes>(before, all), ...);
    before = carry + before;
#pragma unroll
    for (int k = 0; k < Run; ++k) set_element<T>(result, place(first + k), before + sums[k]);
    carry = carry + all;
  }
}

}  // namespace kiln
