// The laws of complement, the inverses and what two layouts have in common.
#include <gtest/gtest.h>

#include "layout/family.h"

namespace kiln {
namespace {

// Ascending, disjoint from the layout except at 0, and together with it each of [0, target) and
// whatever is rounded up to exactly once. True when there was an answer to check.
bool expect_complement(const Layout& layout, Index target) {
  const Layout rest = complement(layout, target);
  if (!rest.valid()) return false;
  const std::vector<Index> mine = image(filter(layout));
  const std::vector<Index> others = image(rest);
  std::vector<bool> covered(static_cast<std::size_t>(cosize(layout) + cosize(rest)), false);
  for (std::size_t i = 1; i < others.size(); ++i) EXPECT_LT(others[i - 1], others[i]);
  for (const Index a : mine) {
    for (const Index b : others) {
      EXPECT_FALSE(covered[static_cast<std::size_t>(a + b)]) << to_text(layout) << " " << target;
      covered[static_cast<std::size_t>(a + b)] = true;
    }
  }
  const Index reached = static_cast<Index>(mine.size() * others.size());
  for (Index i = 0; i < reached; ++i) EXPECT_TRUE(covered[static_cast<std::size_t>(i)]);
  EXPECT_GE(reached, target);
  return true;
}

// A tile repeated by shifts covers an interval only if the smallest index it lacks can be a shift:
// whether some set of shifts makes the indices of `mine` cover [0, n) once, greedily.
bool tiles_an_interval(const std::vector<Index>& mine) {
  const Index span = mine.back() + 1;
  std::vector<bool> covered(static_cast<std::size_t>(4 * span), false);
  for (Index at = 0; at < 2 * span; ++at) {
    if (covered[static_cast<std::size_t>(at)]) continue;
    for (const Index a : mine) {
      if (covered[static_cast<std::size_t>(at + a)]) return false;
      covered[static_cast<std::size_t>(at + a)] = true;
    }
  }
  return true;
}

TEST(Complement, IsDisjointOrderedAndCovers) {
  int checked = 0;
  for_each_layout(kSizeMax, kLeavesInFamily, [&](const Layout& layout) {
    for (const Index target : {Index{1}, Index{24}, cosize(layout), kSizeMax + 1}) {
      checked += expect_complement(layout, target) ? 1 : 0;
    }
  });
  EXPECT_GT(checked, 10000);
}

TEST(Complement, IsMissingOnlyWhereNoShiftsTile) {
  int refused = 0;
  for_each_layout(kSizeMax, 2, [&](const Layout& layout) {
    if (complement(layout).valid()) return;
    ++refused;
    const std::vector<Index> mine = sorted_image(filter(layout));
    const bool repeats = std::adjacent_find(mine.begin(), mine.end()) != mine.end();
    ASSERT_TRUE(repeats || !tiles_an_interval(mine)) << to_text(layout);
  });
  EXPECT_GT(refused, 100);
}

TEST(Complement, Examples) {
  EXPECT_EQ(to_text(complement(read("4:1"), 24)), "6:4");
  EXPECT_EQ(to_text(complement(read("6:4"), 24)), "4:1");
  EXPECT_EQ(to_text(complement(read("(4,6):(1,4)"), 24)), "1:0");
  EXPECT_EQ(to_text(complement(read("4:2"), 24)), "(2,3):(1,8)");
  EXPECT_EQ(to_text(complement(read("(2,4):(1,6)"), 24)), "3:2");
  EXPECT_EQ(to_text(complement(read("(2,2):(1,6)"), 24)), "(3,2):(2,12)");
  EXPECT_EQ(to_text(complement(read("(2,4):(1,0)"), 24)), "12:2");
  EXPECT_FALSE(complement(read("(4,2):(1,2)"), 24).valid());  // overlaps itself
  EXPECT_FALSE(complement(read("(2,2):(2,5)"), 24).valid());  // 0 2 5 7 fills no interval
  EXPECT_FALSE(complement(read("2:-1"), 24).valid());
}

// layout(R(i)) == i, over all of a bijective layout.
void expect_right_inverse(const Layout& layout) {
  const Layout inverse = right_inverse(layout);
  ASSERT_TRUE(inverse.valid());
  for (Index i = 0; i < size(inverse); ++i) {
    ASSERT_EQ(layout(inverse(i)), i) << to_text(layout) << " and " << to_text(inverse);
  }
  ASSERT_TRUE(!is_bijective(layout) || size(inverse) == size(layout)) << to_text(layout);
}

TEST(RightInverse, FindsTheCoordinateOfAnIndex) {
  for_each_layout(kSizeMax, kLeavesInFamily, expect_right_inverse);
  expect_right_inverse(read("((4,8),(2,2)):((32,1),(16,8))"));
  expect_right_inverse(read("(4,2):(-1,1)"));
  EXPECT_EQ(to_text(right_inverse(read("(4,8):(8,1)"))), "(8,4):(4,1)");
  EXPECT_EQ(to_text(right_inverse(read("(2,3):(0,1)"))), "3:2");
}

// L(layout(i)) == i for an injective layout, and layout(L(layout(i))) == layout(i) for any.
bool expect_left_inverse(const Layout& layout) {
  const Layout inverse = left_inverse(layout);
  if (!inverse.valid()) return false;
  const bool exact = is_injective(layout);
  for (Index i = 0; i < size(layout); ++i) {
    const Index back = inverse(layout(i));
    EXPECT_TRUE(layout(back) == layout(i) && back < size(layout))
        << to_text(layout) << " and " << to_text(inverse);
    EXPECT_TRUE(!exact || back == i) << to_text(layout) << " and " << to_text(inverse);
  }
  return true;
}

TEST(LeftInverse, FindsTheCoordinateOfWhatTheLayoutReaches) {
  int checked = 0;
  for_each_layout(kSizeMax, kLeavesInFamily, [&](const Layout& layout) {
    const bool answered = expect_left_inverse(layout);
    ASSERT_EQ(answered, complement(layout).valid()) << to_text(layout);
    checked += answered ? 1 : 0;
  });
  EXPECT_GT(checked, 1000);
  EXPECT_EQ(left_inverse(read("4:2"))(6), 3);
  EXPECT_EQ(to_text(left_inverse(read("(4,8):(0,1)"))), "8:4");
  EXPECT_FALSE(left_inverse(read("(2,2):(1,1)")).valid());
}

// Both layouts send R to the indices 0, 1, 2, ..., and one more element would break that.
void expect_common(const Layout& a, const Layout& b) {
  const Layout common = max_common_layout(a, b);
  const Index length = size(common);
  ASSERT_EQ(max_common_vector(a, b), length);
  for (Index i = 0; i < length; ++i) {
    ASSERT_TRUE(a(common(i)) == i && b(common(i)) == i) << to_text(a) << " and " << to_text(b);
  }
  const Layout from_b = right_inverse(b);
  Index longest = 0;
  while (longest < size(from_b) && a(from_b(longest)) == longest) ++longest;
  ASSERT_TRUE(length == longest || !is_injective(a)) << to_text(a) << " and " << to_text(b);
}

TEST(MaxCommon, IsTheLongestRunInTheSameOrder) {
  std::vector<Layout> all;
  for_each_dense(kSizeMax, kLeavesInFamily, [&](const Layout& layout) { all.push_back(layout); });
  for (const Layout& a : all) {
    for (const Layout& b : all) {
      if (size(a) == size(b)) expect_common(a, b);
      if (HasFailure()) return;
    }
  }
  EXPECT_EQ(to_text(max_common_layout(read("(4,8):(1,4)"), read("(4,8):(1,8)"))), "4:1");
  EXPECT_EQ(to_text(max_common_layout(read("(4,8):(8,1)"), read("(4,8):(8,1)"))), "(8,4):(4,1)");
  EXPECT_EQ(max_common_vector(read("(4,8):(8,1)"), read("(4,8):(1,4)")), 1);
}

}  // namespace
}  // namespace kiln
