#include "explain/draw/print.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "explain/draw/memory.h"
#include "explain/draw/ownership.h"
#include "explain/draw/page.h"
#include "layout/print.h"

namespace kiln::explain {
namespace {

using target::Operand;

Picture accumulator() {
  return atom_picture(*target::find_mma("m16n8k16.f32.f16"), Operand::kC, {});
}

TEST(Text, AccumulatorGridIsTheHardwares) {
  const std::string text = to_text(accumulator());
  EXPECT_NE(text.find("m16n8k16.f32.f16, operand C: 16 x 8 of f32, 4 values a lane\n"
                      "\n"
                      "      n=0  n=1  n=2  n=3  n=4  n=5  n=6  n=7\n"
                      "m=0   T00  T00  T01  T01  T02  T02  T03  T03\n"
                      "m=1   T04  T04  T05  T05  T06  T06  T07  T07\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("m=7   T28  T28  T29  T29  T30  T30  T31  T31\n"
                      "m=8   T00  T00  T01  T01  T02  T02  T03  T03\n"),
            std::string::npos);
  EXPECT_NE(text.find("m=8   T00.2  T00.3  T01.2  T01.3"), std::string::npos);
  EXPECT_NE(text.find("(lane, value) -> m + 16 * n: ((4,8),(2,2)):((32,1),(16,8))\n"),
            std::string::npos);
}

TEST(Text, OperandsAreLabelledByTheirOwnDimensions) {
  const target::Mma& mma = *target::find_mma("m16n8k16.f32.f16");
  EXPECT_NE(to_text(atom_picture(mma, Operand::kA, {})).find("k=15\nm=0 "), std::string::npos);
  EXPECT_NE(to_text(atom_picture(mma, Operand::kB, {})).find("k=15\nn=0 "), std::string::npos);
}

TEST(Json, FieldsOfAnOperand) {
  for (const target::Mma& mma : target::all_mmas()) {
    if (mma.reads_shared && mma.shape.n != 8) continue;  // one of those that differ in N alone
    nlohmann::json json;
    for (const Operand operand : {Operand::kA, Operand::kB, Operand::kC}) {
      if (!target::has_map(mma, operand)) continue;
      json = nlohmann::json::parse(to_json(atom_picture(mma, operand, {})));
      EXPECT_EQ(json["atom"], mma.name);
      EXPECT_EQ(json["operand"], target::name(operand));
      EXPECT_EQ(json["layout"], to_text(target::map_of(mma, operand)));
      EXPECT_EQ(json["lanes"], mma.lanes);
      EXPECT_EQ(json["elements"][1][0]["row"], 1);
      // The second row begins in the next quad, or, where quad pairs hold the tile, in the next lane.
      const bool is_of_quad_pairs = mma.shape.k == 4 && mma.a == DType::kF16;
      EXPECT_EQ(json["elements"][1][0]["lane"], is_of_quad_pairs ? 1 : 4);
    }
    const auto all = nlohmann::json::parse(to_json(atom_picture(mma, std::nullopt, {})));
    ASSERT_EQ(all["operands"].size(), mma.reads_shared ? 2U : 3U);
    EXPECT_EQ(all["operands"].back(), json);  // C, the last
  }
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t out = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++out;
  return out;
}

TEST(Printers, DrawEachCellOnceAndTheSameWayTwice) {
  const Picture picture = accumulator();
  EXPECT_EQ(count(to_svg(picture), "<g><title>row "), 128U);
  EXPECT_EQ(count(to_html(picture), "<td class=\"c"), 128U);
  EXPECT_EQ(count(to_latex(picture), "\n\\cell{"), 128U);
  for (const auto print : {to_text, to_json, to_svg, to_html, to_latex}) {
    EXPECT_EQ(print(picture), print(accumulator()));
  }
}

TEST(Latex, SpecialCharactersAreEscaped) {
  Picture picture = index_picture("50% {a_b} ~^\\#&$ <1>", *parse_layout("1:1"));
  EXPECT_NE(to_latex(picture).find("{50\\% \\{a\\_b\\} \\textasciitilde{}\\textasciicircum{}"
                                   "\\textbackslash{}\\#\\&\\$ \\textless{}1\\textgreater{}}"),
            std::string::npos);
}

// Nothing overlaps: boxes of one row do not reach into the next column, nor texts past the page.
TEST(Page, GridsStandApart) {
  const Picture picture = atom_picture(*target::find_mma("m16n8k16.f32.f16"), std::nullopt,
                                       {.side_by_side = true, .tables = true});
  const Page page = lay_out(picture);
  for (std::size_t i = 0; i < picture.grids.size(); ++i) {
    const auto right = [&](std::size_t at) {
      return page.boxes[at].cells.x + col_count(picture.grids[at]) * page.cell_width;
    };
    const auto bottom = [&](std::size_t at) {
      return page.boxes[at].cells.y + row_count(picture.grids[at]) * page.cell_height;
    };
    EXPECT_LE(right(i), page.width);
    EXPECT_LE(bottom(i), page.height);
    for (std::size_t k = 0; k < i; ++k) {
      const bool apart = right(i) <= page.boxes[k].title.x || right(k) <= page.boxes[i].title.x ||
                         bottom(i) <= page.boxes[k].title.y || bottom(k) <= page.boxes[i].title.y;
      EXPECT_TRUE(apart) << i << " and " << k;
    }
  }
  EXPECT_EQ(page.boxes[0].cells.y, page.boxes[4].cells.y);  // A and C
  EXPECT_EQ(page.boxes[2].cells.x, page.boxes[4].cells.x);  // B and C
}

}  // namespace
}  // namespace kiln::explain
