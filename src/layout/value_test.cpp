// What a layout answers: sizes, modes, coordinates, and the same at compile time.
#include <gtest/gtest.h>

#include "layout/family.h"
#include "layout/indices.h"

namespace kiln {
namespace {

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

// The linear coordinate, one number a leaf and one number a mode name the same element.
void expect_coordinates_agree(const Layout& layout) {
  for (Index i = 0; i < size(layout); ++i) {
    const Coord natural = idx2crd(i, layout);
    Coord modes;
    for (Index rest = i; modes.count < rank(layout); ++modes.count) {
      modes.at[modes.count] = rest % size(layout, modes.count);
      rest /= size(layout, modes.count);
    }
    ASSERT_TRUE(crd2idx(natural, layout) == layout(i) && crd2idx(modes, layout) == layout(i))
        << to_text(layout) << " at " << i;
  }
}

// The modes, put together again, are the layout.
void expect_modes_rebuild(const Layout& layout) {
  Index product = 1;
  detail::LayoutBuilder out;
  for (int i = 0; i < rank(layout); ++i) {
    product *= size(layout, i);
    out.append(mode(layout, i));
  }
  ASSERT_EQ(product, size(layout)) << to_text(layout);
  ASSERT_EQ(out.done_tuple(), depth(layout) == 0 ? make_layout(layout) : layout);
}

TEST(LayoutValue, CoordinatesAgreeForEveryNesting) {
  for_each_shape(kSizeMax, kLeavesInFamily, [](const Layout& flat) {
    for (const Layout& layout : groupings(flat)) expect_coordinates_agree(layout);
  });
  expect_coordinates_agree(read("((3,(2,2)),2):((4,(1,2)),12)"));
  expect_coordinates_agree(read("((2,3),(4,1)):((1,2),(0,5))"));
  expect_coordinates_agree(read("(4,(2,3)):(-1,(8,-16))"));
}

TEST(LayoutValue, ModesPutTogetherAgainAreTheLayout) {
  for_each_layout(kSizeMax, 2, [](const Layout& flat) {
    for (const Layout& layout : groupings(flat)) expect_modes_rebuild(layout);
  });
  for_each_shape(kSizeMax, kLeavesInFamily, [](const Layout& flat) {
    for (const Layout& layout : groupings(flat)) expect_modes_rebuild(layout);
  });
  expect_modes_rebuild(read("((3,(2,2)),2):((4,(1,2)),12)"));
  expect_modes_rebuild(read("(((5))):(((3)))"));
}

TEST(LayoutValue, AllIndicesAreThoseOfEachNumber) {
  for_each_layout(kSizeMax, kLeavesInFamily, [](const Layout& layout) {
    ASSERT_EQ(indices_of(layout), image(layout)) << to_text(layout);
  });
  EXPECT_EQ(indices_of(read("((2,2),3):((-1,8),2)")), image(read("((2,2),3):((-1,8),2)")));
  EXPECT_TRUE(indices_of(Layout{}).empty());
}

TEST(LayoutValue, CosizeAndBijectivityByBruteForce) {
  int bijective = 0;
  for_each_layout(kSizeMax, kLeavesInFamily, [&](const Layout& layout) {
    const std::vector<Index> all = sorted_image(layout);
    bool onto = true;
    for (Index i = 0; i < size(layout); ++i) onto = onto && all[static_cast<std::size_t>(i)] == i;
    ASSERT_EQ(cosize(layout), all.back() + 1) << to_text(layout);
    ASSERT_EQ(is_bijective(layout), onto) << to_text(layout);
    bijective += onto ? 1 : 0;
  });
  EXPECT_GT(bijective, 100);
}

TEST(LayoutValue, CompileTimeFormAgrees) {
  for (int lane = 0; lane < 32; ++lane) {
    for (int value = 0; value < 4; ++value) {
      ASSERT_EQ(index_at<kMap>(lane, value), kMap(lane, value));
      ASSERT_EQ(index_at<kMap>(lane + 32 * value), kMap(lane + 32 * value));
    }
  }
  constexpr Layout kThree = "(4,(2,3),2):(6,(1,2),24)"_layout;
  EXPECT_EQ(index_at<kThree>(3, 5, 1), kThree(3, 5, 1));
  EXPECT_EQ(kThree(3, 4, 1), 3 * 6 + 0 * 1 + 2 * 2 + 24);
}

TEST(LayoutValue, NothingHasAnExtentBelowOne) {
  EXPECT_FALSE(make_layout(0, 1).valid());
  EXPECT_FALSE(make_layout(-4, 1).valid());
  EXPECT_FALSE(make_tiler(128, 0).valid());
  EXPECT_FALSE(complement(read("4:1"), 0).valid());
  EXPECT_FALSE(zipped_divide(read("(128,64)"), make_tiler(0, 16)).valid());
}

TEST(LayoutValue, TooManyLeavesIsInvalidAndStaysSo) {
  const Layout ten = read("(2,2,2,2,2,2,2,2,2,2)");
  const Layout twenty = make_layout(ten, ten);
  EXPECT_FALSE(twenty.valid());
  EXPECT_FALSE(coalesce(twenty).valid());
  EXPECT_FALSE(flatten(twenty).valid());
  EXPECT_FALSE(group(twenty, 0, 1).valid());
  EXPECT_FALSE(make_layout(twenty, ten).valid());
  EXPECT_FALSE(composition(ten, twenty).valid());
  EXPECT_FALSE(composition(twenty, ten).valid());
  EXPECT_FALSE(left_inverse(twenty).valid());
  EXPECT_FALSE(right_inverse(twenty).valid());
  EXPECT_FALSE(max_common_layout(ten, twenty).valid());
  EXPECT_FALSE(zipped_divide(twenty, make_tiler(2)).valid());
  EXPECT_FALSE(flat_divide(ten, Tiler{}).valid());
  EXPECT_FALSE(blocked_product(twenty, ten).valid());
  EXPECT_FALSE(slice(make_coord(0, 1), twenty).layout.valid());
  EXPECT_FALSE(local_tile(twenty, make_tiler(2), make_coord(0)).layout.valid());
  EXPECT_FALSE(local_partition(twenty, "4:1"_layout, 0).layout.valid());
  EXPECT_FALSE(upcast(twenty, 2).valid());
  EXPECT_FALSE(downcast(twenty, 2).valid());
}

}  // namespace
}  // namespace kiln
