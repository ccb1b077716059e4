#include "target/map.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "layout/print.h"

namespace kiln::target {
namespace {

const Mma& k16() { return *find_mma("m16n8k16.f32.f16"); }

// As measured on the hardware: a lane owns two neighbours, four lanes fill a row of eight.
TEST(MapText, AccumulatorGridIsTheHardwares) {
  const std::string text = map_text(k16(), Operand::kC);
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

TEST(MapText, OperandsAreLabelledByTheirOwnDimensions) {
  EXPECT_NE(map_text(k16(), Operand::kA).find("k=15\nm=0 "), std::string::npos);
  EXPECT_NE(map_text(k16(), Operand::kB).find("k=15\nn=0 "), std::string::npos);
}

TEST(MapText, ElementsNobodyOwnsShowAsDashes) {
  const Layout even = *parse_layout("(2,2):(2,4)");
  EXPECT_EQ(grid_text(even, 2, 4, {"m", "n"}, true),
            "     n=0    n=1    n=2    n=3\n"
            "m=0  T00.0  T01.0  T00.1  T01.1\n"
            "m=1  -      -      -      -\n");
}

TEST(MapJson, EachElementNamesItsOwner) {
  for (const Mma& mma : all_mmas()) {
    for (const Operand operand : {Operand::kA, Operand::kB, Operand::kC}) {
      const nlohmann::json json = nlohmann::json::parse(map_json(mma, operand));
      EXPECT_EQ(json["atom"], mma.name);
      EXPECT_EQ(json["layout"], to_text(map_of(mma, operand)));
      const TileExtents tile = extents(mma.shape, operand);
      ASSERT_EQ(json["elements"].size(), static_cast<std::size_t>(tile.rows));
      for (const auto& line : json["elements"]) {
        ASSERT_EQ(line.size(), static_cast<std::size_t>(tile.cols));
        for (const auto& cell : line) {
          const Index index =
              map_of(mma, operand)(cell["lane"].get<Index>(), cell["value"].get<Index>());
          ASSERT_EQ(index, cell["row"].get<int>() + tile.rows * cell["col"].get<int>());
          ASSERT_LT(cell["register"], registers_of(mma, operand));
        }
      }
    }
  }
}

TEST(Atoms, AreListedForEveryArchitecture) {
  for (const Arch& arch : all_archs()) {
    const std::string text = atoms_text(&arch);
    const nlohmann::json json = nlohmann::json::parse(atoms_json(&arch));
    for (const Mma& mma : all_mmas()) {
      const bool has = mma.min_arch <= arch.capability;
      EXPECT_EQ(text.find(mma.name) != std::string::npos, has);
      const auto named = [&](const nlohmann::json& row) { return row["name"] == mma.name; };
      EXPECT_EQ(std::any_of(json.begin(), json.end(), named), has);
    }
  }
  EXPECT_NE(atoms_text(nullptr).find("16x16x16, 32x8x16, 16x8x16"), std::string::npos);
}

}  // namespace
}  // namespace kiln::target
