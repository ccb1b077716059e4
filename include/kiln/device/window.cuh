// Places in dense row-major global arrays, computed in 64 bits.
//
//   kiln::at(lhs, {M, K}, {row, col})                       one element
//   kiln::window(lhs, {M, K}, {16 * block_m, 16 * k})       a tile that starts there
#pragma once

namespace kiln {

// Where a tile lies in a dense row-major global array of rank R (a smaller tile: in its last
// dimensions). `left[d]` elements, possibly none, lie between the first one and the limit; the
// array begins at `array`.
template <class T, int R>
struct Window {
  T* first;
  long long stride[R];
  int left[R];
  T* array;
};

// `limits` are coordinates of the array, one past the last that may be touched.
template <class T, int R>
__device__ inline Window<T, R> window(T* array, const int (&shape)[R], const int (&origin)[R],
                                      const int (&limits)[R]) {
  Window<T, R> out;
  long long stride = 1;
  out.first = array;
  out.array = array;
#pragma unroll
  for (int d = R - 1; d >= 0; --d) {
    out.stride[d] = stride;
    out.first += origin[d] * stride;
    out.left[d] = limits[d] - origin[d];
    stride *= shape[d];
  }
  return out;
}
template <class T, int R>
__device__ inline Window<T, R> window(T* array, const int (&shape)[R], const int (&origin)[R]) {
  return window(array, shape, origin, shape);
}

// A window of an array with any distances between its elements; `limits` say where the array ends.
template <class T, int R>
__device__ inline Window<T, R> strided_window(T* array, const int (&strides)[R],
                                              const int (&origin)[R], const int (&limits)[R]) {
  Window<T, R> out;
  out.first = array;
  out.array = array;
#pragma unroll
  for (int d = 0; d < R; ++d) {
    out.stride[d] = strides[d];
    out.first += static_cast<long long>(origin[d]) * strides[d];
    out.left[d] = limits[d] - origin[d];
  }
  return out;
}

// Whether each row of the array begins at a multiple of Run elements.
template <int Run, class T, int R>
__device__ inline bool rows_aligned(const T* array, const int (&shape)[R]) {
  constexpr unsigned kBytes = Run * sizeof(T);
  return reinterpret_cast<unsigned long long>(array) % kBytes == 0 && shape[R - 1] % Run == 0;
}
template <int Run, class T, int R>
__device__ inline bool strided_rows_aligned(const T* array, const int (&strides)[R]) {
  constexpr unsigned kBytes = Run * sizeof(T);
  bool aligned = reinterpret_cast<unsigned long long>(array) % kBytes == 0;
#pragma unroll
  for (int d = 0; d < R - 1; ++d) aligned = aligned && strides[d] % Run == 0;
  return aligned;
}

// Element `index` of an array with any distances between its elements.
template <class T, int R>
__device__ inline T& strided_at(T* array, const int (&strides)[R], const int (&index)[R]) {
  long long offset = 0;
#pragma unroll
  for (int d = 0; d < R; ++d) offset += static_cast<long long>(index[d]) * strides[d];
  return array[offset];
}

// Element `index` of a dense row-major array.
template <class T, int R>
__device__ inline T& at(T* array, const int (&shape)[R], const int (&index)[R]) {
  long long offset = 0;
#pragma unroll
  for (int d = 0; d < R; ++d) offset = offset * shape[d] + index[d];
  return array[offset];
}

}  // namespace kiln
