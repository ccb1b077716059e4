// The element types of the device headers, compiled for the host: their conversions are those of
// the compiler's own table.
#define __host__
#define __device__
#include "kiln/device/types.cuh"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "support/dtype.h"

namespace kiln {
namespace {

// The value as the device type holds it.
template <class Device, class Value>
double on_device(Value value) {
  return static_cast<double>(static_cast<float>(Device(value)));
}

void expect_same(double device, double table, double value, DType dtype) {
  const bool both_nan = std::isnan(device) && std::isnan(table);
  EXPECT_TRUE(device == table || both_nan)
      << value << " as " << name(dtype) << ": " << device << ", expected " << table;
}

template <class Device>
void expect_all_patterns(DType dtype) {
  for (unsigned bits = 0; bits < 256; ++bits) {
    Device element;
    element.bits = static_cast<u8>(bits);
    expect_same(static_cast<double>(static_cast<float>(element)), decode(dtype, bits), bits, dtype);
  }
}

TEST(DeviceTypes, ReadEveryPatternOfEightBits) {
  expect_all_patterns<f8_e4m3>(DType::kE4M3);
  expect_all_patterns<f8_e5m2>(DType::kE5M2);
}

TEST(DeviceTypes, ReadEveryPatternOfSixAndFourBits) {
  expect_all_patterns<f6_e2m3>(DType::kE2M3);
  expect_all_patterns<f6_e3m2>(DType::kE3M2);
  expect_all_patterns<f4_e2m1>(DType::kE2M1);
}

// Values of the type, the midpoints between neighbours, and both sides of those.
template <class Device>
void expect_ties(DType dtype) {
  const unsigned patterns = 1U << (info(dtype).bits - 1);
  for (unsigned bits = 0; bits + 2 < patterns; ++bits) {
    const double low = decode(dtype, bits);
    const double high = decode(dtype, bits + 1);
    if (!std::isfinite(low) || !std::isfinite(high)) continue;
    const auto middle = static_cast<float>((low + high) / 2);
    for (const float value : {static_cast<float>(low), middle, std::nextafter(middle, 0.0F),
                              std::nextafter(middle, 1e9F)}) {
      const auto exact = static_cast<double>(value);
      expect_same(on_device<Device>(value), round_to(dtype, exact), exact, dtype);
      expect_same(on_device<Device>(-value), round_to(dtype, -exact), -exact, dtype);
    }
  }
}

TEST(DeviceTypes, RoundTiesOfEightBitsToEven) {
  expect_ties<f8_e4m3>(DType::kE4M3);
  expect_ties<f8_e5m2>(DType::kE5M2);
}

TEST(DeviceTypes, RoundTiesOfSixAndFourBitsToEven) {
  expect_ties<f6_e2m3>(DType::kE2M3);
  expect_ties<f6_e3m2>(DType::kE3M2);
  expect_ties<f4_e2m1>(DType::kE2M1);
}

template <class Device>
void expect_random(DType dtype) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> mantissa(-2, 2);
  for (int round = 0; round < 40000; ++round) {
    const double value = std::ldexp(mantissa(random), round % 60 - 35);
    const auto single = static_cast<float>(value);
    expect_same(on_device<Device>(single), round_to(dtype, static_cast<double>(single)), value,
                dtype);
    // One rounding, not one to f32 and another.
    expect_same(on_device<Device>(value), round_to(dtype, value), value, dtype);
  }
  for (const double value : {0.0, 1e30, -1e30, HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    expect_same(on_device<Device>(value), round_to(dtype, value), value, dtype);
  }
}

TEST(DeviceTypes, RoundFloatsAndDoublesOnce) {
  expect_random<bf16>(DType::kBF16);
  expect_random<tf32>(DType::kTF32);
  expect_random<f8_e4m3>(DType::kE4M3);
  expect_random<f8_e5m2>(DType::kE5M2);
  expect_random<f6_e2m3>(DType::kE2M3);
  expect_random<f6_e3m2>(DType::kE3M2);
  expect_random<f4_e2m1>(DType::kE2M1);
}

TEST(DeviceTypes, RoundDoublesNearTiesOnce) {
  // 1 + 2^-8 is halfway between two of bf16; a little more in a double is lost in f32.
  const double above = 1 + 0x1p-8 + 0x1p-40;
  expect_same(on_device<bf16>(above), 1 + 0x1p-7, above, DType::kBF16);
  expect_same(on_device<bf16>(1 + 0x1p-8), 1, 1 + 0x1p-8, DType::kBF16);
  const int count = 0x1010001;  // beyond the 24 bits of f32
  expect_same(on_device<bf16>(count), round_to(DType::kBF16, count), count, DType::kBF16);
}

TEST(DeviceTypes, RoundTiesOfTf32AwayFromZero) {
  const float tie = 1 + 0x1p-11F;
  expect_same(on_device<tf32>(tie), 1 + 0x1p-10, 1 + 0x1p-11, DType::kTF32);
  expect_same(on_device<tf32>(-tie), -1 - 0x1p-10, -1 - 0x1p-11, DType::kTF32);
  EXPECT_EQ(round_to(DType::kTF32, static_cast<double>(tie)), 1 + 0x1p-10);
}

}  // namespace
}  // namespace kiln
