// Rows and columns of register tiles made into one element each.
//
//   kiln::reduce_max<float, float, 2, 1>(m, s, [](int i) { return i / 2 % 2; });
//     m[k] becomes the largest of the s[i] with i / 2 % 2 == k, of this lane and of those whose
//     numbers differ from its own by the XORs 1, 2 and 3; all of them get it. An s[i] for which the
//     function gives -1 is none: the last register of a narrow type may have room for more elements
//
//   kiln::reduce_max<float, float, 1, 2, 4, 8, 16>(m, s, [](int) { return 0; },
//                                                  [&](int i) { return 32 * i + lane < 1023; });
//     Of a padded tile: an s[i] for which the last function is false changes nothing.
//
// T is what the elements of the result are, From what those of the source are; Lanes are powers of
// two below 32, and all lanes of the warp must call. What is no number is passed over by the largest
// and the smallest. Element indices are constants once loops are unrolled.
#pragma once

#include "kiln/device/fragment.cuh"
#include "kiln/device/math.cuh"

namespace kiln {

namespace detail {

template <class T>
__device__ inline T from_lane(T value, int difference) {
  if constexpr (sizeof(T) >= 4) {
    return __shfl_xor_sync(0xffffffffu, value, difference);
  } else {
    const u32 bits = __shfl_xor_sync(0xffffffffu, low_bits(value), difference);
    if constexpr (sizeof(T) == 1) return bits_as<T>(static_cast<u8>(bits));
    if constexpr (sizeof(T) == 2) return bits_as<T>(static_cast<u16>(bits));
  }
}

template <class T>
struct Ends;
template <>
struct Ends<float> {
  __device__ static float high() { return __int_as_float(0x7f800000); }
};
template <>
struct Ends<double> {
  __device__ static double high() { return __longlong_as_double(0x7ff0000000000000); }
};
template <>
struct Ends<f16> {
  __device__ static f16 high() { return bits_as<f16>(static_cast<u16>(0x7c00)); }
};
template <>
struct Ends<bf16> {
  __device__ static bf16 high() { return bits_as<bf16>(static_cast<u16>(0x7f80)); }
};

// The largest and the least that a T can be.
template <class T>
__device__ inline T highest() {
  if constexpr (!kIsInteger<T>) {
    return Ends<T>::high();
  } else if constexpr (T(-1) < T(0)) {
    return static_cast<T>((1ull << (8 * sizeof(T) - 1)) - 1);
  } else {
    return static_cast<T>(-1);
  }
}
template <class T>
__device__ inline T lowest() {
  if constexpr (!kIsInteger<T>) {
    return -Ends<T>::high();
  } else if constexpr (T(-1) < T(0)) {
    return static_cast<T>(-highest<T>() - 1);
  } else {
    return T(0);
  }
}

// The operations, each with what changes nothing.
struct Sum {
  template <class T>
  __device__ static T none() {
    return zero<T>();
  }
  template <class T>
  __device__ static T join(T a, T b) {
    return a + b;
  }
};
struct Product {
  template <class T>
  __device__ static T none() {
    return kiln::to<T>(1.0f);
  }
  template <class T>
  __device__ static T join(T a, T b) {
    return a * b;
  }
};
struct Max {
  template <class T>
  __device__ static T none() {
    return lowest<T>();
  }
  template <class T>
  __device__ static T join(T a, T b) {
    return kiln::max(a, b);
  }
};
struct Min {
  template <class T>
  __device__ static T none() {
    return highest<T>();
  }
  template <class T>
  __device__ static T join(T a, T b) {
    return kiln::min(a, b);
  }
};

// Of a tile that is not padded.
struct Everywhere {
  __device__ bool operator()(int) const { return true; }
};

template <class Operation, class T, class From, int... Lanes, class To, int N, class Source, int M,
          class Place, class Inside>
__device__ inline void reduce(To (&result)[N], const Source (&source)[M], Place place,
                              Inside inside) {
  constexpr int kFrom = M * static_cast<int>(sizeof(Source) / sizeof(From));
  constexpr int kTo = N * static_cast<int>(sizeof(To) / sizeof(T));
  T parts[kTo];
#pragma unroll
  for (int k = 0; k < kTo; ++k) parts[k] = Operation::template none<T>();
#pragma unroll
  for (int i = 0; i < kFrom; ++i) {
    const int k = place(i);
    if (k < 0) continue;
    const T own = kiln::to<T>(element<From>(source, i));
    parts[k] = Operation::join(parts[k], inside(i) ? own : Operation::template none<T>());
  }
#pragma unroll
  for (int k = 0; k < kTo; ++k) {
    ((parts[k] = Operation::join(parts[k], from_lane(parts[k], Lanes))), ...);
    set_element(result, k, parts[k]);
  }
}

}  // namespace detail

template <class T, class From, int... Lanes, class To, int N, class Source, int M, class Place,
          class Inside = detail::Everywhere>
__device__ inline void reduce_sum(To (&result)[N], const Source (&source)[M], Place place,
                                  Inside inside = {}) {
  detail::reduce<detail::Sum, T, From, Lanes...>(result, source, place, inside);
}
template <class T, class From, int... Lanes, class To, int N, class Source, int M, class Place,
          class Inside = detail::Everywhere>
__device__ inline void reduce_product(To (&result)[N], const Source (&source)[M], Place place,
                                      Inside inside = {}) {
  detail::reduce<detail::Product, T, From, Lanes...>(result, source, place, inside);
}
template <class T, class From, int... Lanes, class To, int N, class Source, int M, class Place,
          class Inside = detail::Everywhere>
__device__ inline void reduce_max(To (&result)[N], const Source (&source)[M], Place place,
                                  Inside inside = {}) {
  detail::reduce<detail::Max, T, From, Lanes...>(result, source, place, inside);
}
template <class T, class From, int... Lanes, class To, int N, class Source, int M, class Place,
          class Inside = detail::Everywhere>
__device__ inline void reduce_min(To (&result)[N], const Source (&source)[M], Place place,
                                  Inside inside = {}) {
  detail::reduce<detail::Min, T, From, Lanes...>(result, source, place, inside);
}

// The index of the first largest element, 0 if none is a number: `index(i)` is that of this lane's element i.
template <class T, class From, int... Lanes, int N, class Source, int M, class Place, class Index,
          class Inside = detail::Everywhere>
__device__ inline void reduce_arg_max(int (&result)[N], const Source (&source)[M], Place place,
                                      Index index, Inside inside = {}) {
  constexpr int kFrom = M * static_cast<int>(sizeof(Source) / sizeof(From));
  From largest[N];
#pragma unroll
  for (int k = 0; k < N; ++k) {
    largest[k] = detail::lowest<From>();
    result[k] = 0x7fffffff;
  }
  const auto take = [&](int k, From value, int at) {
    // `|` and `&` take no branch, which `||` may.
    const bool ahead = (largest[k] < value) | ((largest[k] == value) & (at < result[k]));
    largest[k] = ahead ? value : largest[k];
    result[k] = ahead ? at : result[k];
  };
#pragma unroll
  for (int i = 0; i < kFrom; ++i) {
    if (place(i) < 0) continue;
    take(place(i), inside(i) ? element<From>(source, i) : detail::lowest<From>(),
         inside(i) ? index(i) : 0x7fffffff);
  }
#pragma unroll
  for (int k = 0; k < N; ++k) {
    (take(k, detail::from_lane(largest[k], Lanes), detail::from_lane(result[k], Lanes)), ...);
    if (result[k] == 0x7fffffff) result[k] = 0;
  }
}

// Whether a lane of the warp has an element that is not `value`. All lanes of the warp must call.
template <class T, int N>
__device__ inline bool any_is_not(int value, const T (&x)[N]) {
  bool found = false;
#pragma unroll
  for (int i = 0; i < N; ++i) found |= x[i] != T(value);
  return __any_sync(0xffffffffu, found);
}

}  // namespace kiln
