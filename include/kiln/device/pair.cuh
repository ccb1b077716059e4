// Two numbers of f16 or bf16 in one register, and their arithmetic: an instruction for both.
//
//   const kiln::Pair<kiln::bf16> bits = kiln::pair<kiln::bf16>(registers, 3);   // elements 6 and 7
//   kiln::set_pair<kiln::bf16>(registers, 3, bits - kiln::bf16(136.0f));
//   kiln::set_pair<kiln::f8_e4m3>(bytes, 3, kiln::rounded_pair<kiln::f8_e4m3>(x, y));   // half a register
//
// Each result is rounded once, as that of a number alone is (types.cuh): a number stands for two of it. Of
// 8-bit floats there is no arithmetic: two are in the low half of `bits`.
#pragma once

#include "kiln/device/fragment.cuh"

namespace kiln {

namespace detail {

__device__ inline u32 multiplied_and_added(u32 a, u32 b, u32 c, f16) {
  u32 out;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(c));
  return out;
}
__device__ inline u32 multiplied_and_added(u32 a, u32 b, u32 c, bf16) {
  u32 out;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(c));
  return out;
}

__device__ inline u32 rounded(float low, float high, f16) {
  u32 out;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
  return out;
}
__device__ inline u32 rounded(float low, float high, bf16) {
  u32 out;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
  return out;
}
#if defined(KILN_CONVERTS_TO_F8)
__device__ inline u32 rounded(float low, float high, f8_e4m3) { return e4m3_pair(low, high); }
__device__ inline u32 rounded(float low, float high, f8_e5m2) { return e5m2_pair(low, high); }
#else
template <class T>
__device__ inline u32 rounded(float low, float high, T) {
  return low_bits(T(low)) | low_bits(T(high)) << 8;
}
#endif

// Halves that are put together so are one with the conversions that made them.
__device__ inline u32 joined(u16 low, u16 high) {
  u32 out;
  asm("mov.b32 %0, {%1, %2};" : "=r"(out) : "h"(low), "h"(high));
  return out;
}

// The bits of two ones.
__device__ inline u32 ones(f16) { return 0x3c003c00u; }
__device__ inline u32 ones(bf16) { return 0x3f803f80u; }

constexpr u32 kSigns = 0x80008000u;

}  // namespace detail

template <class T>
struct Pair {
  u32 bits;

  Pair() = default;
  __device__ explicit Pair(u32 both) : bits(both) {}
  __device__ Pair(T each) : bits(detail::low_bits(each) * (sizeof(T) == 1 ? 0x101u : 0x10001u)) {}

  // Every architecture has the fused operation for both types, and a sum is one with a factor of 1, a
  // product one with -0, which changes no result.
  friend __device__ Pair operator+(Pair a, Pair b) {
    return Pair(detail::multiplied_and_added(a.bits, detail::ones(T()), b.bits, T()));
  }
  friend __device__ Pair operator-(Pair a, Pair b) {
    return Pair(
        detail::multiplied_and_added(b.bits, detail::ones(T()) ^ detail::kSigns, a.bits, T()));
  }
  friend __device__ Pair operator*(Pair a, Pair b) {
    return Pair(detail::multiplied_and_added(a.bits, b.bits, detail::kSigns, T()));
  }
  friend __device__ Pair operator-(Pair a) { return Pair(a.bits ^ detail::kSigns); }
};

// a * b + c, rounded once.
template <class T>
__device__ inline Pair<T> fma_pair(Pair<T> a, Pair<T> b, Pair<T> c) {
  return Pair<T>(detail::multiplied_and_added(a.bits, b.bits, c.bits, T()));
}
__device__ inline f16 fma(f16 a, f16 b, f16 c) {
  f16 out;
  asm("fma.rn.f16 %0, %1, %2, %3;" : "=h"(out.bits) : "h"(a.bits), "h"(b.bits), "h"(c.bits));
  return out;
}
__device__ inline bf16 fma(bf16 a, bf16 b, bf16 c) {
  bf16 out;
  asm("fma.rn.bf16 %0, %1, %2, %3;" : "=h"(out.bits) : "h"(a.bits), "h"(b.bits), "h"(c.bits));
  return out;
}

// Two numbers of f32, rounded by one instruction. Of two conversions the compiler makes one too, but not
// where it has moved them apart, and alone each costs as much as an exponential function.
template <class T>
__device__ inline Pair<T> rounded_pair(float low, float high) {
  return Pair<T>(detail::rounded(low, high, T()));
}

// Elements 2 i and 2 i + 1.
template <class T, int N>
__device__ inline Pair<T> pair(const u32 (&registers)[N], int i) {
  static_assert(sizeof(T) == 2, "two to a register");
  return Pair<T>(registers[i]);
}
// Of a register with four elements the first two are set first: the others are 0 then.
template <class T, int N>
__device__ inline void set_pair(u32 (&registers)[N], int i, Pair<T> both) {
  if constexpr (sizeof(T) == 2) {
    registers[i] = both.bits;
  } else {
    registers[i / 2] = i % 2 == 0 ? both.bits
                                  : detail::joined(static_cast<u16>(registers[i / 2]),
                                                   static_cast<u16>(both.bits));
  }
}

}  // namespace kiln
