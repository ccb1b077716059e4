// Layouts as text: what is written is read back, and what cannot be read says why.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "layout/family.h"

namespace kiln {
namespace {

TEST(LayoutText, RoundTripsForEveryNesting) {
  for_each_layout(kSizeMax, 2, [](const Layout& flat) {
    for (const Layout& layout : groupings(flat)) ASSERT_EQ(read(to_text(layout)), layout);
  });
  for_each_shape(kSizeMax, kLeavesInFamily, [](const Layout& flat) {
    for (const Layout& layout : groupings(flat)) {
      ASSERT_EQ(read(to_text(layout)), layout);
      ASSERT_EQ(compact(read(shape_to_text(layout))), layout);
    }
  });
}

TEST(LayoutText, LeavesOutSpaces) {
  EXPECT_EQ(to_text(read("( 4 , (2,3) ) : (-1,(8, 16))")), "(4,(2,3)):(-1,(8,16))");
  EXPECT_EQ(to_text(read("((4,8),2)")), "((4,8),2):((1,4),32)");
  EXPECT_EQ(to_text(Layout{}), "invalid");
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
      {"(1000000000,1000000000)", "a size above 2^48"},
      {"(2,3):(1,200000000000000)", "a size or an index above 2^48"},
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

TEST(SwizzledText, RoundTripsAndSaysWhatIsWrong) {
  for (const char* text : {"Swizzle<3,4,3> o (8,128):(128,1)", "Swizzle<2,0,-2> o 64:1", "7:2"}) {
    const Result<Swizzled> parsed = parse_swizzled(text);
    ASSERT_TRUE(parsed.has_value()) << text;
    EXPECT_EQ(to_text(*parsed), text);
  }
  const std::map<std::string, std::string> cases = {
      {"Swizzle<3,4> o 8:1", "expected `Swizzle<bits,base,shift> o `"},
      {"Swizzle<3,4,3>8:1", "expected `Swizzle<bits,base,shift> o `"},
      {"Swizzle<3,4,2> o 8:1", "a swizzle that shifts by less than its bits"},
      {"Swizzle<-1,4,2> o 8:1", "a negative number of bits"},
      {"Swizzle<3,40,9> o 8:1", "a swizzle above bit 48"},
      {"Swizzle<3,4,3> o 8:x", "expected a number"},
      {"Swizzle", "expected a number"},
  };
  for (const auto& [text, reason] : cases) {
    const SwizzledText parsed = parse_swizzled_text(text.data(), static_cast<int>(text.size()));
    ASSERT_NE(parsed.error, nullptr) << text;
    EXPECT_EQ(parsed.error, reason) << text;
    EXPECT_FALSE(parse_swizzled(text).has_value()) << text;
  }
  EXPECT_EQ(parse_swizzled("Swizzle<3,4,3> o 8:x").error().text(),
            "not a layout `Swizzle<3,4,3> o 8:x`: expected a number at character 20");
}

// Whatever the bytes, reading ends, and what was read is written and read back as the same.
TEST(LayoutText, ReadsAnyBytesOrSaysWhyNot) {
  constexpr std::string_view kPieces[] = {"(",
                                          ")",
                                          ",",
                                          ":",
                                          "-",
                                          "0",
                                          "1",
                                          "2",
                                          "7",
                                          "12",
                                          "64",
                                          " ",
                                          "x",
                                          "o",
                                          "<",
                                          ">",
                                          "Swizzle<3,4,3> o "};
  constexpr int kTexts = 20000;
  std::mt19937 random(20260501);
  int layouts = 0;
  for (int i = 0; i < kTexts; ++i) {
    std::string text = i % 2 == 0 ? "" : "((4,8),(2,2)):((32,1),(16,8))";
    const std::size_t edits = 1 + random() % 12;
    for (std::size_t edit = 0; edit < edits; ++edit) {
      const std::string_view piece = kPieces[random() % std::size(kPieces)];
      const std::size_t at = random() % (text.size() + 1);
      text.replace(at, random() % 2, piece);
    }
    const Result<Swizzled> parsed = parse_swizzled(text);
    if (!parsed) {
      ASSERT_FALSE(parsed.error().text().empty());
      continue;
    }
    ++layouts;
    const Result<Swizzled> again = parse_swizzled(to_text(*parsed));
    ASSERT_TRUE(again.has_value()) << text;
    ASSERT_EQ(again->layout, parsed->layout) << text;
  }
  EXPECT_GT(layouts, kTexts / 50);
}

Layout random_leaf(std::mt19937& random, Index extents, Index strides) {
  const auto below = [&](Index end) { return static_cast<Index>(random()) % end; };
  const Index extent = 1 + below(extents);
  return make_layout(extent, below(strides) - 20);
}

TEST(LayoutText, RandomLayoutsRoundTrip) {
  std::mt19937 random(7);
  for (int i = 0; i < 5000; ++i) {
    Layout layout = random_leaf(random, 9, 99);
    while (depth(layout) < 5 && layout.leaves < 9 && random() % 6 != 0) {
      const Layout other = random_leaf(random, 5, 64);
      layout = random() % 2 == 0 ? make_layout(layout, other) : make_layout(other, layout, other);
      layout = random() % 5 == 0 ? flatten(layout) : layout;
    }
    ASSERT_EQ(read(to_text(layout)), layout);
  }
}

TEST(TilerText, ListsTheTiles) {
  EXPECT_EQ(to_text(make_tiler(128, "(2,4):(1,8)"_layout)), "<128:1, (2,4):(1,8)>");
  EXPECT_EQ(to_text(make_tiler("(2,4):(1,8)"_layout)), "<(2,4):(1,8)>");
  EXPECT_EQ(to_text(Tiler{}), "invalid");
}

TEST(LayoutTable, ShowsTheIndices) {
  EXPECT_EQ(layout_table("(2,3):(3,1)"_layout),
            "     0   1   2\n"
            "   +---+---+---+\n"
            " 0 | 0 | 1 | 2 |\n"
            "   +---+---+---+\n"
            " 1 | 3 | 4 | 5 |\n"
            "   +---+---+---+\n");
  EXPECT_EQ(layout_table("2:10"_layout),
            "      0\n"
            "   +----+\n"
            " 0 |  0 |\n"
            "   +----+\n"
            " 1 | 10 |\n"
            "   +----+\n");
  EXPECT_EQ(layout_table(composition(Swizzle{1, 0, 1}, "((2),(2)):((2),(1))"_layout)),
            "     0   1\n"
            "   +---+---+\n"
            " 0 | 0 | 1 |\n"
            "   +---+---+\n"
            " 1 | 3 | 2 |\n"
            "   +---+---+\n");
  EXPECT_EQ(layout_table("(2,2,2)"_layout), "");
  EXPECT_EQ(layout_table(Layout{}), "");
}

}  // namespace
}  // namespace kiln
