#include "reference/atomic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace kiln::reference {
namespace {

using target::Atomic;

UpdateOrder by(std::size_t thread, std::uint64_t phase = 0) { return {phase, {0, 64, thread}}; }
Update update(Atomic kind, DType dtype, double value, double compare = 0) {
  return {.kind = kind, .dtype = dtype, .value = {value, 0}, .compare = {compare, 0}};
}

TEST(Updated, IntegersCombineInAnyOrder) {
  Updated sum({4294967295.0, 0}, by(0));
  EXPECT_EQ(sum.after(update(Atomic::kAdd, DType::kU32, 3), by(0)).value, 2);
  EXPECT_EQ(sum.after(update(Atomic::kAdd, DType::kU32, 5), by(1)), (Number{7, 0}));
  Updated most({-5, 0}, by(0));
  (void)most.after(update(Atomic::kMax, DType::kS32, -7), by(0));
  EXPECT_EQ(most.after(update(Atomic::kMax, DType::kS32, -1), by(1)), (Number{-1, 0}));
}

TEST(Updated, TwoKindsOfTwoThreadsAreOpenUntilSomethingOrdersThem) {
  Updated both({1, 0}, by(0));
  (void)both.after(update(Atomic::kAdd, DType::kU32, 3), by(0));
  EXPECT_EQ(both.after(update(Atomic::kMax, DType::kU32, 9), by(1)).error, kUnbounded);
  Updated ordered({1, 0}, by(0));
  (void)ordered.after(update(Atomic::kAdd, DType::kU32, 3), by(0));
  EXPECT_EQ(ordered.after(update(Atomic::kMax, DType::kU32, 9), by(1, 1)), (Number{9, 0}));
  Updated alone({1, 0}, by(5));
  (void)alone.after(update(Atomic::kAdd, DType::kU32, 3), by(5));
  EXPECT_EQ(alone.after(update(Atomic::kMax, DType::kU32, 9), by(5)), (Number{9, 0}));
  // The order of one thread's is not that of another's.
  EXPECT_EQ(alone.after(update(Atomic::kMax, DType::kU32, 2), by(6)).error, kUnbounded);
}

TEST(Updated, WhatReplacesIsKnownWhereAllSayTheSame) {
  Updated same({1, 0}, by(0));
  (void)same.after(update(Atomic::kExch, DType::kU32, 7), by(0));
  EXPECT_EQ(same.after(update(Atomic::kExch, DType::kU32, 7), by(1)), (Number{7, 0}));
  EXPECT_EQ(same.after(update(Atomic::kExch, DType::kU32, 8), by(2)).error, kUnbounded);
  Updated first({0, 0}, by(0));
  EXPECT_EQ(first.after(update(Atomic::kCas, DType::kU32, 1, 0), by(0)), (Number{1, 0}));
  EXPECT_EQ(first.after(update(Atomic::kCas, DType::kU32, 1, 0), by(1)), (Number{1, 0}));
  EXPECT_EQ(first.after(update(Atomic::kCas, DType::kU32, 2, 0), by(2)).error, kUnbounded);
}

// Every order of some sums in f32, one by one, against the bound.
TEST(Updated, TheBoundOfASumCoversEveryOrder) {
  std::vector<double> terms = {1e8, -1e8, 3.14159, 0.1, -2.5e-7, 16777217, 1e-3};
  for (double& term : terms) term = static_cast<double>(static_cast<float>(term));
  Updated sum({0.25, 0}, by(0));
  Number said;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    said = sum.after(update(Atomic::kAdd, DType::kF32, terms[i]), by(i));
  }
  ASSERT_LT(said.error, 200);
  std::ranges::sort(terms);
  double least = kUnbounded;
  double most = -kUnbounded;
  do {
    float total = 0.25F;
    for (const double term : terms) total += static_cast<float>(term);
    least = std::min(least, static_cast<double>(total));
    most = std::max(most, static_cast<double>(total));
  } while (std::ranges::next_permutation(terms).found);
  EXPECT_LT(least, most);  // the order matters here
  EXPECT_LE(said.value - said.error, least);
  EXPECT_GE(said.value + said.error, most);
}

TEST(Updated, WholeSumsAreExactAndOverflowIsOpen) {
  Updated whole({0, 0}, by(0));
  for (std::size_t i = 0; i < 100; ++i) {
    (void)whole.after(update(Atomic::kAdd, DType::kF16, 20), by(i));
  }
  EXPECT_EQ(whole.after(update(Atomic::kAdd, DType::kF16, 1), by(0)), (Number{2001, 0}));
  EXPECT_GT(whole.after(update(Atomic::kAdd, DType::kF16, 100), by(0)).error, 0);  // over 2048
  Updated large({60000, 0}, by(0));
  (void)large.after(update(Atomic::kAdd, DType::kF16, 60000), by(1));
  EXPECT_EQ(large.after(update(Atomic::kAdd, DType::kF16, -60000), by(2)).error, kUnbounded);
  Updated endless({kUnbounded, 0}, by(0));
  EXPECT_EQ(endless.after(update(Atomic::kAdd, DType::kF32, -5), by(1)), (Number{kUnbounded, 0}));
}

TEST(Updated, SubnormalSumsInGlobalMemoryMayBeFlushed) {
  Update tiny = update(Atomic::kAdd, DType::kF32, 0x1p-127);
  tiny.flushed = target::flushed_below(Atomic::kAdd, DType::kF32, true);
  Updated sum({0, 0}, by(0));
  const Number said = sum.after(tiny, by(0));
  EXPECT_GE(said.error, 0x1p-127);  // 0 is inside
  EXPECT_EQ(target::flushed_below(Atomic::kAdd, DType::kF32, false), 0);
}

}  // namespace
}  // namespace kiln::reference
