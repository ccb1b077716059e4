// Element types: the language's names, with conversions that round to nearest even.
//
//   kiln::f16 x(0.1f);            cvt.rn.f16.f32
//   float y = x;                  exact
//   kiln::f16 z = x * x + x;      each operation rounded to f16 on its own
//   kiln::to<kiln::s8>(300.7f)    127: see `to` below
//
// Host code can make and read them too, by the same rounding, so that a program fills its inputs
// with the type its kernel takes. docs/numbers.md states what every conversion gives.
//
// tf32 is an f32 whose low 13 bits are zero, rounded to nearest, ties away from zero. The 8-bit
// types have the language's names; their conversions are the same on every architecture.
//
// f16 and bf16 are storage types: arithmetic goes through f32, whose 24 bits are enough that
// rounding twice gives the correctly rounded sum, difference, product and quotient.
#pragma once

#define KILN_TYPES_HD __host__ __device__ inline

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

// An integer of less than a byte, which the low bits of one hold; those above count for nothing when
// it is read, and are its sign when it is written. It is computed with as an int, and wraps.
template <int kBits, bool kSigned>
struct small_integer {
  u8 bits;

  static constexpr int kSpare = 32 - kBits;
  static constexpr s32 kLeast = kSigned ? -(1 << (kBits - 1)) : 0;
  static constexpr s32 kLargest = (1 << (kSigned ? kBits - 1 : kBits)) - 1;

  small_integer() = default;
  template <class T>
  KILN_TYPES_HD explicit small_integer(T value)
      : bits(static_cast<u8>(widened(static_cast<u32>(value)))) {}
  KILN_TYPES_HD operator s32() const { return widened(bits); }

 private:
  static KILN_TYPES_HD s32 widened(u32 low) {
    return kSigned ? static_cast<s32>(low << kSpare) >> kSpare
                   : static_cast<s32>(low << kSpare >> kSpare);
  }
};
using s6 = small_integer<6, true>;
using u6 = small_integer<6, false>;
using s4 = small_integer<4, true>;
using u4 = small_integer<4, false>;
using s2 = small_integer<2, true>;
using u2 = small_integer<2, false>;
using u1 = small_integer<1, false>;
using bin1 = small_integer<1, false>;

namespace detail {

// What the host does instead of cvt.rn.f16.f32: round to nearest even by integer arithmetic.
template <class To, class From>
KILN_TYPES_HD To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From), "the same bits");
  return __builtin_bit_cast(To, from);
}
// `value` >> `shift`, to nearest even.
KILN_TYPES_HD u32 shift_to_nearest(u32 value, int shift) {
  if (shift > 31) return 0;
  const u32 half = (1u << shift) >> 1;
  const u32 rest = value & ((1u << shift) - 1);
  const u32 whole = value >> shift;
  return whole + (rest > half || (rest == half && (whole & 1u) != 0) ? 1u : 0u);
}
KILN_TYPES_HD u16 f16_from_f32(float value) {
  const u32 bits = bits_as<u32>(value);
  const u32 sign = bits >> 16 & 0x8000u;
  const int exponent = static_cast<int>(bits >> 23 & 0xffu) - 127;
  const u32 fraction = bits & 0x7fffffu;
  if (exponent == 128) return static_cast<u16>(sign | 0x7c00u | (fraction != 0 ? 0x3ffu : 0u));
  if (exponent > 15) return static_cast<u16>(sign | 0x7c00u);
  // Normal numbers drop 13 bits; below 2^-14 the leading 1 is written out and shifted further.
  u32 magnitude = 0;
  if (exponent >= -14) {
    magnitude = shift_to_nearest(static_cast<u32>(exponent + 15) << 23 | fraction, 13);
  } else if (exponent >= -25) {
    magnitude = shift_to_nearest(0x800000u | fraction, -1 - exponent);
  }
  return static_cast<u16>(sign | magnitude);
}
KILN_TYPES_HD float f32_from_f16(u16 bits) {
  const u32 sign = static_cast<u32>(bits & 0x8000u) << 16;
  const u32 exponent = bits >> 10 & 0x1fu;
  const u32 fraction = bits & 0x3ffu;
  if (exponent == 31) return bits_as<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  return bits_as<float>(sign | (exponent + 112) << 23 | fraction << 13);
}
KILN_TYPES_HD u16 bf16_from_f32(float value) {
  const u32 bits = bits_as<u32>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffu;
  return static_cast<u16>(shift_to_nearest(bits, 16));
}

// An odd last bit where bits were lost: rounding that again to at most 22 bits gives what one
// rounding of the double would.
KILN_TYPES_HD float f32_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  const u32 bits = bits_as<u32>(nearest);
  if (back == value || value != value || (bits & 0x7fffffffu) == 0x7f800000u) return nearest;
  // Towards zero, then to odd.
  const bool beyond = (value < 0) ? back < value : back > value;
  return bits_as<float>((bits - (beyond ? 1u : 0u)) | 1u);
}
// Of an integer likewise: what a double has no bits for becomes an odd last bit of those it has.
template <class Integer>
KILN_TYPES_HD float f32_to_odd_of_integer(Integer value) {
  if constexpr (sizeof(Integer) < 4) {
    return static_cast<float>(value);  // which has 24 bits
  } else if constexpr (sizeof(Integer) < 8) {
    return f32_to_odd(static_cast<double>(value));
  } else {
    constexpr u64 kLow = 0x7ff;  // 64 bits less the 53 of a double
    const u64 magnitude = value < 0 ? 0 - static_cast<u64>(value) : static_cast<u64>(value);
    const bool fits = magnitude < (1ull << 53) || (magnitude & kLow) == 0;
    const double odd = static_cast<double>(fits ? magnitude : (magnitude & ~kLow) | (kLow + 1));
    return f32_to_odd(value < 0 ? -odd : odd);
  }
}
KILN_TYPES_HD u32 tf32_from_f32(float value) {
  const u32 bits = bits_as<u32>(value);
  return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffe000u : (bits + 0x1000u) & 0xffffe000u;
}
// An 8-bit float of `kMantissa` bits; past the largest it is the largest, a NaN is 0x7f: what
// cvt.rn.satfinite.e4m3x2.f32 and its sibling do.
template <int kMantissa>
KILN_TYPES_HD u8 f8_from_f32(float value, u32 largest) {
  constexpr int kBias = kMantissa == 3 ? 7 : 15;
  const u32 bits = bits_as<u32>(value);
  const u32 sign = bits >> 24 & 0x80u;
  const int exponent = static_cast<int>(bits >> 23 & 0xffu) - 127;
  const u32 fraction = bits & 0x7fffffu;
  if (exponent == 128 && fraction != 0) return static_cast<u8>(0x7fu);
  if (exponent > 15) return static_cast<u8>(sign | largest);
  u32 magnitude = 0;
  if (exponent > -kBias) {
    magnitude =
        shift_to_nearest(static_cast<u32>(exponent + kBias) << 23 | fraction, 23 - kMantissa);
  } else {
    magnitude = shift_to_nearest(0x800000u | fraction, 24 - kMantissa - kBias - exponent);
  }
  return static_cast<u8>(sign | (magnitude > largest ? largest : magnitude));
}

// A float of fewer bits, without infinities and NaN: what is too large is the largest, and so is a
// NaN, as by cvt.rn.satfinite.e2m3x2.f32 and its siblings.
template <int kExponent, int kMantissa>
KILN_TYPES_HD u8 small_from_f32(float value) {
  constexpr int kBias = (1 << (kExponent - 1)) - 1;
  constexpr u32 kLargest = (1u << (kExponent + kMantissa)) - 1;
  const u32 bits = bits_as<u32>(value);
  const u32 sign = bits >> 31 << (kExponent + kMantissa);
  const int exponent = static_cast<int>(bits >> 23 & 0xffu) - 127;
  const u32 fraction = bits & 0x7fffffu;
  if (exponent == 128 && fraction != 0) return static_cast<u8>(kLargest);
  if (exponent > 15) return static_cast<u8>(sign | kLargest);
  u32 magnitude = 0;
  if (exponent > -kBias) {
    magnitude =
        shift_to_nearest(static_cast<u32>(exponent + kBias) << 23 | fraction, 23 - kMantissa);
  } else {
    magnitude = shift_to_nearest(0x800000u | fraction, 24 - kMantissa - kBias - exponent);
  }
  return static_cast<u8>(sign | (magnitude > kLargest ? kLargest : magnitude));
}

// The biased exponent of the nearest power of two, of what is not positive 0, of a NaN 0xff.
KILN_TYPES_HD u8 power_of_two_from_f32(float value) {
  const u32 bits = bits_as<u32>(value);
  if (value != value) return static_cast<u8>(0xffu);
  if (bits >= 0x80000000u) return static_cast<u8>(0);
  // Below 2^-126 an f32 has no leading 1: 2^-127 is half of its range.
  if (bits < 0x800000u) return static_cast<u8>(bits > 0x600000u ? 1 : 0);
  const u32 nearest = shift_to_nearest(bits, 23);
  return static_cast<u8>(nearest < 0xfeu ? nearest : 0xfeu);
}

template <class T>
inline constexpr bool kIsInteger = false;
template <>
inline constexpr bool kIsInteger<s8> = true;
template <>
inline constexpr bool kIsInteger<u8> = true;
template <>
inline constexpr bool kIsInteger<s16> = true;
template <>
inline constexpr bool kIsInteger<u16> = true;
template <>
inline constexpr bool kIsInteger<s32> = true;
template <>
inline constexpr bool kIsInteger<u32> = true;
template <>
inline constexpr bool kIsInteger<long> = true;
template <>
inline constexpr bool kIsInteger<unsigned long> = true;
template <>
inline constexpr bool kIsInteger<s64> = true;
template <>
inline constexpr bool kIsInteger<u64> = true;

template <class T>
inline constexpr bool kIsSmallInteger = false;
template <int kBits, bool kSigned>
inline constexpr bool kIsSmallInteger<small_integer<kBits, kSigned>> = true;

// A float that rounds to a type of at most 22 bits as the value does.
template <class T>
KILN_TYPES_HD float rounds_once(T value) {
  if constexpr (kIsInteger<T>) {
    return f32_to_odd_of_integer(value);
  } else {
    return static_cast<float>(value);
  }
}

}  // namespace detail

struct f16 {
  u16 bits;

  f16() = default;
  KILN_TYPES_HD explicit f16(float value) {
#if defined(__CUDA_ARCH__)
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#else
    bits = detail::f16_from_f32(value);
#endif
  }
  KILN_TYPES_HD explicit f16(double value) {
#if defined(__CUDA_ARCH__)
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(value));
#else
    bits = detail::f16_from_f32(detail::f32_to_odd(value));
#endif
  }
  template <class T>
  KILN_TYPES_HD explicit f16(T value) : f16(static_cast<float>(value)) {}
  KILN_TYPES_HD operator float() const {
#if defined(__CUDA_ARCH__)
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
#else
    return detail::f32_from_f16(bits);
#endif
  }
};

struct bf16 {
  u16 bits;

  bf16() = default;
  KILN_TYPES_HD explicit bf16(float value) {
#if defined(__CUDA_ARCH__)
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#else
    bits = detail::bf16_from_f32(value);
#endif
  }
  KILN_TYPES_HD explicit bf16(double value) : bf16(detail::f32_to_odd(value)) {}
  template <class T>
  KILN_TYPES_HD explicit bf16(T value) : bf16(detail::rounds_once(value)) {}
  KILN_TYPES_HD operator float() const {
    return detail::bits_as<float>(static_cast<u32>(bits) << 16);
  }
};

struct tf32 {
  u32 bits;

  tf32() = default;
  KILN_TYPES_HD explicit tf32(float value) {
#if defined(__CUDA_ARCH__)
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
#else
    bits = detail::tf32_from_f32(value);
#endif
  }
  KILN_TYPES_HD explicit tf32(double value) : tf32(detail::f32_to_odd(value)) {}
  template <class T>
  KILN_TYPES_HD explicit tf32(T value) : tf32(detail::rounds_once(value)) {}
  KILN_TYPES_HD operator float() const { return detail::bits_as<float>(bits & 0xffffe000u); }
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define KILN_CONVERTS_TO_F8
// Two 8-bit floats, `low` in the lower byte.
namespace detail {

__device__ inline u16 e4m3_pair(float low, float high) {
  u16 out;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(out) : "f"(high), "f"(low));
  return out;
}
__device__ inline u16 e5m2_pair(float low, float high) {
  u16 out;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(out) : "f"(high), "f"(low));
  return out;
}

}  // namespace detail
#endif

// No infinity: what is past 448 becomes 448.
struct f8_e4m3 {
  u8 bits;

  f8_e4m3() = default;
  KILN_TYPES_HD explicit f8_e4m3(float value) {
#if defined(KILN_CONVERTS_TO_F8)
    bits = static_cast<u8>(detail::e4m3_pair(value, 0.0f));
#else
    bits = detail::f8_from_f32<3>(value, 0x7eu);
#endif
  }
  KILN_TYPES_HD explicit f8_e4m3(double value) : f8_e4m3(detail::f32_to_odd(value)) {}
  template <class T>
  KILN_TYPES_HD explicit f8_e4m3(T value) : f8_e4m3(static_cast<float>(value)) {}
  // As an f16 of 2^-8 of it, whose exponent is one bit longer.
  KILN_TYPES_HD operator float() const {
    const u32 magnitude = bits & 0x7fu;
    f16 scaled;
    scaled.bits = static_cast<u16>((bits & 0x80u) << 8 | magnitude << 7);
    return magnitude == 0x7fu ? detail::bits_as<float>(0x7fffffffu)
                              : static_cast<float>(scaled) * 256.0f;
  }
};

// The upper byte of an f16. It has infinities, but no conversion gives one: what is past 57344
// becomes 57344.
struct f8_e5m2 {
  u8 bits;

  f8_e5m2() = default;
  KILN_TYPES_HD explicit f8_e5m2(float value) {
#if defined(KILN_CONVERTS_TO_F8)
    bits = static_cast<u8>(detail::e5m2_pair(value, 0.0f));
#else
    bits = detail::f8_from_f32<2>(value, 0x7bu);
#endif
  }
  KILN_TYPES_HD explicit f8_e5m2(double value) : f8_e5m2(detail::f32_to_odd(value)) {}
  template <class T>
  KILN_TYPES_HD explicit f8_e5m2(T value) : f8_e5m2(static_cast<float>(value)) {}
  KILN_TYPES_HD operator float() const {
    f16 wide;
    wide.bits = static_cast<u16>(bits << 8);
    return static_cast<float>(wide);
  }
};

// f8_e4m3 without a sign: negative numbers become 0. The top bit counts for nothing.
struct f8_ue4m3 {
  u8 bits;

  f8_ue4m3() = default;
  KILN_TYPES_HD explicit f8_ue4m3(float value) : bits(detail::f8_from_f32<3>(value, 0x7eu)) {
    if (bits > 0x7fu) bits = 0;
  }
  KILN_TYPES_HD explicit f8_ue4m3(double value) : f8_ue4m3(detail::f32_to_odd(value)) {}
  template <class T>
  KILN_TYPES_HD explicit f8_ue4m3(T value) : f8_ue4m3(static_cast<float>(value)) {}
  KILN_TYPES_HD operator float() const {
    f8_e4m3 magnitude;
    magnitude.bits = static_cast<u8>(bits & 0x7fu);
    return static_cast<float>(magnitude);
  }
};

// A power of two from 2^-127 to 2^127, the exponent of an f32. What is not positive becomes the
// least, what is too large the largest; halfway between two is the one whose bits are even.
struct f8_ue8m0 {
  u8 bits;

  f8_ue8m0() = default;
  KILN_TYPES_HD explicit f8_ue8m0(float value) : bits(detail::power_of_two_from_f32(value)) {}
  KILN_TYPES_HD explicit f8_ue8m0(double value) : f8_ue8m0(detail::f32_to_odd(value)) {}
  template <class T>
  KILN_TYPES_HD explicit f8_ue8m0(T value) : f8_ue8m0(detail::rounds_once(value)) {}
  KILN_TYPES_HD operator float() const {
    if (bits == 0xffu) return detail::bits_as<float>(0x7fffffffu);
    return detail::bits_as<float>(bits == 0 ? 0x400000u : static_cast<u32>(bits) << 23);
  }
};

// A float of less than a byte, in the low bits of one; those above count for nothing.
template <int kExponent, int kMantissa>
struct small_float {
  u8 bits;

  small_float() = default;
  KILN_TYPES_HD explicit small_float(float value)
      : bits(detail::small_from_f32<kExponent, kMantissa>(value)) {}
  KILN_TYPES_HD explicit small_float(double value) : small_float(detail::f32_to_odd(value)) {}
  template <class T>
  KILN_TYPES_HD explicit small_float(T value) : small_float(detail::rounds_once(value)) {}
  // As an f16 whose exponent has the other bias.
  KILN_TYPES_HD operator float() const {
    constexpr u32 kMagnitude = (1u << (kExponent + kMantissa)) - 1;
    constexpr float kScale = static_cast<float>(1 << (16 - (1 << (kExponent - 1))));
    f16 scaled;
    scaled.bits = static_cast<u16>((bits & (kMagnitude + 1)) << (15 - kExponent - kMantissa) |
                                   (bits & kMagnitude) << (10 - kMantissa));
    return static_cast<float>(scaled) * kScale;
  }
};
using f6_e2m3 = small_float<2, 3>;
using f6_e3m2 = small_float<3, 2>;
using f4_e2m1 = small_float<2, 1>;

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
KILN_ROUNDED_OPERATOR(tf32, +)
KILN_ROUNDED_OPERATOR(tf32, -)
KILN_ROUNDED_OPERATOR(tf32, *)
KILN_ROUNDED_OPERATOR(tf32, /)
KILN_ROUNDED_OPERATOR(f8_e4m3, +)
KILN_ROUNDED_OPERATOR(f8_e4m3, -)
KILN_ROUNDED_OPERATOR(f8_e4m3, *)
KILN_ROUNDED_OPERATOR(f8_e4m3, /)
KILN_ROUNDED_OPERATOR(f8_e5m2, +)
KILN_ROUNDED_OPERATOR(f8_e5m2, -)
KILN_ROUNDED_OPERATOR(f8_e5m2, *)
KILN_ROUNDED_OPERATOR(f8_e5m2, /)
KILN_ROUNDED_OPERATOR(f8_ue4m3, +)
KILN_ROUNDED_OPERATOR(f8_ue4m3, -)
KILN_ROUNDED_OPERATOR(f8_ue4m3, *)
KILN_ROUNDED_OPERATOR(f8_ue4m3, /)
KILN_ROUNDED_OPERATOR(f8_ue8m0, +)
KILN_ROUNDED_OPERATOR(f8_ue8m0, -)
KILN_ROUNDED_OPERATOR(f8_ue8m0, *)
KILN_ROUNDED_OPERATOR(f8_ue8m0, /)
KILN_ROUNDED_OPERATOR(f6_e2m3, +)
KILN_ROUNDED_OPERATOR(f6_e2m3, -)
KILN_ROUNDED_OPERATOR(f6_e2m3, *)
KILN_ROUNDED_OPERATOR(f6_e2m3, /)
KILN_ROUNDED_OPERATOR(f6_e3m2, +)
KILN_ROUNDED_OPERATOR(f6_e3m2, -)
KILN_ROUNDED_OPERATOR(f6_e3m2, *)
KILN_ROUNDED_OPERATOR(f6_e3m2, /)
KILN_ROUNDED_OPERATOR(f4_e2m1, +)
KILN_ROUNDED_OPERATOR(f4_e2m1, -)
KILN_ROUNDED_OPERATOR(f4_e2m1, *)
KILN_ROUNDED_OPERATOR(f4_e2m1, /)
#undef KILN_ROUNDED_OPERATOR

#define KILN_NEGATION(Type, sign)                          \
  __device__ inline Type operator-(Type a) {               \
    a.bits = static_cast<decltype(a.bits)>(a.bits ^ sign); \
    return a;                                              \
  }
KILN_NEGATION(f16, 0x8000u)
KILN_NEGATION(bf16, 0x8000u)
KILN_NEGATION(tf32, 0x80000000u)
KILN_NEGATION(f8_e4m3, 0x80u)
KILN_NEGATION(f8_e5m2, 0x80u)
KILN_NEGATION(f6_e2m3, 0x20u)
KILN_NEGATION(f6_e3m2, 0x20u)
KILN_NEGATION(f4_e2m1, 0x8u)
#undef KILN_NEGATION
// Without a sign there is no opposite: the least value.
__device__ inline f8_ue4m3 operator-(f8_ue4m3 a) { return f8_ue4m3(-static_cast<float>(a)); }
__device__ inline f8_ue8m0 operator-(f8_ue8m0 a) { return f8_ue8m0(-static_cast<float>(a)); }

namespace detail {

template <class T>
inline constexpr bool kIsFloat = false;
template <>
inline constexpr bool kIsFloat<f64> = true;
template <>
inline constexpr bool kIsFloat<f32> = true;
template <>
inline constexpr bool kIsFloat<tf32> = true;
template <>
inline constexpr bool kIsFloat<f16> = true;
template <>
inline constexpr bool kIsFloat<bf16> = true;
template <>
inline constexpr bool kIsFloat<f8_e4m3> = true;
template <>
inline constexpr bool kIsFloat<f8_e5m2> = true;
template <>
inline constexpr bool kIsFloat<f8_ue4m3> = true;
template <>
inline constexpr bool kIsFloat<f8_ue8m0> = true;
template <int kExponent, int kMantissa>
inline constexpr bool kIsFloat<small_float<kExponent, kMantissa>> = true;

// 2^(bits of To that are not the sign): one past its largest value.
template <class To>
KILN_TYPES_HD constexpr double past_largest() {
  constexpr bool kSigned = static_cast<To>(-1) < static_cast<To>(0);
  return 2.0 * static_cast<double>(1ull << (8 * sizeof(To) - (kSigned ? 2 : 1)));
}

#if defined(__CUDA_ARCH__)
// cvt to an integer of 32 or 64 bits truncates and saturates. NaN it makes 0 where neither side has
// 64 bits (PTX ISA, cvt); here it is 0 everywhere.
#define KILN_TRUNCATION(To, From, type, to, from)              \
  __device__ inline To truncated(From value, To) {             \
    To whole;                                                  \
    asm("cvt.rzi." type " %0, %1;" : to(whole) : from(value)); \
    if (sizeof(To) + sizeof(From) == 8) return whole;          \
    return value == value ? whole : To(0);                     \
  }
KILN_TRUNCATION(s32, float, "s32.f32", "=r", "f")
KILN_TRUNCATION(u32, float, "u32.f32", "=r", "f")
KILN_TRUNCATION(s64, float, "s64.f32", "=l", "f")
KILN_TRUNCATION(u64, float, "u64.f32", "=l", "f")
KILN_TRUNCATION(s32, double, "s32.f64", "=r", "d")
KILN_TRUNCATION(u32, double, "u32.f64", "=r", "d")
KILN_TRUNCATION(s64, double, "s64.f64", "=l", "d")
KILN_TRUNCATION(u64, double, "u64.f64", "=l", "d")
#undef KILN_TRUNCATION
#else
template <class To, class From>
inline To truncated(From value, To) {
  constexpr To kLowest = static_cast<To>(-1) < static_cast<To>(0)
                             ? static_cast<To>(1ull << (8 * sizeof(To) - 1))
                             : static_cast<To>(0);
  const double wide = static_cast<double>(value);
  if (wide != wide) return 0;
  if (wide >= past_largest<To>()) return static_cast<To>(~kLowest);
  if (wide <= static_cast<double>(kLowest)) return kLowest;
  return static_cast<To>(wide);
}
#endif

// Towards zero; below and above the type's range its least and its largest value.
template <class To, class From>
KILN_TYPES_HD To saturated(From value) {
  constexpr bool kSigned = static_cast<To>(-1) < static_cast<To>(0);
  if constexpr (sizeof(To) == 8) {
    if constexpr (kSigned) {
      return static_cast<To>(truncated(value, s64()));
    } else {
      return static_cast<To>(truncated(value, u64()));
    }
  } else if constexpr (kSigned) {
    const s32 whole = truncated(value, s32());
    constexpr s32 kLargest = static_cast<s32>((1ull << (8 * sizeof(To) - 1)) - 1);
    const s32 below = whole < kLargest ? whole : kLargest;
    return static_cast<To>(below > -kLargest - 1 ? below : -kLargest - 1);
  } else {
    const u32 whole = truncated(value, u32());
    constexpr u32 kLargest = static_cast<u32>((1ull << 8 * sizeof(To)) - 1);
    return static_cast<To>(whole < kLargest ? whole : kLargest);
  }
}

}  // namespace detail

// A value as the type `To` holds it: what the language's conversions mean. Floats become integers
// towards zero and saturate, NaN becomes 0; C++ leaves those cases open. Integers wrap into
// narrower ones, and everything becomes a float to nearest, by one rounding.
template <class To, class From>
KILN_TYPES_HD To to(From value) {
  if constexpr (detail::kIsSmallInteger<To> && detail::kIsFloat<From>) {
    const s32 whole = to<s32>(value);
    return To(whole < To::kLeast ? To::kLeast : whole > To::kLargest ? To::kLargest : whole);
  } else if constexpr (!detail::kIsInteger<To> || !detail::kIsFloat<From>) {
    return static_cast<To>(value);
  } else if constexpr (sizeof(From) == 8) {
    return detail::saturated<To>(value);
  } else {
    return detail::saturated<To>(static_cast<float>(value));
  }
}

// The value of type `To` that has the bits of `value`, which is as wide.
template <class To, class From>
__device__ inline To bitcast(From value) {
  static_assert(sizeof(To) == sizeof(From), "as many bits");
  To out;
  memcpy(&out, &value, sizeof(To));
  return out;
}

// The element whose bytes are all zero.
template <class T>
__device__ inline T zero() {
  return T{};
}

}  // namespace kiln
