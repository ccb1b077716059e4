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

namespace detail {

// The element's bits in the low ones of a register.
template <class T>
__device__ inline u32 low_bits(T value) {
  if constexpr (sizeof(T) == 1) return bits_as<u8>(value);
  if constexpr (sizeof(T) == 2) return bits_as<u16>(value);
  if constexpr (sizeof(T) == 4) return bits_as<u32>(value);
}

// All bits of an element, and the element that has those low bits.
template <class T>
__device__ inline auto all_bits(T value) {
  if constexpr (sizeof(T) == 8) {
    return bits_as<u64>(value);
  } else {
    return low_bits(value);
  }
}
template <class T, class Bits>
__device__ inline T with_bits(Bits bits) {
  if constexpr (sizeof(T) == 1) return bits_as<T>(static_cast<u8>(bits));
  if constexpr (sizeof(T) == 2) return bits_as<T>(static_cast<u16>(bits));
  if constexpr (sizeof(T) == 4) return bits_as<T>(static_cast<u32>(bits));
  if constexpr (sizeof(T) == 8) return bits_as<T>(static_cast<u64>(bits));
}

}  // namespace detail

// Element `i`: four of 8 bits or two of 16 share a register, the first in its low bits.
template <class T, class Register, int N>
__device__ inline T element(const Register (&registers)[N], int i) {
  if constexpr (sizeof(T) == sizeof(Register)) {
    return detail::bits_as<T>(registers[i]);
  } else {
    static_assert(sizeof(T) < 4 && sizeof(Register) == 4, "narrow elements, 32-bit registers");
    constexpr int kEach = 4 / static_cast<int>(sizeof(T));
    const u32 bits = registers[i / kEach] >> (i % kEach * (32 / kEach));
    if constexpr (sizeof(T) == 1) return detail::bits_as<T>(static_cast<u8>(bits));
    if constexpr (sizeof(T) == 2) return detail::bits_as<T>(static_cast<u16>(bits));
  }
}

template <class T, class Register, int N>
__device__ inline void set_element(Register (&registers)[N], int i, T value) {
  if constexpr (sizeof(T) == sizeof(Register)) {
    registers[i] = detail::bits_as<Register>(value);
  } else {
    static_assert(sizeof(T) < 4 && sizeof(Register) == 4, "narrow elements, 32-bit registers");
    constexpr int kEach = 4 / static_cast<int>(sizeof(T));
    const int shift = i % kEach * (32 / kEach);
    const u32 keep = ~((0xffffffffu >> (32 - 32 / kEach)) << shift);
    registers[i / kEach] = (registers[i / kEach] & keep) | (detail::low_bits(value) << shift);
  }
}

// Four bytes as a register, the first in its low bits.
__device__ inline u32 pack_bytes(u32 b0, u32 b1, u32 b2, u32 b3) {
  return b0 | b1 << 8 | b2 << 16 | b3 << 24;
}

// Sets every element.
template <class T, class Register, int N>
__device__ inline void fill(Register (&registers)[N], T value) {
#pragma unroll
  for (int r = 0; r < N; ++r) {
    if constexpr (sizeof(T) == sizeof(Register)) {
      registers[r] = detail::bits_as<Register>(value);
    } else {
      static_assert(sizeof(T) < 4 && sizeof(Register) == 4, "narrow elements, 32-bit registers");
      registers[r] = detail::low_bits(value) * (sizeof(T) == 1 ? 0x1010101u : 0x10001u);
    }
  }
}

namespace detail {

template <class T, int Run>
struct alignas(sizeof(T) * Run) Pack {
  T elements[Run];
};

// In whole registers: what is narrower is otherwise stored piece by piece.
template <class T, int Run>
__device__ inline void store_pack(T* to, const Pack<T, Run>& pack) {
  if constexpr (sizeof(pack) > sizeof(u32) && sizeof(T) < sizeof(u32)) {
    using Words = Pack<u32, static_cast<int>(sizeof(pack) / sizeof(u32))>;
    *reinterpret_cast<Words*>(to) = bits_as<Words>(pack);
  } else if constexpr (sizeof(pack) == sizeof(u32)) {
    *reinterpret_cast<u32*>(to) = bits_as<u32>(pack);
  } else {
    *reinterpret_cast<Pack<T, Run>*>(to) = pack;
  }
}

}  // namespace detail

// Writes elements first to first + Run - 1 of type T to consecutive places, converted to `To`; of
// these only the first `count` when fewer. `to` must be a multiple of Run elements.
template <int Run, class T, class Register, int N, class To>
__device__ inline void store_run(const Register (&registers)[N], int first, To* to,
                                 int count = Run) {
  detail::Pack<To, Run> pack;
#pragma unroll
  for (int e = 0; e < Run; ++e) {
    pack.elements[e] = kiln::to<To>(element<T>(registers, first + e));
  }
  if (count >= Run) {
    detail::store_pack(to, pack);
  } else {
#pragma unroll
    for (int e = 0; e < Run; ++e) {
      if (e < count) to[e] = pack.elements[e];
    }
  }
}

// Elements of 16 bits, two to a register.
template <int Count>
struct Packed {
  u32 registers[Count];
};

// 2 * Count elements from `first` on, of type T, converted to `To`: what a matrix store takes.
template <int Count, class To, class T, class Register, int N>
__device__ inline Packed<Count> packed(const Register (&registers)[N], int first) {
  static_assert(sizeof(To) == 2, "16-bit elements");
  Packed<Count> out;
#pragma unroll
  for (int r = 0; r < Count; ++r) {
    const u32 low = detail::low_bits(kiln::to<To>(element<T>(registers, first + 2 * r)));
    const u32 high = detail::low_bits(kiln::to<To>(element<T>(registers, first + 2 * r + 1)));
    out.registers[r] = low | high << 16;
  }
  return out;
}

// The same elements in other registers: value i of `to` becomes value place(i) of `from`.
template <int Count, class T, class From, class To, int N, class Source, int M, class Place>
__device__ inline void convert_layout(To (&to)[N], const Source (&from)[M], Place place) {
#pragma unroll
  for (int i = 0; i < Count; ++i) set_element(to, i, kiln::to<T>(element<From>(from, place(i))));
}

// The same bits in narrower elements: value i of `to` becomes part place(i) % n of value place(i) / n
// of `from`, n parts to an element, the lowest first.
template <int Count, class T, class From, class To, int N, class Source, int M, class Place>
__device__ inline void split_elements(To (&to)[N], const Source (&from)[M], Place place) {
  constexpr int kParts = static_cast<int>(sizeof(From) / sizeof(T));
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    const auto bits = detail::all_bits(element<From>(from, place(i) / kParts));
    set_element(to, i, detail::with_bits<T>(bits >> (place(i) % kParts * 8 * sizeof(T))));
  }
}

// In wider ones: value i of `from` becomes part place(i) % n of value place(i) / n of `to`.
template <int Count, class T, class From, class To, int N, class Source, int M, class Place>
__device__ inline void join_elements(To (&to)[N], const Source (&from)[M], Place place) {
  constexpr int kParts = static_cast<int>(sizeof(T) / sizeof(From));
#pragma unroll
  for (int v = 0; v < Count / kParts; ++v) {
    decltype(detail::all_bits(T())) bits = 0;
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      if (place(i) / kParts != v) continue;
      bits |= detail::all_bits(element<From>(from, i)) << (place(i) % kParts * 8 * sizeof(From));
    }
    set_element(to, v, detail::with_bits<T>(bits));
  }
}

// Reads Run consecutive elements, converted to type T; those from the `count`th on become zero.
// `from` must be a multiple of Run elements when all are read.
template <int Run, class T, class Register, int N, class From>
__device__ inline void load_run(Register (&registers)[N], int first, const From* from,
                                int count = Run) {
  detail::Pack<From, Run> pack;
  if (count >= Run) {
    pack = *reinterpret_cast<const detail::Pack<From, Run>*>(from);
  } else {
#pragma unroll
    for (int e = 0; e < Run; ++e) pack.elements[e] = e < count ? from[e] : zero<From>();
  }
#pragma unroll
  for (int e = 0; e < Run; ++e) {
    set_element(registers, first + e, kiln::to<T>(pack.elements[e]));
  }
}

}  // namespace kiln
