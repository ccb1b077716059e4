// One group: its positions, its nibble, and the order of magnitudes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

#include "sparse/sparse.h"

namespace kiln::sparse {
namespace {

// The worked example of include/kiln/sparse.h and docs/sparse.md, at compile time.
struct Example {
  std::int8_t dense[8] = {3, 1, -4, 2, 0, 5, 0, 0};
  std::int8_t packed[4] = {};
  std::uint8_t byte[1] = {};
};
constexpr Example worked_example() {
  Example e;
  if (prune(Matrix{e.dense, 1, 8}, kS8Format)) return {};
  if (compress(Matrix{e.dense, 1, 8}, kS8Format, e.packed, e.byte)) return {};
  return e;
}
constexpr Example kExample = worked_example();
static_assert(kExample.dense[0] == 3 && kExample.dense[1] == 0 && kExample.dense[2] == -4 &&
              kExample.dense[3] == 0 && kExample.dense[5] == 5);
static_assert(kExample.packed[0] == 3 && kExample.packed[1] == -4 && kExample.packed[2] == 0 &&
              kExample.packed[3] == 5);
static_assert(kExample.byte[0] == 0x48);

TEST(Nibble, TheSixOfTwoInFourAreLegalAndNoOther) {
  std::vector<unsigned> legal;
  for (unsigned nibble = 0; nibble < 32; ++nibble) {
    if (!is_legal(nibble)) continue;
    legal.push_back(nibble);
    EXPECT_EQ(nibble_of(kept_of(nibble)), nibble);
    EXPECT_LT(kept_of(nibble).first, kept_of(nibble).second);
  }
  EXPECT_EQ(legal, (std::vector<unsigned>{0x4, 0x8, 0x9, 0xc, 0xd, 0xe}));
}

TEST(Nibble, OneInTwoHasTwo) {
  std::vector<unsigned> legal;
  for (unsigned nibble = 0; nibble < 32; ++nibble) {
    if (!is_legal(nibble, Pattern::k1of2)) continue;
    legal.push_back(nibble);
    EXPECT_TRUE(is_legal(nibble));
    EXPECT_EQ(nibble_of(kept_of(nibble, Pattern::k1of2), Pattern::k1of2), nibble);
  }
  EXPECT_EQ(legal, (std::vector<unsigned>{0x4, 0xe}));
  EXPECT_EQ(kept_of(0x4, Pattern::k1of2), (Kept{0, 0}));
  EXPECT_EQ(kept_of(0xe, Pattern::k1of2), (Kept{1, 1}));
}

// By sorting: indices by falling magnitude, equal ones by rising index; the first `count`.
std::vector<int> largest(const std::int8_t* group, int size, int count) {
  std::vector<int> order;
  for (int i = 0; i < size; ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return std::abs(static_cast<int>(group[a])) > std::abs(static_cast<int>(group[b]));
  });
  order.resize(static_cast<std::size_t>(count));
  std::sort(order.begin(), order.end());
  return order;
}

TEST(Choose, KeepsTheLargestOfEveryGroup) {
  constexpr std::int8_t kValues[] = {0, 1, -1, 2, -3, 127, -128};
  for (int code = 0; code < 7 * 7 * 7 * 7; ++code) {
    const std::int8_t group[4] = {kValues[code % 7], kValues[code / 7 % 7], kValues[code / 49 % 7],
                                  kValues[code / 343]};
    const Kept kept = choose(group, kS8Format, Pattern::k2of4);
    ASSERT_EQ((std::vector<int>{kept.first, kept.second}), largest(group, 4, 2)) << code;
    const Kept one = choose(group, kS8Format, Pattern::k1of2);
    ASSERT_EQ(one, (Kept{one.first, one.first}));
    ASSERT_EQ(std::vector<int>{one.first}, largest(group, 2, 1)) << code;
  }
}

// Every pair of elements of the 8-bit types, a spread of the wider ones: bits order as numbers do.
TEST(Magnitude, OrdersAsTheDecodedNumbersDo) {
  for (int type = 0; type < kDTypeCount; ++type) {
    const auto dtype = static_cast<DType>(type);
    const std::optional<Format> format = format_of(dtype);
    if (!format || info(dtype).bits > 16) continue;
    const unsigned count = 1U << info(dtype).bits;
    const unsigned step = count > 256 ? 97 : 1;
    for (unsigned a = 0; a < count; a += step) {
      for (unsigned b = 0; b < count; b += step) {
        const double x = std::fabs(decode(dtype, a));
        const double y = std::fabs(decode(dtype, b));
        const bool larger = std::isnan(x) ? !std::isnan(y) : x > y;
        ASSERT_EQ(magnitude(static_cast<std::uint16_t>(a), *format) >
                      magnitude(static_cast<std::uint16_t>(b), *format),
                  larger)
            << name(dtype) << " " << a << " " << b;
      }
    }
  }
}

TEST(Magnitude, FormatsByTypeAreTheNamedOnes) {
  const auto same = [](DType dtype, Format expected) {
    const std::optional<Format> format = format_of(dtype);
    return format && format->mask == expected.mask && format->nan_from == expected.nan_from &&
           format->twos_complement == expected.twos_complement;
  };
  EXPECT_TRUE(same(DType::kF64, kF64Format));
  EXPECT_TRUE(same(DType::kF32, kF32Format));
  EXPECT_TRUE(same(DType::kTF32, kF32Format));
  EXPECT_TRUE(same(DType::kF16, kF16Format));
  EXPECT_TRUE(same(DType::kBF16, kBF16Format));
  EXPECT_TRUE(same(DType::kE4M3, kE4M3Format));
  EXPECT_TRUE(same(DType::kE5M2, kE5M2Format));
  EXPECT_TRUE(same(DType::kS8, kS8Format));
  EXPECT_TRUE(same(DType::kU8, kU8Format));
  EXPECT_FALSE(format_of(DType::kUE8M0).has_value());
  EXPECT_FALSE(format_of(DType::kBool).has_value());
}

TEST(Choose, NotANumberIsTheLargestAndTheFirstOfThemStays) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float mixed[4] = {kInf, 1.0F, -kNan, kNan};
  EXPECT_EQ(choose(mixed, kF32Format, Pattern::k2of4), (Kept{2, 3}));
  const float three[4] = {kNan, std::bit_cast<float>(0x7fffffffU), -kNan, kInf};
  EXPECT_EQ(choose(three, kF32Format, Pattern::k2of4), (Kept{0, 1}));
  const float zeros[4] = {0.0F, -0.0F, -0.0F, 0.0F};
  EXPECT_EQ(choose(zeros, kF32Format, Pattern::k2of4), (Kept{0, 1}));
}

}  // namespace
}  // namespace kiln::sparse
