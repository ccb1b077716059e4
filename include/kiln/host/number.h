// Element types as C++ types, and their conversions.
//
// `f32`, `f64` and the integers are C++'s own. The smaller floats hold bits, convert to and from
// `float` by themselves and round to the nearest value, ties to even; 16-bit types overflow to
// infinity, smaller ones stop at their largest value. Types of less than 8 bits have a byte each.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace choreo {

using f32 = float;
using f64 = double;
using s8 = std::int8_t;
using u8 = std::uint8_t;
using s16 = std::int16_t;
using u16 = std::uint16_t;
using s32 = std::int32_t;
using u32 = std::uint32_t;
using s64 = std::int64_t;
using u64 = std::uint64_t;

namespace detail {

// What the top exponent of an encoding is spent on.
enum class Top { kInfinity, kOneNan, kNumbers };

// sign | exponent | mantissa, as docs/language.md lists them.
template <class Bits, int kExponentBits, int kMantissaBits, int kExponentBias, Top kTopExponent,
          bool kIsSigned = true>
struct Encoding {
  using Storage = Bits;
  static constexpr int kMantissa = kMantissaBits;
  static constexpr int kBias = kExponentBias;
  static constexpr Top kTop = kTopExponent;
  static constexpr bool kSigned = kIsSigned;
  static constexpr bool kHasZero = kMantissaBits != 0;
  static constexpr std::uint32_t kSign = 1U << (kExponentBits + kMantissaBits);
  static constexpr std::uint32_t kAll = kSign - 1;
  static constexpr std::uint32_t kInfinity = kAll >> kMantissaBits << kMantissaBits;
  static constexpr std::uint32_t kLargest = kTop == Top::kInfinity ? kInfinity - 1
                                            : kTop == Top::kOneNan ? kAll - 1
                                                                   : kAll;
  static constexpr std::uint32_t kNan = kTop == Top::kInfinity
                                            ? kInfinity | 1U << (kMantissaBits - 1)
                                        : kTop == Top::kOneNan ? kAll
                                                               : kLargest;
  static constexpr bool kSaturates = sizeof(Bits) == 1;
};

// The bits of the nearest value.
template <class E>
std::uint32_t encode(double value) {
  if (std::isnan(value)) return E::kNan;
  const bool negative = std::signbit(value);
  if (negative && !E::kSigned) return 0;
  const std::uint32_t sign = negative ? E::kSign : 0;
  const std::uint32_t beyond = E::kSaturates ? E::kLargest : E::kInfinity;
  const double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return sign | beyond;
  if (magnitude == 0) return sign;
  constexpr int kLowest = E::kHasZero ? 1 - E::kBias : -E::kBias;
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  exponent = exponent - 1 < kLowest ? kLowest : exponent - 1;
  // In units of the last place; a carry into the exponent is just another addition.
  const double units = std::nearbyint(std::ldexp(magnitude, E::kMantissa - exponent));
  if (!E::kHasZero && units == 0) return 0;
  const double hidden = std::ldexp(1.0, E::kMantissa);
  const double bits = std::ldexp(static_cast<double>(exponent - kLowest), E::kMantissa) +
                      (E::kHasZero ? units : units - hidden);
  if (bits > static_cast<double>(E::kLargest)) return sign | beyond;
  return sign | static_cast<std::uint32_t>(bits);
}

template <class E>
float decode(std::uint32_t bits) {
  const std::uint32_t magnitude = bits & E::kAll;
  const float sign = (bits & E::kSign) != 0 && E::kSigned ? -1.0F : 1.0F;
  if (E::kTop == Top::kInfinity && magnitude >= E::kInfinity) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    return magnitude == E::kInfinity ? sign * std::numeric_limits<float>::infinity() : nan;
  }
  if (E::kTop == Top::kOneNan && magnitude == E::kAll) {
    return std::numeric_limits<float>::quiet_NaN();
  }
  const int exponent = static_cast<int>(magnitude >> E::kMantissa);
  const float mantissa = static_cast<float>(magnitude & ((1U << E::kMantissa) - 1));
  if (E::kHasZero && exponent == 0) {
    return sign * std::ldexp(mantissa, 1 - E::kBias - E::kMantissa);
  }
  const float hidden = static_cast<float>(1U << E::kMantissa);
  return sign * std::ldexp(hidden + mantissa, exponent - E::kBias - E::kMantissa);
}

// A float of 16 bits or less.
template <class E>
class Small {
 public:
  using Storage = typename E::Storage;

  Small() = default;
  template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
  Small(T value) : bits_(static_cast<Storage>(encode<E>(static_cast<double>(value)))) {}
  template <class Other>
  explicit Small(const Small<Other>& other) : Small(static_cast<float>(other)) {}

  static Small from_bits(Storage bits) {
    Small out;
    out.bits_ = bits;
    return out;
  }
  Storage bits() const { return bits_; }
  operator float() const { return decode<E>(bits_); }

  Small& operator+=(float value) { return *this = Small(static_cast<float>(*this) + value); }
  Small& operator-=(float value) { return *this = Small(static_cast<float>(*this) - value); }
  Small& operator*=(float value) { return *this = Small(static_cast<float>(*this) * value); }
  Small& operator/=(float value) { return *this = Small(static_cast<float>(*this) / value); }

 private:
  Storage bits_ = 0;
};

template <class T>
struct IsSmall : std::false_type {};
template <class E>
struct IsSmall<Small<E>> : std::true_type {};

// An integer of less than a byte, which wraps around at its own width.
template <int kBits, bool kSigned, char kName = 'i'>
class SmallInteger {
 public:
  SmallInteger() = default;
  template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
  SmallInteger(T value) : value_(wrapped(static_cast<std::int64_t>(value))) {}
  operator int() const { return wrapped(value_); }

 private:
  static std::int8_t wrapped(std::int64_t value) {
    const auto low = static_cast<int>(static_cast<std::uint64_t>(value) & ((1U << kBits) - 1));
    const bool negative = kSigned && (low >> (kBits - 1)) != 0;
    return static_cast<std::int8_t>(negative ? low - (1 << kBits) : low);
  }
  std::int8_t value_ = 0;
};

// An f32 whose last 13 bits matrix units do not see.
class Tf32 {
 public:
  Tf32() = default;
  Tf32(float value) : value_(value) {}
  operator float() const { return value_; }

 private:
  float value_ = 0;
};

}  // namespace detail

using f16 = detail::Small<detail::Encoding<std::uint16_t, 5, 10, 15, detail::Top::kInfinity>>;
using bf16 = detail::Small<detail::Encoding<std::uint16_t, 8, 7, 127, detail::Top::kInfinity>>;
using f8_e4m3 = detail::Small<detail::Encoding<std::uint8_t, 4, 3, 7, detail::Top::kOneNan>>;
using f8_e5m2 = detail::Small<detail::Encoding<std::uint8_t, 5, 2, 15, detail::Top::kInfinity>>;
using f8_ue4m3 =
    detail::Small<detail::Encoding<std::uint8_t, 4, 3, 7, detail::Top::kOneNan, false>>;
using f8_ue8m0 =
    detail::Small<detail::Encoding<std::uint8_t, 8, 0, 127, detail::Top::kOneNan, false>>;
using f6_e2m3 = detail::Small<detail::Encoding<std::uint8_t, 2, 3, 1, detail::Top::kNumbers>>;
using f6_e3m2 = detail::Small<detail::Encoding<std::uint8_t, 3, 2, 3, detail::Top::kNumbers>>;
using f4_e2m1 = detail::Small<detail::Encoding<std::uint8_t, 2, 1, 1, detail::Top::kNumbers>>;
using tf32 = detail::Tf32;
using s6 = detail::SmallInteger<6, true>;
using u6 = detail::SmallInteger<6, false>;
using s4 = detail::SmallInteger<4, true>;
using u4 = detail::SmallInteger<4, false>;
using s2 = detail::SmallInteger<2, true>;
using u2 = detail::SmallInteger<2, false>;
using u1 = detail::SmallInteger<1, false>;
using bin1 = detail::SmallInteger<1, false, 'b'>;
using f8 = f8_e4m3;
using half = f16;
using bfp16 = bf16;
static_assert(sizeof(f16) == 2 && sizeof(f8_e4m3) == 1 && sizeof(tf32) == 4, "as kiln has them");

// The name of an element type in the language.
namespace detail {
template <class T>
struct Name;
#define KILN_HOST_NAME(type)                              \
  template <>                                             \
  struct Name<type> {                                     \
    static constexpr const char* text() { return #type; } \
  };
KILN_HOST_NAME(f64)
KILN_HOST_NAME(f32)
KILN_HOST_NAME(tf32)
KILN_HOST_NAME(f16)
KILN_HOST_NAME(bf16)
KILN_HOST_NAME(f8_e4m3)
KILN_HOST_NAME(f8_e5m2)
KILN_HOST_NAME(f8_ue4m3)
KILN_HOST_NAME(f8_ue8m0)
KILN_HOST_NAME(f6_e2m3)
KILN_HOST_NAME(f6_e3m2)
KILN_HOST_NAME(f4_e2m1)
KILN_HOST_NAME(s64)
KILN_HOST_NAME(u64)
KILN_HOST_NAME(s32)
KILN_HOST_NAME(u32)
KILN_HOST_NAME(s16)
KILN_HOST_NAME(u16)
KILN_HOST_NAME(s8)
KILN_HOST_NAME(u8)
KILN_HOST_NAME(s6)
KILN_HOST_NAME(u6)
KILN_HOST_NAME(s4)
KILN_HOST_NAME(u4)
KILN_HOST_NAME(s2)
KILN_HOST_NAME(u2)
KILN_HOST_NAME(u1)
KILN_HOST_NAME(bin1)
KILN_HOST_NAME(bool)
#undef KILN_HOST_NAME

// What may be an element of a random fill: floats by float, integers by themselves.
template <class T>
inline constexpr bool kIsFloat =
    std::is_floating_point<T>::value || IsSmall<T>::value || std::is_same<T, Tf32>::value;
}  // namespace detail

inline float f16_to_f32(f16 value) { return value; }
inline f16 f32_to_f16(float value) { return f16(value); }
inline float bf16_to_f32(bf16 value) { return value; }
inline bf16 f32_to_bf16(float value) { return bf16(value); }
template <class T>
float to_f32(const T& value) {
  return static_cast<float>(value);
}

namespace utils {
template <class T>
T from_f32(float value) {
  return static_cast<T>(value);
}
template <class T>
float to_f32(const T& value) {
  return static_cast<float>(value);
}
}  // namespace utils

}  // namespace choreo
