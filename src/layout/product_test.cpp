// The laws of the products: copies of a layout, disjoint, in the order of another.
#include <gtest/gtest.h>

#include "layout/family.h"

namespace kiln {
namespace {

// Mode 0 is the layout; copy j lies where the layout's complement puts the tiler's index j; no two
// copies meet.
bool expect_product(const Layout& layout, const Layout& tiler) {
  const Layout product = logical_product(layout, tiler);
  if (!product.valid()) return false;
  EXPECT_EQ(mode(product, 0), layout);
  EXPECT_EQ(size(product, 1), size(tiler));
  const Layout rest = complement(layout, size(layout) * cosize(tiler));
  for (Index j = 0; j < size(tiler); ++j) EXPECT_EQ(product(0, j), rest(tiler(j)));
  if (is_injective(layout) && is_injective(tiler)) {
    EXPECT_TRUE(is_injective(product)) << to_text(layout) << " by " << to_text(tiler);
  }
  return true;
}

TEST(LogicalProduct, RepeatsWithoutOverlap) {
  constexpr Index kTilerSizeMax = kSizeMax < 16 ? 6 : 12;
  std::vector<Layout> tilers;
  for_each_dense(kTilerSizeMax, 2, [&](const Layout& tiler) { tilers.push_back(tiler); });
  int checked = 0;
  for_each_dense(kSizeMax, kLeavesInFamily, [&](const Layout& layout) {
    for (const Layout& tiler : tilers) checked += expect_product(layout, tiler) ? 1 : 0;
  });
  EXPECT_GT(checked, 1000);
  EXPECT_EQ(to_text(logical_product(read("(2,2):(4,1)"), read("6:1"))),
            "((2,2),(2,3)):((4,1),(2,8))");
  EXPECT_FALSE(logical_product(read("(2,2):(1,1)"), read("6:1")).valid());
}

TEST(LogicalProduct, OfAnyLayoutThatHasAComplement) {
  int checked = 0;
  for_each_layout(kSizeMax, kLeavesInFamily, [&](const Layout& layout) {
    const bool answered = expect_product(layout, make_layout(2, 1));
    ASSERT_TRUE(!answered || complement(layout, 2 * size(layout)).valid()) << to_text(layout);
    checked += answered ? 1 : 0;
  });
  EXPECT_GT(checked, 1000);
}

// Element (b_i + block_i * t_i) of mode i, for each mode, is element b of copy t; for the raked
// product (t_i + tiles_i * b_i).
void expect_rank_sensitive(const Layout& block, const Layout& tiler) {
  const Layout product = logical_product(block, tiler);
  if (!product.valid()) return;
  const Layout blocked = blocked_product(block, tiler);
  const Layout raked = raked_product(block, tiler);
  ASSERT_EQ(rank(blocked), rank(block));
  ASSERT_EQ(rank(raked), rank(block));
  for (Index b = 0; b < size(block); ++b) {
    for (Index t = 0; t < size(tiler); ++t) {
      const Index b0 = b % size(block, 0);
      const Index b1 = b / size(block, 0);
      const Index t0 = t % size(tiler, 0);
      const Index t1 = t / size(tiler, 0);
      const Index expected = product(b, t);
      ASSERT_EQ(blocked(b0 + size(block, 0) * t0, b1 + size(block, 1) * t1), expected);
      ASSERT_EQ(raked(t0 + size(tiler, 0) * b0, t1 + size(tiler, 1) * b1), expected);
    }
  }
}

TEST(RankSensitiveProducts, LieInBlocksOrInterleaved) {
  constexpr Index kPartMax = kSizeMax < 16 ? 6 : 12;
  std::vector<Layout> parts;
  for_each_dense(kPartMax, 2, [&](const Layout& layout) {
    if (rank(layout) == 2) parts.push_back(layout);
  });
  for (const Layout& block : parts) {
    for (const Layout& tiler : parts) expect_rank_sensitive(block, tiler);
    if (HasFailure()) return;
  }
  EXPECT_EQ(to_text(blocked_product(read("(2,5):(5,1)"), read("(3,4):(1,3)"))),
            "((2,3),(5,4)):((5,10),(1,30))");
  EXPECT_EQ(to_text(raked_product(read("(2,5):(5,1)"), read("(3,4):(1,3)"))),
            "((3,2),(4,5)):((10,5),(30,1))");
  EXPECT_EQ(to_text(blocked_product(read("4:1"), read("(3,2)"))), "((4,3),(1,2)):((1,4),(0,12))");
  EXPECT_FALSE(blocked_product(read("(2,2):(1,1)"), read("(3,2)")).valid());
}

// All products with a tiler are the same function of ((block coordinates), (copy coordinates)).
void expect_arrangements(const Layout& block, const Tiler& tiler) {
  const Layout logical = logical_product(block, tiler);
  if (!logical.valid()) return;
  const Layout zipped = zipped_product(block, tiler);
  for (int i = 0; i < rank(tiler); ++i) {
    ASSERT_EQ(mode(logical, i), logical_product(mode(block, i), mode(tiler.modes, i)));
    ASSERT_EQ(mode(mode(zipped, 0), i), mode(block, i));
    ASSERT_EQ(mode(mode(zipped, 1), i), mode(mode(logical, i), 1));
  }
  for (int i = rank(tiler); i < rank(block); ++i) {
    ASSERT_EQ(mode(mode(zipped, 1), i), mode(block, i));
  }
  ASSERT_EQ(tiled_product(block, tiler), group(flat_product(block, tiler), 0, rank(tiler)));
  ASSERT_EQ(image(flat_product(block, tiler)), image(zipped));
}

TEST(Products, ByModeDifferOnlyInTheArrangementOfModes) {
  for_each_dense(kSizeMax, kLeavesInFamily, [&](const Layout& block) {
    expect_arrangements(block, make_tiler(3));
    if (rank(block) > 1) expect_arrangements(block, make_tiler("2:3"_layout, 4));
  });
  const Layout block = read("(2,5):(5,1)");
  EXPECT_EQ(to_text(logical_product(block, make_tiler("3:5"_layout, "4:6"_layout))),
            "((2,3),(5,4)):((5,10),(1,30))");
  EXPECT_EQ(to_text(zipped_product(block, make_tiler("3:5"_layout, "4:6"_layout))),
            "((2,5),(3,4)):((5,1),(10,30))");
}

}  // namespace
}  // namespace kiln
