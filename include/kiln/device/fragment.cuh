// A lane's part of a register tile, as an array of registers, and its elements.
//
//   unsigned c[4];                                   // 8 elements of f16, two to a register
//   kiln::fill(c, kiln::f16(0.0f));
//   kiln::store_run<2, kiln::f16>(c, 4, &tile.at(row, col));   // elements 4 and 5
//
// Element indices are meant to be constants after unrolling; a run-time index would move the array
// to local memory.
#pragma once

#include "kiln/device/memory.cuh"

namespace kiln {

// Element `i`: two 16-bit ones share a register, the even one in its low half.
template <class T, class Register, int N>
__device__ inline T element(const Register (&registers)[N], int i) {
  if constexpr (sizeof(T) == sizeof(Register)) {
    return registers[i];
  } else {
    static_assert(sizeof(T) == 2 && sizeof(Register) == 4, "16-bit elements, 32-bit registers");
    T out;
    out.bits = static_cast<u16>(registers[i / 2] >> (i % 2 * 16));
    return out;
  }
}

template <class T, class Register, int N>
__device__ inline void set_element(Register (&registers)[N], int i, T value) {
  if constexpr (sizeof(T) == sizeof(Register)) {
    registers[i] = value;
  } else {
    static_assert(sizeof(T) == 2 && sizeof(Register) == 4, "16-bit elements, 32-bit registers");
    const u32 keep = i % 2 == 0 ? 0xffff0000u : 0x0000ffffu;
    registers[i / 2] = (registers[i / 2] & keep) | (static_cast<u32>(value.bits) << (i % 2 * 16));
  }
}

// Sets every element.
template <class T, class Register, int N>
__device__ inline void fill(Register (&registers)[N], T value) {
#pragma unroll
  for (int r = 0; r < N; ++r) {
    if constexpr (sizeof(T) == sizeof(Register)) {
      registers[r] = value;
    } else {
      static_assert(sizeof(T) == 2 && sizeof(Register) == 4, "16-bit elements, 32-bit registers");
      registers[r] = static_cast<u32>(value.bits) * 0x10001u;
    }
  }
}

namespace detail {

template <class T, int Run>
struct alignas(sizeof(T) * Run) Pack {
  T elements[Run];
};

}  // namespace detail

// Writes elements first to first + Run - 1 of type T to consecutive places, converted to `To`; of
// these only the first `count` when fewer. `to` must be a multiple of Run elements.
template <int Run, class T, class Register, int N, class To>
__device__ inline void store_run(const Register (&registers)[N], int first, To* to,
                                 int count = Run) {
  detail::Pack<To, Run> pack;
#pragma unroll
  for (int e = 0; e < Run; ++e) {
    pack.elements[e] = static_cast<To>(element<T>(registers, first + e));
  }
  if (count >= Run) {
    *reinterpret_cast<detail::Pack<To, Run>*>(to) = pack;
  } else {
#pragma unroll
    for (int e = 0; e < Run; ++e) {
      if (e < count) to[e] = pack.elements[e];
    }
  }
}

// Reads Run consecutive elements of type T; those from the `count`th on become zero.
template <int Run, class T, class Register, int N>
__device__ inline void load_run(Register (&registers)[N], int first, const T* from,
                                int count = Run) {
  detail::Pack<T, Run> pack;
  if (count >= Run) {
    pack = *reinterpret_cast<const detail::Pack<T, Run>*>(from);
  } else {
#pragma unroll
    for (int e = 0; e < Run; ++e) pack.elements[e] = e < count ? from[e] : zero<T>();
  }
#pragma unroll
  for (int e = 0; e < Run; ++e) set_element(registers, first + e, pack.elements[e]);
}

}  // namespace kiln
