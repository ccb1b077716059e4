// The algebra by its laws: each law is one helper that states it by brute force, run over every
// layout of up to two leaves with small extents and strides, and over some nested ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "kiln/layout.h"
#include "layout/print.h"

namespace kiln {
namespace {

Layout read(std::string_view text) {
  Result<Layout> parsed = parse_layout(text);
  EXPECT_TRUE(parsed.has_value()) << text;
  return parsed ? *parsed : Layout{};
}

const std::vector<Layout>& nested_layouts() {
  static const std::vector<Layout> kLayouts = {
      read("((4,8),(2,2)):((32,1),(16,8))"), read("((4,8),(2,2,2)):((32,1),(16,8,128))"),
      read("((2,2),3):((1,6),2)"),           read("(4,(2,3),2):(6,(1,2),24)"),
      read("((3,(2,2)),2):((4,(1,2)),12)"),  read("(((5))):(((3)))"),
      read("(2,1,3,4):(12,7,1,3)"),          read("((2,3),(4,1)):((1,2),(0,5))"),
  };
  return kLayouts;
}

// Bare leaves, pairs, and the nested ones above.
std::vector<Layout> small_layouts() {
  std::vector<Layout> leaves;
  for (const Index extent : {1, 2, 3, 4, 6}) {
    for (const Index stride : {0, 1, 2, 3, 4, 6}) leaves.push_back(make_layout(extent, stride));
  }
  std::vector<Layout> out = leaves;
  for (const Layout& a : leaves) {
    for (const Layout& b : leaves) out.push_back(make_layout(a, b));
  }
  out.insert(out.end(), nested_layouts().begin(), nested_layouts().end());
  return out;
}

std::vector<Index> image(const Layout& layout) {
  std::vector<Index> out;
  for (Index i = 0; i < size(layout); ++i) out.push_back(layout(i));
  return out;
}

std::vector<Index> sorted_image(const Layout& layout) {
  std::vector<Index> out = image(layout);
  std::sort(out.begin(), out.end());
  return out;
}

bool is_injective(const Layout& layout) {
  const std::vector<Index> all = image(layout);
  return std::set<Index>(all.begin(), all.end()).size() == all.size();
}

// ---- text ----

TEST(LayoutText, RoundTrips) {
  for (const Layout& layout : small_layouts()) EXPECT_EQ(read(to_text(layout)), layout);
  EXPECT_EQ(to_text(read("( 4 , (2,3) ) : (-1,(8, 16))")), "(4,(2,3)):(-1,(8,16))");
  EXPECT_EQ(to_text(read("((4,8),2)")), "((4,8),2):((1,4),32)");
}

TEST(LayoutText, SaysWhatIsWrong) {
  const std::map<std::string, std::string> cases = {
      {"", "expected a number"},
      {"()", "expected a number"},
      {"(4,8", "expected `,` or `)`"},
      {"(4,8))", "expected `:`"},
      {"4,8", "expected `:`"},
      {"(4,8):(1)", "shape and strides nest differently"},
      {"((4,8)):(1,4)", "shape and strides nest differently"},
      {"(4,0):(1,4)", "an extent below 1"},
      {"4:1x", "text after the strides"},
      {"99999999999999999999", "a number above 2^48"},
      {"(((((((((4)))))))))", "brackets nested more than 8 deep"},
      {"(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)", "more than 16 leaves"},
  };
  for (const auto& [text, reason] : cases) {
    const LayoutText parsed = parse_layout_text(text.data(), static_cast<int>(text.size()));
    ASSERT_NE(parsed.error, nullptr) << text;
    EXPECT_EQ(parsed.error, reason) << text;
    EXPECT_FALSE(parse_layout(text).has_value()) << text;
  }
  EXPECT_EQ(parse_layout("(4,x)").error().text(),
            "not a layout `(4,x)`: expected a number at character 4");
}

// ---- questions and coordinates ----

constexpr Layout kMap = "((4,8),(2,2)):((32,1),(16,8))"_layout;
static_assert(size(kMap) == 128 && cosize(kMap) == 128 && rank(kMap) == 2 && depth(kMap) == 2);
static_assert(kMap(5, 1) == 49 && kMap(5 + 32 * 1) == 49);
static_assert(mode(kMap, 0) == "(4,8):(32,1)"_layout && size(kMap, 1) == 4);
static_assert(mode("(4,(2,3)):(1,(4,8))"_layout, 1) == "(2,3):(4,8)"_layout);
static_assert(mode("((4)):((1))"_layout, 0) == "(4):(1)"_layout);
static_assert(rank("5:3"_layout) == 1 && depth("5:3"_layout) == 0 && mode("5:3"_layout, 0)(2) == 6);
static_assert(!mode(kMap, 2).valid() && rank(Layout{}) == 0 && size(Layout{}) == 0);
static_assert(cosize("(4,3):(-2,8)"_layout) == 23);

// Structural: equal layouts name the same specialisation.
template <Layout L>
constexpr Index last_index() {
  return L(size(L) - 1);
}
static_assert(&last_index<"(4,2):(1,4)"_layout> == &last_index<compact("(4,2)"_layout)>);

TEST(LayoutCoordinates, LinearEqualsNaturalEqualsPerMode) {
  for (const Layout& layout : small_layouts()) {
    for (Index i = 0; i < size(layout); ++i) {
      const Coord natural = idx2crd(i, layout);
      ASSERT_EQ(crd2idx(natural, layout), layout(i)) << to_text(layout) << " at " << i;
      Coord modes;
      for (Index rest = i; modes.count < rank(layout); ++modes.count) {
        modes.at[modes.count] = rest % size(layout, modes.count);
        rest /= size(layout, modes.count);
      }
      ASSERT_EQ(crd2idx(modes, layout), layout(i)) << to_text(layout) << " at " << i;
    }
  }
}

TEST(LayoutCoordinates, CompileTimeFormAgrees) {
  for (int lane = 0; lane < 32; ++lane) {
    for (int value = 0; value < 4; ++value) {
      ASSERT_EQ(index_at<kMap>(lane, value), kMap(lane, value));
      ASSERT_EQ(index_at<kMap>(lane + 32 * value), kMap(lane + 32 * value));
    }
  }
  constexpr Layout kThree = "(4,(2,3),2):(6,(1,2),24)"_layout;
  EXPECT_EQ(index_at<kThree>(3, 5, 1), kThree(3, 5, 1));
}

TEST(LayoutCoordinates, ModesPutTogetherAgainAreTheLayout) {
  const Layout layout = read("(4,(2,3),2):(6,(1,2),24)");
  EXPECT_EQ(make_layout(mode(layout, 0), mode(layout, 1), mode(layout, 2)), layout);
  EXPECT_EQ(layout(3, 4, 1), 3 * 6 + 0 * 1 + 2 * 2 + 24);
}

TEST(LayoutQuestions, CosizeAndBijectivityByBruteForce) {
  int bijective = 0;
  for (const Layout& layout : small_layouts()) {
    const std::vector<Index> all = sorted_image(layout);
    ASSERT_EQ(cosize(layout), all.back() + 1) << to_text(layout);
    bool onto = true;
    for (Index i = 0; i < size(layout); ++i) onto = onto && all[static_cast<std::size_t>(i)] == i;
    ASSERT_EQ(is_bijective(layout), onto) << to_text(layout);
    bijective += onto ? 1 : 0;
  }
  EXPECT_GT(bijective, 40);
}

// ---- coalesce ----

void expect_coalesced(const Layout& layout) {
  const Layout result = coalesce(layout);
  ASSERT_EQ(image(result), image(layout)) << to_text(layout);
  ASSERT_LE(depth(result), 1);
  for (int i = 0; i < result.leaves; ++i) {
    ASSERT_TRUE(result.extents[i] > 1 || result.leaves == 1) << to_text(result);
    ASSERT_TRUE(i == 0 || result.strides[i] != result.extents[i - 1] * result.strides[i - 1])
        << to_text(result);
  }
}

TEST(LayoutAlgebra, CoalesceKeepsTheFunctionInFewestLeaves) {
  for (const Layout& layout : small_layouts()) expect_coalesced(layout);
  EXPECT_EQ(to_text(coalesce(read("(2,(1,6)):(1,(6,2))"))), "12:1");
}

// ---- composition ----

// True when there was an answer to check.
bool expect_composed(const Layout& a, const Layout& b) {
  const Layout result = composition(a, b);
  if (!result.valid()) return false;
  EXPECT_EQ(size(result), size(b));
  EXPECT_TRUE(rank(result) == rank(b) || depth(b) == 0);  // a bare leaf may become a tuple
  for (Index c = 0; c < size(b); ++c) {
    EXPECT_EQ(result(c), a(b(c))) << to_text(a) << " o " << to_text(b) << " at " << c;
    if (result(c) != a(b(c))) break;
  }
  return true;
}

TEST(LayoutAlgebra, CompositionIsCompositionOfFunctions) {
  const std::vector<Layout> all = small_layouts();
  int checked = 0;
  int in_domain = 0;
  for (const Layout& a : all) {
    for (const Layout& b : all) {
      if (cosize(b) > size(a)) continue;  // the law speaks of b's whole image
      ++in_domain;
      checked += expect_composed(a, b) ? 1 : 0;
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(checked, in_domain / 2);
}

TEST(LayoutAlgebra, CompositionRefinesLeavesInPlace) {
  EXPECT_EQ(to_text(composition(read("(6,2):(8,2)"), read("(4,3):(3,1)"))), "((2,2),3):((24,2),8)");
  EXPECT_EQ(to_text(composition(read("20:2"), read("(5,4):(4,1)"))), "(5,4):(8,2)");
  EXPECT_EQ(to_text(composition(read("(10,2):(16,4)"), read("(5,4):(1,5)"))),
            "(5,(2,2)):(16,(80,4))");
}

TEST(LayoutAlgebra, CompositionThatNoLayoutDescribesIsInvalid) {
  EXPECT_FALSE(composition(read("(4,4):(1,100)"), read("6:1")).valid());  // 0 1 2 3 100 101
  EXPECT_FALSE(composition(read("(4,4):(1,100)"), read("3:3")).valid());  // 0 3 102
  // Each leaf alone would fit, but 3 + 1 carries: 4 of the second argument is 8 of the first.
  EXPECT_FALSE(composition(read("(4,2):(1,8)"), read("(2,3):(3,1)")).valid());
  EXPECT_FALSE(composition(Layout{}, read("3:3")).valid());
}

// ---- complement ----

bool expect_complement(const Layout& layout, Index target) {
  const Layout rest = complement(layout, target);
  if (!rest.valid()) return false;
  const std::vector<Index> mine = image(layout);
  const std::set<Index> owned(mine.begin(), mine.end());
  for (Index i = 1; i < size(rest); ++i) {
    EXPECT_LT(rest(i - 1), rest(i)) << to_text(layout);
    EXPECT_FALSE(owned.contains(rest(i))) << to_text(layout) << " and " << to_text(rest);
  }
  std::set<Index> covered;
  for (const Index a : owned) {
    for (Index i = 0; i < size(rest); ++i) {
      EXPECT_TRUE(covered.insert(a + rest(i)).second) << to_text(layout) << ": " << to_text(rest);
    }
  }
  for (Index i = 0; i < target; ++i) EXPECT_TRUE(covered.contains(i)) << to_text(layout);
  return true;
}

TEST(LayoutAlgebra, ComplementIsDisjointOrderedAndCovers) {
  int checked = 0;
  for (const Layout& layout : small_layouts()) {
    for (const Index target : {1, 7, 24, 36}) checked += expect_complement(layout, target) ? 1 : 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(checked, 1000);
}

TEST(LayoutAlgebra, ComplementExamples) {
  EXPECT_EQ(to_text(complement(read("4:1"), 24)), "6:4");
  EXPECT_EQ(to_text(complement(read("6:4"), 24)), "4:1");
  EXPECT_EQ(to_text(complement(read("(4,6):(1,4)"), 24)), "1:0");
  EXPECT_EQ(to_text(complement(read("4:2"), 24)), "(2,3):(1,8)");
  EXPECT_EQ(to_text(complement(read("(2,4):(1,6)"), 24)), "3:2");
  EXPECT_EQ(to_text(complement(read("(2,2):(1,6)"), 24)), "(3,2):(2,12)");
  EXPECT_FALSE(complement(read("(4,2):(1,2)"), 24).valid());  // overlaps itself
}

// ---- inverses ----

TEST(LayoutAlgebra, RightInverse) {
  for (const Layout& layout : small_layouts()) {
    const Layout inverse = right_inverse(layout);
    ASSERT_TRUE(inverse.valid());
    for (Index i = 0; i < size(inverse); ++i) {
      ASSERT_EQ(layout(inverse(i)), i) << to_text(layout) << " and " << to_text(inverse);
    }
    ASSERT_TRUE(!is_bijective(layout) || size(inverse) == size(layout)) << to_text(layout);
  }
  EXPECT_EQ(to_text(right_inverse(read("(4,8):(8,1)"))), "(8,4):(4,1)");
}

TEST(LayoutAlgebra, LeftInverse) {
  int checked = 0;
  for (const Layout& layout : small_layouts()) {
    const Layout inverse = left_inverse(layout);
    ASSERT_TRUE(!inverse.valid() || is_injective(layout)) << to_text(layout);
    if (!inverse.valid()) continue;
    ++checked;
    for (Index i = 0; i < size(layout); ++i) {
      ASSERT_EQ(inverse(layout(i)), i) << to_text(layout) << " and " << to_text(inverse);
    }
  }
  EXPECT_GT(checked, 150);
  EXPECT_EQ(left_inverse(read("4:2"))(6), 3);
}

// ---- divide and product ----

TEST(LayoutAlgebra, LogicalDivideIsTheTileThenItsRepeats) {
  const std::vector<Layout> all = small_layouts();
  int checked = 0;
  for (const Layout& layout : all) {
    for (const Layout& tiler : all) {
      const Layout rest = complement(tiler, size(layout));
      if (!is_injective(tiler) || size(tiler) * size(rest) != size(layout)) continue;
      const Layout divided = logical_divide(layout, tiler);
      if (!divided.valid()) continue;
      ++checked;
      ASSERT_EQ(sorted_image(divided), sorted_image(layout));
      for (Index i = 0; i < size(tiler); ++i) ASSERT_EQ(divided(i), layout(tiler(i)));
    }
  }
  EXPECT_GT(checked, 1000);
  EXPECT_EQ(to_text(logical_divide(read("(4,2,3):(2,1,8)"), read("4:2"))),
            "((2,2),(2,3)):((4,1),(2,8))");
}

TEST(LayoutAlgebra, LogicalProductRepeatsWithoutOverlap) {
  const std::vector<Layout> all = small_layouts();
  int checked = 0;
  for (const Layout& layout : all) {
    for (const Layout& tiler : {read("6:1"), read("(2,3):(3,1)"), read("3:2")}) {
      const Layout product = logical_product(layout, tiler);
      if (!product.valid() || !is_injective(layout)) continue;
      ++checked;
      ASSERT_EQ(mode(product, 0), layout);
      ASSERT_EQ(size(product), size(layout) * size(tiler));
      ASSERT_TRUE(is_injective(product)) << to_text(layout) << " x " << to_text(tiler);
    }
  }
  EXPECT_GT(checked, 300);
  EXPECT_EQ(to_text(logical_product(read("(2,2):(4,1)"), read("6:1"))),
            "((2,2),(2,3)):((4,1),(2,8))");
}

TEST(LayoutAlgebra, TooManyLeavesIsInvalidAndStaysSo) {
  const Layout ten = read("(2,2,2,2,2,2,2,2,2,2)");
  const Layout twenty = make_layout(ten, ten);
  EXPECT_FALSE(twenty.valid());
  EXPECT_FALSE(coalesce(twenty).valid());
  EXPECT_FALSE(make_layout(twenty, ten).valid());
  EXPECT_EQ(to_text(twenty), "invalid");
}

// ---- swizzles ----

TEST(Swizzles, PermuteEachPeriodAndAreTheirOwnInverse) {
  for (const Swizzle swizzle :
       {Swizzle{0, 4, 3}, Swizzle{1, 4, 3}, Swizzle{2, 4, 3}, Swizzle{3, 4, 3}, Swizzle{2, 0, 5}}) {
    std::set<Index> seen;
    for (Index i = 0; i < 2048; ++i) {
      EXPECT_EQ(swizzle(swizzle(i)), i);
      EXPECT_EQ(swizzle(i) / period(swizzle), i / period(swizzle));
      seen.insert(swizzle(i));
    }
    EXPECT_EQ(seen.size(), 2048U) << to_text(swizzle);
  }
  EXPECT_EQ((Swizzle{3, 4, 3}(5 * 128 + 2 * 16)), 5 * 128 + 7 * 16);
}

}  // namespace
}  // namespace kiln
