// Numbers known at compile time beside numbers known at run time, and tuples of both.
//
//   auto shape  = kiln::make_shape(M, kiln::Int<32>{});     // M at run time, 32 at compile time
//   auto stride = kiln::make_stride(K, kiln::Int<1>{});
//   auto tile   = tensor(kiln::_, kiln::_, k);              // `_`: all of this mode
//
// Tuples nest as layouts do: make_shape(make_shape(Int<4>{}, Int<8>{}), Int<2>{}) is ((4,8),2).
#pragma once

#include "kiln/layout/text.h"

namespace kiln {

// The number N as a type. Converts to int; products and sums of two stay compile-time numbers.
template <int N>
struct Int {
  static constexpr int value = N;
  KILN_HD constexpr operator int() const { return N; }
};
template <int A, int B>
KILN_HD constexpr Int<A + B> operator+(Int<A>, Int<B>) {
  return {};
}
template <int A, int B>
KILN_HD constexpr Int<A * B> operator*(Int<A>, Int<B>) {
  return {};
}

// The type of `_`, which stands for every coordinate of a mode. In a namespace of its own, so that
// an unqualified call with `_` finds only what the caller named.
namespace placeholder {
struct All {};
}  // namespace placeholder
using placeholder::All;

#if defined(__CUDA_ARCH__)
static const __device__ All _{};
#else
static constexpr All _{};
#endif

template <class... Ts>
struct Tuple {};
template <class Head, class... Tail>
struct Tuple<Head, Tail...> {
  Head head;
  Tuple<Tail...> tail;
};

template <class... Ts>
KILN_HD constexpr Tuple<Ts...> make_tuple(Ts... items);
template <>
KILN_HD constexpr Tuple<> make_tuple() {
  return {};
}
template <class Head, class... Tail>
KILN_HD constexpr Tuple<Head, Tail...> make_tuple(Head head, Tail... tail) {
  return {head, make_tuple(tail...)};
}

// Extents and steps: the same tuple under the names of the field.
template <class... Ts>
KILN_HD constexpr Tuple<Ts...> make_shape(Ts... extents) {
  return make_tuple(extents...);
}
template <class... Ts>
KILN_HD constexpr Tuple<Ts...> make_stride(Ts... strides) {
  return make_tuple(strides...);
}
// Item I of a tuple.
template <int I, class Head, class... Tail>
KILN_HD constexpr auto get(const Tuple<Head, Tail...>& tuple) {
  if constexpr (I == 0) {
    return tuple.head;
  } else {
    return get<I - 1>(tuple.tail);
  }
}

namespace detail {

template <class A, class B>
inline constexpr bool kSame = false;
template <class A>
inline constexpr bool kSame<A, A> = true;

template <class T>
inline constexpr bool kIsAll = false;
template <>
inline constexpr bool kIsAll<All> = true;

}  // namespace detail
}  // namespace kiln
