// Element types: the language's names, with conversions that round to nearest even.
//
//   kiln::f16 x(0.1f);            cvt.rn.f16.f32
//   float y = x;                  exact
//   kiln::f16 z = x * x + x;      each operation rounded to f16 on its own
//
// f16 and bf16 are storage types: arithmetic goes through f32, whose 24 bits are enough that
// rounding twice gives the correctly rounded sum, difference, product and quotient.
#pragma once

namespace kiln {

using s8 = signed char;
using u8 = unsigned char;
using s16 = short;
using u16 = unsigned short;
using s32 = int;
using u32 = unsigned;
using s64 = long long;
using u64 = unsigned long long;
using f32 = float;
using f64 = double;

// An element that can be moved but not computed with.
struct opaque8 {
  u8 bits;
};

struct f16 {
  u16 bits;

  f16() = default;
  __device__ explicit f16(float value) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value)); }
  __device__ explicit f16(double value) { asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(value)); }
  template <class T>
  __device__ explicit f16(T value) : f16(static_cast<float>(value)) {}
  __device__ operator float() const {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
  }
};

struct bf16 {
  u16 bits;

  bf16() = default;
  __device__ explicit bf16(float value) {
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  }
  template <class T>
  __device__ explicit bf16(T value) : bf16(static_cast<float>(value)) {}
  __device__ operator float() const { return __uint_as_float(static_cast<u32>(bits) << 16); }
};

#define KILN_ROUNDED_OPERATOR(Type, op)                          \
  __device__ inline Type operator op(Type a, Type b) {           \
    return Type(static_cast<float>(a) op static_cast<float>(b)); \
  }
KILN_ROUNDED_OPERATOR(f16, +)
KILN_ROUNDED_OPERATOR(f16, -)
KILN_ROUNDED_OPERATOR(f16, *)
KILN_ROUNDED_OPERATOR(f16, /)
KILN_ROUNDED_OPERATOR(bf16, +)
KILN_ROUNDED_OPERATOR(bf16, -)
KILN_ROUNDED_OPERATOR(bf16, *)
KILN_ROUNDED_OPERATOR(bf16, /)
#undef KILN_ROUNDED_OPERATOR

__device__ inline f16 operator-(f16 a) {
  a.bits = static_cast<u16>(a.bits ^ 0x8000u);
  return a;
}
__device__ inline bf16 operator-(bf16 a) {
  a.bits = static_cast<u16>(a.bits ^ 0x8000u);
  return a;
}

// The element whose bytes are all zero.
template <class T>
__device__ inline T zero() {
  return T{};
}

}  // namespace kiln
