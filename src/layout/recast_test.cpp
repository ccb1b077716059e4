// The laws of seeing the same bytes as elements of another width.
#include <gtest/gtest.h>

#include "layout/family.h"

namespace kiln {
namespace {

// Every old index i is in new element i / n, and every new element holds an old index.
bool expect_upcast(const Layout& layout, Index n) {
  const Layout wide = upcast(layout, n);
  if (!wide.valid()) return false;
  std::vector<Index> expected = image(layout);
  for (Index& i : expected) i /= n;
  EXPECT_EQ(distinct(image(wide)), distinct(std::move(expected)))
      << to_text(layout) << " in " << n << "s";
  EXPECT_TRUE(congruent(wide, layout));
  return true;
}

// Every old index i becomes the new n * i, ..., n * i + n - 1.
bool expect_downcast(const Layout& layout, Index n) {
  const Layout narrow = downcast(layout, n);
  if (!narrow.valid()) return false;
  std::vector<Index> expected;
  for (const Index i : image(layout)) {
    for (Index part = 0; part < n; ++part) expected.push_back(n * i + part);
  }
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(sorted_image(narrow), expected) << to_text(layout) << " by " << n;
  EXPECT_EQ(coalesce(upcast(narrow, n)), coalesce(layout)) << to_text(layout) << " by " << n;
  return true;
}

TEST(Recast, UpcastHoldsTheSameElements) {
  int checked = 0;
  for_each_layout(kSizeMax, kLeavesInFamily, [&](const Layout& layout) {
    for (const Index n : {1, 2, 3, 4, 8}) checked += expect_upcast(layout, n) ? 1 : 0;
  });
  EXPECT_GT(checked, 10000);
}

TEST(Recast, DowncastSplitsEveryElement) {
  int checked = 0;
  for_each_layout(kSizeMax, kLeavesInFamily, [&](const Layout& layout) {
    for (const Index n : {1, 2, 3, 4}) checked += expect_downcast(layout, n) ? 1 : 0;
  });
  EXPECT_GT(checked, 10000);
}

TEST(Recast, Examples) {
  EXPECT_EQ(to_text(recast<16, 128>(read("(64,8):(1,64)"))), "(8,8):(1,8)");
  EXPECT_EQ(to_text(recast<128, 16>(read("(8,8):(1,8)"))), "(64,8):(1,64)");
  EXPECT_EQ(to_text(recast<8, 6>(read("(3,8):(1,3)"))), "(1,32):(4,1)");
  EXPECT_EQ(recast(read("(3,8):(1,3)"), 16, 16), read("(3,8):(1,3)"));
  EXPECT_FALSE(upcast(read("4:3"), 2).valid());
  EXPECT_FALSE(upcast(read("(2,2):(1,1)"), 2).valid());
  EXPECT_FALSE(upcast(read("4:-1"), 2).valid());
  EXPECT_EQ(to_text(upcast(read("(4,2):(1,-8)"), 2)), "(2,2):(1,-4)");
  EXPECT_FALSE(downcast(read("(4,4):(2,8)"), 2).valid());
  EXPECT_FALSE(downcast(read("(4,4):(1,1)"), 2).valid());
  EXPECT_FALSE(recast(read("4:1"), 0, 8).valid());
}

// Seen in the narrower elements, the place of every wide element is the same.
TEST(Recast, OfASwizzleMovesItsBase) {
  const Swizzled bytes = composition(Swizzle{3, 4, 3}, "(128,8):(1,128)"_layout);
  const Swizzled halves = recast<8, 16>(bytes);
  EXPECT_EQ(halves, composition(Swizzle{3, 3, 3}, "(64,8):(1,64)"_layout));
  EXPECT_EQ((recast<16, 8>(halves)), bytes);
  for (Index row = 0; row < 8; ++row) {
    for (Index column = 0; column < 64; ++column) {
      ASSERT_EQ(bytes(2 * column, row), 2 * halves(column, row));
    }
  }
  EXPECT_TRUE((recast<8, 128>(bytes)).valid());
  EXPECT_FALSE((recast<8, 256>(bytes)).valid());  // two chunks of 16 bytes do not stay together
  EXPECT_FALSE((recast<8, 24>(bytes)).valid());
}

}  // namespace
}  // namespace kiln
