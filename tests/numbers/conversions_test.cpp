// Conversions between every pair of element types, three ways: the simulator, the reference, and
// the device header that emitted CUDA includes, compiled for the host. Every pattern of the types
// of 8 and 16 bits; of the others the values where something may change (limits of every type,
// halves, powers of two and their neighbours, subnormals, what is not finite) and random patterns.
#define __host__
#define __device__
#include "kiln/device/types.cuh"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <tuple>
#include <vector>

#include "reference/number.h"
#include "sim/element.h"
#include "sim/scalar.h"
#include "support/dtype.h"

namespace kiln {
namespace {

template <class Device>
constexpr DType kDType = DType::kBool;
template <>
constexpr DType kDType<f64> = DType::kF64;
template <>
constexpr DType kDType<f32> = DType::kF32;
template <>
constexpr DType kDType<tf32> = DType::kTF32;
template <>
constexpr DType kDType<f16> = DType::kF16;
template <>
constexpr DType kDType<bf16> = DType::kBF16;
template <>
constexpr DType kDType<f8_e4m3> = DType::kE4M3;
template <>
constexpr DType kDType<f8_e5m2> = DType::kE5M2;
template <>
constexpr DType kDType<f8_ue4m3> = DType::kUE4M3;
template <>
constexpr DType kDType<f8_ue8m0> = DType::kUE8M0;
template <>
constexpr DType kDType<f6_e2m3> = DType::kE2M3;
template <>
constexpr DType kDType<f6_e3m2> = DType::kE3M2;
template <>
constexpr DType kDType<f4_e2m1> = DType::kE2M1;
template <>
constexpr DType kDType<s64> = DType::kS64;
template <>
constexpr DType kDType<u64> = DType::kU64;
template <>
constexpr DType kDType<s32> = DType::kS32;
template <>
constexpr DType kDType<u32> = DType::kU32;
template <>
constexpr DType kDType<s16> = DType::kS16;
template <>
constexpr DType kDType<u16> = DType::kU16;
template <>
constexpr DType kDType<s8> = DType::kS8;
template <>
constexpr DType kDType<u8> = DType::kU8;

using Types = std::tuple<f64, f32, tf32, f16, bf16, f8_e4m3, f8_e5m2, f8_ue4m3, f8_ue8m0, f6_e2m3,
                         f6_e3m2, f4_e2m1, s64, u64, s32, u32, s16, u16, s8, u8, bool>;

using Bits = std::uint64_t;

template <class T>
T from_pattern(Bits bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}
template <class T>
Bits pattern(T value) {
  Bits bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

// NaNs are one value, whatever their patterns.
Bits canonical(DType dtype, Bits bits) {
  constexpr Bits kNan = ~Bits{0};
  return is_float(dtype) && std::isnan(decode(dtype, bits)) ? kNan : bits;
}

Bits simulated(DType from, DType to, Bits bits) {
  std::byte in[8] = {};
  std::byte out[8] = {};
  std::memcpy(in, &bits, sizeof(bits));
  sim::store_scalar(to, out, sim::convert(from, to, sim::load_scalar(from, in)));
  return std::bit_cast<Bits>(out);
}

Bits referenced(DType from, DType to, Bits bits) {
  using reference::Number;
  const Number number =
      is_float(from) ? Number{decode(from, bits), 0} : reference::from_bits(from, bits);
  const Number out = reference::convert(number, from, to);
  EXPECT_EQ(out.error, 0);
  if (is_float(to)) return encode(to, out.value);
  const Bits all = static_cast<Bits>(joined({out.value, out.rest}));
  const int width = 8 * size_bytes(to);
  return width == 64 ? all : all & ((Bits{1} << width) - 1);
}

// Numbers around which a conversion to `dtype` may change.
void add_edges_of(DType dtype, std::vector<double>& out) {
  const double max = info(dtype).max;
  const double inf = std::numeric_limits<double>::infinity();
  const double around[] = {max, max + 1, max - 1, max / 2, smallest(dtype), smallest(dtype) / 2};
  for (const double value : around) {
    for (const double add : {-1.0, -0.5, 0.0, 0.5, 1.0}) out.push_back(value + add);
    out.push_back(std::nextafter(value, inf));
    out.push_back(std::nextafter(value, 0));
    const auto single = static_cast<float>(value);
    out.push_back(static_cast<double>(std::nextafter(single, HUGE_VALF)));
    out.push_back(static_cast<double>(std::nextafter(single, 0.0F)));
  }
  if (!is_float(dtype) || size_bytes(dtype) > 2) return;
  // Halfway between neighbours, and both sides of that.
  const Bits step = size_bytes(dtype) == 1 ? 1 : 61;
  const Bits top = Bits{1} << (8 * size_bytes(dtype) - 1);
  for (Bits bits = 0; bits + 1 < top; bits += step) {
    const double middle = (decode(dtype, bits) + decode(dtype, bits + 1)) / 2;
    if (!std::isfinite(middle)) continue;
    for (const double value : {middle, std::nextafter(middle, inf), std::nextafter(middle, 0)}) {
      out.push_back(value);
      out.push_back(static_cast<double>(static_cast<float>(value)));
    }
    out.push_back(static_cast<double>(std::nextafter(static_cast<float>(middle), HUGE_VALF)));
  }
}

std::vector<double> edges() {
  std::vector<double> out = {0, std::nan(""), HUGE_VAL, 0.5, 1.5, 2.5, 1e300, 5e-324};
  for (int power = -160; power <= 130; ++power) {
    const double value = std::ldexp(1.0, power);
    for (const double factor :
         {1.0, 1.25, 1.5, 1 + 0x1p-23, 1 - 0x1p-24, 1 + 0x1p-52, 1 - 0x1p-53}) {
      out.push_back(value * factor);
    }
    out.push_back(value + 1);
    out.push_back(value - 1);
  }
  for (int type = 0; type < kDTypeCount; ++type) add_edges_of(static_cast<DType>(type), out);
  const std::size_t count = out.size();
  for (std::size_t i = 0; i < count; ++i) out.push_back(-out[i]);
  return out;
}

// Integers that no double holds among them.
void add_integers(std::vector<Bits>& out) {
  for (int power = 0; power < 64; ++power) {
    for (const Bits add : {Bits{0}, Bits{1}, ~Bits{0}}) {
      const Bits value = (Bits{1} << power) + add;
      for (const int below : {8, 11, 12, 24, 25, 53, 54}) {
        const Bits low = power >= below ? Bits{1} << (power - below) : 0;
        out.insert(out.end(), {value, value + low, value + low + 1, value + low - 1, ~value});
      }
    }
  }
}

Bits stored_pattern(DType dtype, Bits bits) {
  // tf32 is an f32 whose low 13 bits are zero; a bool is 0 or 1; f8_ue4m3 has seven bits, and the
  // floats of 6 and 4 bits have a byte.
  if (dtype == DType::kTF32) return bits & 0xffffe000U;
  if (dtype == DType::kUE4M3) return bits & 0x7f;
  if (is_sub_byte(dtype)) return bits & ((Bits{1} << info(dtype).bits) - 1);
  return dtype == DType::kBool ? bits & 1 : bits;
}

std::vector<Bits> patterns_of(DType dtype) {
  std::vector<Bits> out;
  const int width = 8 * size_bytes(dtype);
  if (width <= 16) {
    for (Bits bits = 0; bits < (Bits{1} << width); ++bits) {
      if (stored_pattern(dtype, bits) == bits) out.push_back(bits);
    }
    return out;
  }
  static const std::vector<double> values = edges();
  for (const double value : values) out.push_back(encode(dtype, value));
  add_integers(out);
  std::mt19937_64 random(11);
  for (int i = 0; i < 20000; ++i) out.push_back(random());
  for (Bits& bits : out) {
    if (width < 64) bits &= (Bits{1} << width) - 1;
    bits = stored_pattern(dtype, bits);
  }
  return out;
}

struct Count {
  std::int64_t conversions = 0;
  std::int64_t differ = 0;
};

template <class To, class From>
void convert_all(const std::vector<Bits>& patterns, Count& count) {
  const DType from = kDType<From>;
  const DType to = kDType<To>;
  for (const Bits bits : patterns) {
    const Bits device = canonical(to, pattern(kiln::to<To>(from_pattern<From>(bits))));
    const Bits sim = canonical(to, simulated(from, to, bits));
    const Bits reference = canonical(to, referenced(from, to, bits));
    ++count.conversions;
    if (device == sim && sim == reference) continue;
    if (++count.differ <= 20) {
      ADD_FAILURE() << name(from) << " " << std::hex << bits << " to " << name(to) << ": device "
                    << device << ", simulator " << sim << ", reference " << reference;
    }
  }
}

template <class From, class... To>
void convert_from(Count& count, std::tuple<To...>*) {
  const std::vector<Bits> patterns = patterns_of(kDType<From>);
  (convert_all<To, From>(patterns, count), ...);
}

template <class... From>
void convert_every_pair(Count& count, std::tuple<From...>* types) {
  (convert_from<From>(count, types), ...);
}

TEST(Conversions, AreTheSameInSimulatorReferenceAndCuda) {
  Count count;
  convert_every_pair(count, static_cast<Types*>(nullptr));
  EXPECT_GT(count.conversions, 5'000'000);
  EXPECT_EQ(count.differ, 0) << "of " << count.conversions;
  RecordProperty("conversions", std::to_string(count.conversions));
}

// What docs/numbers.md says, in figures.
TEST(Conversions, SaturateWrapAndRoundAsTheManualSays) {
  EXPECT_EQ(to<s8>(300.7F), 127);
  EXPECT_EQ(to<s8>(-300.0F), -128);
  EXPECT_EQ(to<u8>(-1.0F), 0);
  EXPECT_EQ(to<u8>(std::nanf("")), 0);
  EXPECT_EQ(to<s32>(3e9), 2147483647);
  EXPECT_EQ(to<u64>(1e30F), ~0ULL);
  EXPECT_EQ(to<s8>(300), 44);
  EXPECT_EQ(to<u8>(-1), 255);
  EXPECT_EQ(static_cast<float>(to<f8_e5m2>(HUGE_VALF)), 57344.0F);
  EXPECT_EQ(static_cast<float>(to<f8_e4m3>(-1e9F)), -448.0F);
  EXPECT_EQ(static_cast<float>(to<f16>(65520.0F)), HUGE_VALF);
  EXPECT_EQ(static_cast<float>(to<f16>(65519.9F)), 65504.0F);
  EXPECT_TRUE(to<bool>(0.25F));
  EXPECT_EQ(static_cast<float>(to<f8_ue4m3>(-3.0F)), 0.0F);
  EXPECT_EQ(static_cast<float>(to<f8_ue4m3>(1e9)), 448.0F);
  EXPECT_EQ(static_cast<float>(to<f8_ue8m0>(-3.0F)), 0x1p-127F);
  EXPECT_EQ(static_cast<float>(to<f8_ue8m0>(0)), 0x1p-127F);
  EXPECT_EQ(static_cast<float>(to<f8_ue8m0>(1.4999)), 1.0F);
  EXPECT_EQ(static_cast<float>(to<f8_ue8m0>(1.5F)), 2.0F);  // halfway: 2^1 has even bits, 128
  EXPECT_EQ(static_cast<float>(to<f8_ue8m0>(3.0F)), 2.0F);  // halfway between 2 and 4: even bits
  EXPECT_EQ(static_cast<float>(to<f8_ue8m0>(HUGE_VAL)), 0x1p127F);
  EXPECT_TRUE(std::isnan(static_cast<float>(to<f8_ue8m0>(std::nanf("")))));
  EXPECT_EQ(static_cast<float>(to<f6_e2m3>(-100)), -7.5F);
  EXPECT_EQ(static_cast<float>(to<f6_e3m2>(HUGE_VALF)), 28.0F);
  EXPECT_EQ(static_cast<float>(to<f4_e2m1>(std::nanf(""))), 6.0F);
  EXPECT_EQ(static_cast<float>(to<f4_e2m1>(2.5F)), 2.0F);  // halfway between 2 and 3: even bits
}

}  // namespace
}  // namespace kiln
