// The law of composition, composition(a, b)(c) == a(b(c)), and that there is an answer whenever one
// exists.
#include <gtest/gtest.h>

#include "layout/family.h"

namespace kiln {
namespace {

std::vector<Index> composed_image(const Layout& a, const Layout& b) {
  std::vector<Index> out;
  for (Index c = 0; c < size(b); ++c) out.push_back(a(b(c)));
  return out;
}

// Says so when the law is broken. True when there was an answer to check.
bool expect_composed(const Layout& a, const Layout& b) {
  const Layout result = composition(a, b);
  if (!result.valid()) return false;
  bool holds = size(result) == size(b);
  for (Index c = 0; c < size(b) && holds; ++c) holds = result(c) == a(b(c));
  EXPECT_TRUE(holds) << to_text(a) << " o " << to_text(b) << " gave " << to_text(result);
  EXPECT_TRUE(rank(result) == rank(b) || depth(b) == 0);  // a bare leaf may become a tuple
  for (int i = 0; i < rank(b) && depth(b) > 0; ++i) EXPECT_EQ(size(result, i), size(b, i));
  return true;
}

// Whether these indices are those of some layout, leaf by leaf: the first leaf takes a run of equal
// steps, and the later ones repeat what it reaches.
bool is_some_layout(const std::vector<Index>& indices) {
  const std::size_t count = indices.size();
  if (count <= 2) return true;
  std::size_t run = 2;
  while (run < count && indices[run] == static_cast<Index>(run) * indices[1]) ++run;
  if (run == count) return true;
  for (std::size_t first = run; first > 1; --first) {
    if (count % first != 0) continue;
    std::vector<Index> rest;
    bool repeats = true;
    for (std::size_t i = 0; i < count && repeats; ++i) {
      if (i % first == 0) rest.push_back(indices[i]);
      repeats = indices[i] == rest.back() + indices[i % first];
    }
    if (repeats && is_some_layout(rest)) return true;
  }
  return false;
}

// Whether any layout that refines b's leaves is a o b: each leaf alone gives the indices of a
// layout and those of all leaves add up.
bool has_answer(const Layout& a, const Layout& b) {
  std::vector<std::vector<Index>> leaves;
  for (int i = 0; i < b.leaves; ++i) {
    leaves.push_back(composed_image(a, make_layout(b.extents[i], b.strides[i])));
    if (!is_some_layout(leaves.back())) return false;
  }
  for (Index c = 0; c < size(b); ++c) {
    const Coord at = idx2crd(c, b);
    Index sum = 0;
    for (int i = 0; i < b.leaves; ++i) {
      sum += leaves[static_cast<std::size_t>(i)][static_cast<std::size_t>(at.at[i])];
    }
    if (sum != a(b(c))) return false;
  }
  return true;
}

struct Tally {
  std::int64_t answered = 0;
  std::int64_t refused = 0;
  std::int64_t refused_with_answer = 0;
};

void check(const Layout& a, const Layout& b, Tally& tally) {
  if (cosize(b) > size(a)) return;  // the law speaks of b's whole image
  if (expect_composed(a, b)) {
    ++tally.answered;
    return;
  }
  ++tally.refused;
  tally.refused_with_answer += has_answer(a, b) ? 1 : 0;
}

// Tile-like layouts with each other: 8,406 of each up to size 64.
TEST(Composition, IsCompositionOfFunctionsForDenseLayouts) {
  std::vector<Layout> all;
  for_each_dense(kSizeMax, kLeavesInFamily, [&](const Layout& layout) { all.push_back(layout); });
  std::vector<Layout> by_cosize = all;
  std::stable_sort(by_cosize.begin(), by_cosize.end(),
                   [](const Layout& a, const Layout& b) { return cosize(a) < cosize(b); });
  Tally tally;
  for (const Layout& a : all) {
    for (const Layout& b : by_cosize) {
      if (cosize(b) > size(a)) break;
      check(a, b, tally);
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(tally.answered, 1000);
  EXPECT_EQ(tally.refused_with_answer, 0);
}

// Any leaf, also ones that do not divide, in any layout of up to three leaves.
TEST(Composition, AnswersForALeafWheneverThereIsAnAnswer) {
  Tally tally;
  for_each_dense(kSizeMax, kLeavesInFamily, [&](const Layout& a) {
    for (Index extent = 1; extent <= size(a); ++extent) {
      for (Index stride = 0; (extent - 1) * stride < size(a) && stride < size(a); ++stride) {
        check(a, make_layout(extent, stride), tally);
      }
    }
  });
  EXPECT_GT(tally.answered, tally.refused / 2);
  EXPECT_GT(tally.refused, 100);
  EXPECT_EQ(tally.refused_with_answer, 0);
}

// Overlapping, repeating and ill-dividing layouts on either side.
TEST(Composition, IsCompositionOfFunctionsForOddLayouts) {
  constexpr Index kSmall = kSizeMax < 16 ? 4 : 8;
  std::vector<Layout> all;
  for_each_layout(kSmall, kLeavesInFamily, [&](const Layout& layout) { all.push_back(layout); });
  std::vector<Layout> simple;
  for_each_layout(kSmall, 2, [&](const Layout& layout) { simple.push_back(layout); });
  Tally tally;
  for (const Layout& a : all) {
    for (const Layout& b : simple) {
      check(a, b, tally);
      check(b, a, tally);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(tally.answered, tally.refused / 2);
  // Carries that cancel by accident, as in (2,2,2):(1,5,7), are not looked for.
  EXPECT_LT(tally.refused_with_answer, tally.answered / 10);
}

// Strides of one sign are answered whenever there is an answer. Of both signs some are refused that
// have one, since digits that cancel are not looked for.
TEST(Composition, NegativeStridesFollowTheMagnitude) {
  Tally one_sign;
  Tally both_signs;
  for_each_dense(kSizeMax, 2, [&](const Layout& a) {
    for_each_dense(kSizeMax, 2, [&](const Layout& b) {
      const int all = (1 << b.leaves) - 1;
      for (int flipped = 1; flipped <= all; ++flipped) {
        Layout signed_b = b;
        for (int i = 0; i < b.leaves; ++i) {
          if ((flipped >> i & 1) != 0) signed_b.strides[i] = -b.strides[i];
        }
        check(a, signed_b, flipped == all ? one_sign : both_signs);
      }
    });
  });
  EXPECT_GT(one_sign.answered, 100);
  EXPECT_EQ(one_sign.refused_with_answer, 0);
  EXPECT_GT(both_signs.answered, 100);
  EXPECT_LT(both_signs.refused_with_answer, both_signs.refused);
}

TEST(Composition, KeepsTheNestingOfTheSecond) {
  const Layout a = read("(6,2):(8,2)");
  EXPECT_EQ(to_text(composition(a, read("(4,3):(3,1)"))), "((2,2),3):((24,2),8)");
  EXPECT_EQ(to_text(composition(a, read("((4),(3)):((3),(1))"))), "(((2,2)),(3)):(((24,2)),(8))");
  EXPECT_EQ(to_text(composition(read("20:2"), read("(5,4):(4,1)"))), "(5,4):(8,2)");
  EXPECT_EQ(to_text(composition(read("(10,2):(16,4)"), read("(5,4):(1,5)"))),
            "(5,(2,2)):(16,(80,4))");
  EXPECT_EQ(to_text(composition(read("(4,4):(1,100)"), read("2:5"))), "2:101");
}

TEST(Composition, ThatNoLayoutDescribesIsInvalid) {
  EXPECT_FALSE(composition(read("(4,4):(1,100)"), read("6:1")).valid());  // 0 1 2 3 100 101
  EXPECT_FALSE(composition(read("(4,4):(1,100)"), read("3:3")).valid());  // 0 3 102
  // Each leaf alone would fit, but 3 + 1 carries: 4 of the second argument is 8 of the first.
  EXPECT_FALSE(composition(read("(4,2):(1,8)"), read("(2,3):(3,1)")).valid());
  EXPECT_FALSE(composition(read("(4,2):(1,8)"), read("(2,2):(4,-1)")).valid());  // 3 is 4 - 1
  EXPECT_FALSE(composition(Layout{}, read("3:3")).valid());
}

TEST(Composition, WithATilerIsModeByMode) {
  const Layout a = read("(12,(4,8)):(59,(13,1))");
  EXPECT_EQ(to_text(composition(a, make_tiler("3:4"_layout, "8:2"_layout))),
            "(3,(2,4)):(236,(26,1))");
  EXPECT_EQ(to_text(composition(a, make_tiler(3, 8))), "(3,(4,2)):(59,(13,1))");
  EXPECT_EQ(to_text(composition(a, make_tiler(3))), "(3,(4,8)):(59,(13,1))");
  EXPECT_FALSE(composition(a, make_tiler(3, 8, 1)).valid());
}

}  // namespace
}  // namespace kiln
