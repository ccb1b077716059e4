// The laws of the divisions: a tile, what repeats it, and nothing lost.
#include <gtest/gtest.h>

#include "layout/family.h"

namespace kiln {
namespace {

// Element (i, j) is the layout's at tiler(i) + rest(j), and those are all its coordinates, once
// each. True when there was an answer to check.
bool expect_divided(const Layout& layout, const Layout& tiler) {
  const Layout rest = complement(tiler, size(layout));
  if (!rest.valid() || size(tiler) * size(rest) != size(layout)) return false;
  const Layout divided = logical_divide(layout, tiler);
  if (!divided.valid()) return false;
  std::vector<bool> seen(static_cast<std::size_t>(size(layout)), false);
  bool holds = rank(divided) == 2 && size(divided, 0) == size(tiler);
  for (Index c = 0; c < size(layout) && holds; ++c) {
    const Index at = tiler(c % size(tiler)) + rest(c / size(tiler));
    holds = at < size(layout) && !seen[static_cast<std::size_t>(at)] && divided(c) == layout(at);
    if (holds) seen[static_cast<std::size_t>(at)] = true;
  }
  EXPECT_TRUE(holds) << to_text(layout) << " by " << to_text(tiler);
  return true;
}

TEST(LogicalDivide, IsTheTileThenItsRepeats) {
  std::vector<Layout> tilers;
  for_each_dense(kSizeMax, 2, [&](const Layout& layout) { tilers.push_back(layout); });
  std::int64_t checked = 0;
  for_each_dense(kSizeMax, kLeavesInFamily, [&](const Layout& layout) {
    for (const Layout& tiler : tilers) {
      if (cosize(tiler) <= size(layout)) checked += expect_divided(layout, tiler) ? 1 : 0;
    }
  });
  EXPECT_GT(checked, 300);
  EXPECT_EQ(to_text(logical_divide(read("(4,2,3):(2,1,8)"), read("4:2"))),
            "((2,2),(2,3)):((4,1),(2,8))");
}

TEST(LogicalDivide, DividesWhatRepeatsAndOverlapsToo) {
  int checked = 0;
  for_each_layout(kSizeMax, kLeavesInFamily, [&](const Layout& layout) {
    for (Index extent = 2; extent <= size(layout); ++extent) {
      if (size(layout) % extent != 0) continue;
      checked += expect_divided(layout, make_layout(extent, 1)) ? 1 : 0;
      checked += expect_divided(layout, make_layout(extent, size(layout) / extent)) ? 1 : 0;
    }
  });
  EXPECT_GT(checked, 10000);
}

// All divisions by a tiler are the same function of ((tile coordinates), (rest coordinates)), and
// the tile is composition(layout, tiler).
void expect_arrangements(const Layout& layout, const Tiler& tiler) {
  const Layout logical = logical_divide(layout, tiler);
  if (!logical.valid()) return;
  const Layout zipped = zipped_divide(layout, tiler);
  const Layout tile = mode(zipped, 0);
  const Layout rest = mode(zipped, 1);
  for (int i = 0; i < rank(tiler); ++i) {
    ASSERT_EQ(mode(mode(logical, i), 0), mode(tile, i));
    ASSERT_EQ(mode(mode(logical, i), 1), mode(rest, i));
    ASSERT_EQ(mode(tile, i), composition(mode(layout, i), mode(tiler.modes, i)));
  }
  for (int i = rank(tiler); i < rank(layout); ++i) ASSERT_EQ(mode(rest, i), mode(layout, i));
  ASSERT_EQ(rank(rest), rank(layout));
  ASSERT_EQ(tiled_divide(layout, tiler), group(flat_divide(layout, tiler), 0, rank(tiler)));
  ASSERT_EQ(image(flat_divide(layout, tiler)), image(zipped));
  ASSERT_EQ(image(tiled_divide(layout, tiler)), image(zipped));
  if (size(zipped) != size(layout)) return;
  ASSERT_EQ(sorted_image(zipped), sorted_image(layout));
}

TEST(Divisions, DifferOnlyInTheArrangementOfModes) {
  int checked = 0;
  for_each_dense(kSizeMax, kLeavesInFamily, [&](const Layout& layout) {
    for (Index first = 1; first <= size(layout, 0); ++first) {
      expect_arrangements(layout, make_tiler(first));
      ++checked;
      for (Index second = 1; rank(layout) > 1 && second <= size(layout, 1); ++second) {
        expect_arrangements(layout, make_tiler(first, second));
        const Layout strided = make_layout(first, detail::ceil_div(size(layout, 0), first));
        expect_arrangements(layout, make_tiler(strided, second));
      }
    }
  });
  EXPECT_GT(checked, 500);
}

TEST(Divisions, Examples) {
  const Layout a = read("(9,(4,8)):(59,(13,1))");
  const Tiler tiler = make_tiler("3:3"_layout, "(2,4):(1,8)"_layout);
  EXPECT_EQ(to_text(logical_divide(a, tiler)), "((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))");
  EXPECT_EQ(to_text(zipped_divide(a, tiler)), "((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))");
  EXPECT_EQ(to_text(tiled_divide(a, tiler)), "((3,(2,4)),3,(2,2)):((177,(13,2)),59,(26,1))");
  EXPECT_EQ(to_text(flat_divide(a, tiler)), "(3,(2,4),3,(2,2)):(177,(13,2),59,(26,1))");
  EXPECT_EQ(to_text(tiled_divide(read("(4,2,3):(2,1,8)"), read("4:2"))), "((2,2),2,3):((4,1),2,8)");
  EXPECT_EQ(to_text(flat_divide(read("(4,2,3):(2,1,8)"), read("4:2"))), "(2,2,2,3):(4,1,2,8)");
}

TEST(Divisions, RoundUpWhatDoesNotDivide) {
  EXPECT_EQ(to_text(zipped_divide(read("(10,6):(6,1)"), make_tiler(4, 4))),
            "((4,4),(3,2)):((6,1),(24,4))");
  EXPECT_FALSE(zipped_divide(read("(8,6)"), make_tiler(4, 4, 4)).valid());
}

TEST(Divisions, KeepTheSwizzle) {
  const Swizzled s = composition(Swizzle{3, 3, 3}, "(64,64):(64,1)"_layout);
  const Swizzled zipped = zipped_divide(s, make_tiler(16, 8));
  EXPECT_EQ(zipped.swizzle, s.swizzle);
  EXPECT_EQ(zipped.layout, zipped_divide(s.layout, make_tiler(16, 8)));
  for (Index row = 0; row < 64; ++row) {
    for (Index column = 0; column < 64; ++column) {
      const Index inside = row % 16 + 16 * (column % 8);
      const Index outside = row / 16 + 4 * (column / 8);
      ASSERT_EQ(zipped(inside, outside), s(row, column));
    }
  }
  EXPECT_EQ(flat_divide(s, make_tiler(16, 8)).layout, flat_divide(s.layout, make_tiler(16, 8)));
  EXPECT_EQ(tiled_divide(s, make_tiler(16, 8)).layout, tiled_divide(s.layout, make_tiler(16, 8)));
  EXPECT_EQ(logical_divide(s, make_tiler(16, 8)).swizzle, s.swizzle);
  EXPECT_EQ(composition(s, make_tiler(16, 8)).layout, composition(s.layout, make_tiler(16, 8)));
}

}  // namespace
}  // namespace kiln
