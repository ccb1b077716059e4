// Swizzles as permutations, and layouts with a swizzle behind them.
#include <gtest/gtest.h>

#include "layout/family.h"

namespace kiln {
namespace {

const std::vector<Swizzle>& swizzles() {
  static const std::vector<Swizzle> kSwizzles = [] {
    std::vector<Swizzle> out;
    for (int bits = 0; bits <= 3; ++bits) {
      for (int base = 0; base <= 4; ++base) {
        for (const int shift : {-5, -3, 3, 4}) out.push_back({bits, base, shift});
      }
    }
    return out;
  }();
  return kSwizzles;
}

TEST(Swizzles, PermuteEachPeriodAndAreTheirOwnInverse) {
  for (const Swizzle& swizzle : swizzles()) {
    std::set<Index> seen;
    for (Index i = 0; i < 4096; ++i) {
      ASSERT_EQ(swizzle(swizzle(i)), i);
      ASSERT_EQ(swizzle(i) / period(swizzle), i / period(swizzle));
      ASSERT_EQ(swizzle(i) % period(swizzle), swizzle(i % period(swizzle)));
      seen.insert(swizzle(i));
    }
    EXPECT_EQ(seen.size(), 4096U) << to_text(swizzle);
  }
  EXPECT_EQ((Swizzle{3, 4, 3}(5 * 128 + 2 * 16)), 5 * 128 + 7 * 16);
  EXPECT_EQ((Swizzle{1, 0, -2}(1)), 5);
  EXPECT_EQ(to_text(Swizzle{3, 4, 3}), "Swizzle<3,4,3>");
}

// The indices are the layout's, permuted; all lie below cosize, which is at most one block too big.
void expect_swizzled(const Swizzle& swizzle, const Layout& layout) {
  const Swizzled both = composition(swizzle, layout);
  Index last = 0;
  for (Index i = 0; i < size(layout); ++i) {
    ASSERT_EQ(both(i), swizzle(layout(i)));
    last = std::max(last, both(i));
  }
  ASSERT_LT(last, cosize(both)) << to_text(both);
  ASSERT_GE(cosize(both), cosize(layout));
  ASSERT_LE(cosize(both),
            (cosize(layout) + period(swizzle) - 1) / period(swizzle) * period(swizzle));
  ASSERT_TRUE(size(both) == size(layout) && rank(both) == rank(layout));
  ASSERT_TRUE(depth(both) == depth(layout) && size(both, 0) == size(layout, 0));
}

TEST(Swizzled, IsTheLayoutThenTheSwizzle) {
  for (const Swizzle& swizzle : swizzles()) {
    for_each_dense(kSizeMax, 2, [&](const Layout& layout) { expect_swizzled(swizzle, layout); });
    expect_swizzled(swizzle, "(9,16):(128,1)"_layout);
  }
  EXPECT_EQ(cosize(composition(Swizzle{3, 4, 3}, "(9,16):(128,1)"_layout)), 1152);
  EXPECT_EQ(cosize(composition(Swizzle{3, 4, 3}, "(1,100):(128,1)"_layout)), 100);
  EXPECT_FALSE(Swizzled{}.valid());
  const Swizzled plain = "(4,2):(2,1)"_layout;
  EXPECT_EQ(plain(3, 1), 7);
}

TEST(Swizzled, ComposesBelowItsSwizzle) {
  const Swizzled s = composition(Swizzle{3, 3, 3}, "(8,64):(64,1)"_layout);
  const Layout b = "(4,16):(2,8)"_layout;
  for (Index i = 0; i < size(b); ++i) ASSERT_EQ(composition(s, b)(i), s(b(i)));
}

template <auto S>
void expect_compile_time_form() {
  for (int i = 0; i < static_cast<int>(size(S)); ++i) {
    ASSERT_EQ(index_at<S>(i), S(i));
    const int rows = static_cast<int>(size(S, 0));
    ASSERT_EQ(index_at<S>(i % rows, i / rows), S(i));
  }
}

TEST(Swizzled, CompileTimeFormAgrees) {
  expect_compile_time_form<Swizzled{Swizzle{3, 3, 3}, "(8,64):(64,1)"_layout}>();
  expect_compile_time_form<Swizzled{Swizzle{2, 0, -3}, "(8,(2,4)):(8,(1,2))"_layout}>();
  expect_compile_time_form<Swizzled{"(8,(2,4)):(8,(1,2))"_layout}>();
  expect_compile_time_form<"(8,(2,4)):(8,(1,2))"_layout>();
}

}  // namespace
}  // namespace kiln
