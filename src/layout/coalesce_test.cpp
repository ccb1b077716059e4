// Laws of what changes a layout's tree and not what it means: coalesce, filter, flatten, group.
#include <gtest/gtest.h>

#include "layout/family.h"

namespace kiln {
namespace {

// No leaf of extent 1, no neighbours that merge: nothing shorter has the same leaves in order.
bool is_coalesced(const Layout& layout) {
  if (depth(layout) > 1) return false;
  for (int i = 0; i < layout.leaves; ++i) {
    if (layout.extents[i] == 1 && layout.leaves > 1) return false;
    if (i > 0 && layout.strides[i] == layout.extents[i - 1] * layout.strides[i - 1]) return false;
  }
  return true;
}

void expect_coalesced(const Layout& layout) {
  const Layout result = coalesce(layout);
  ASSERT_EQ(image(result), image(layout)) << to_text(layout);
  ASSERT_TRUE(is_coalesced(result)) << to_text(layout) << " gave " << to_text(result);
}

TEST(Coalesce, KeepsTheFunctionInFewestLeaves) {
  for_each_layout(kSizeMax, kLeavesInFamily, expect_coalesced);
  expect_coalesced(read("((3,(2,2)),2):((4,(1,2)),12)"));
  expect_coalesced(read("(4,(2,3)):(-1,(-4,-8))"));
  EXPECT_EQ(to_text(coalesce(read("(2,(1,6)):(1,(6,2))"))), "12:1");
}

TEST(Coalesce, ByProfileIsModeByMode) {
  for_each_layout(kSizeMax, kLeavesInFamily, [](const Layout& flat) {
    if (rank(flat) < 3) return;
    const Layout layout = group(flat, 1, 3);
    const Layout both = coalesce(layout, read("(1,1)"));
    ASSERT_EQ(both, make_layout(coalesce(mode(layout, 0)), coalesce(mode(layout, 1))));
    const Layout first = coalesce(layout, read("(1)"));
    ASSERT_EQ(first, make_layout(coalesce(mode(layout, 0)), mode(layout, 1)));
  });
  const Layout deep = read("((2,(2,1)),3):((1,(2,9)),4)");
  EXPECT_EQ(to_text(coalesce(deep, read("((1,1),1)"))), "((2,2),3):((1,2),4)");
  EXPECT_EQ(to_text(coalesce(deep, read("(1,1)"))), "(4,3):(1,4)");
  EXPECT_EQ(to_text(coalesce(deep, read("1"))), "12:1");
  EXPECT_FALSE(coalesce(deep, read("(1,1,1)")).valid());
}

// filter() keeps the set of indices, and nothing that it leaves counts on from another leaf.
void expect_filtered(const Layout& layout) {
  const Layout result = filter(layout);
  ASSERT_EQ(distinct(image(result)), distinct(image(layout))) << to_text(layout);
  ASSERT_TRUE(is_coalesced(result)) << to_text(layout) << " gave " << to_text(result);
  for (int i = 0; i < result.leaves; ++i) {
    ASSERT_TRUE(result.strides[i] != 0 || size(result) == 1) << to_text(layout);
  }
}

TEST(Filter, DropsWhatRepeats) {
  for_each_layout(kSizeMax, kLeavesInFamily, expect_filtered);
  EXPECT_EQ(to_text(filter(read("(4,2,3):(1,0,4)"))), "12:1");
  EXPECT_EQ(to_text(filter(read("(4,2):(0,0)"))), "1:0");
}

TEST(Flatten, KeepsTheLeavesAndTheFunction) {
  for_each_shape(kSizeMax, kLeavesInFamily, [](const Layout& flat) {
    for (const Layout& layout : groupings(flat)) {
      const Layout expected = depth(layout) > 0 && depth(flat) == 0 ? make_layout(flat) : flat;
      ASSERT_EQ(flatten(layout), expected) << to_text(layout);
    }
  });
  EXPECT_EQ(to_text(flatten(read("((4,(2,3)),5):((6,(1,2)),24)"))), "(4,2,3,5):(6,1,2,24)");
}

TEST(Group, PutsModesIntoOne) {
  for_each_shape(kSizeMax, kLeavesInFamily, [](const Layout& flat) {
    for (int begin = 0; begin < rank(flat); ++begin) {
      for (int end = begin + 1; end <= rank(flat); ++end) {
        const Layout grouped = group(flat, begin, end);
        ASSERT_EQ(rank(grouped), rank(flat) - (end - begin) + 1);
        ASSERT_EQ(image(grouped), image(flat));
        Index product = 1;
        for (int i = begin; i < end; ++i) product *= size(flat, i);
        ASSERT_EQ(size(grouped, begin), product);
      }
    }
  });
  EXPECT_EQ(to_text(group(read("(2,3,5,7)"), 1, 3)), "(2,(3,5),7):(1,(2,6),30)");
  EXPECT_FALSE(group(read("(2,3)"), 1, 1).valid());
  EXPECT_FALSE(group(read("(2,3)"), 0, 3).valid());
  EXPECT_FALSE(group(read("(2,3)"), -1, 1).valid());
}

}  // namespace
}  // namespace kiln
