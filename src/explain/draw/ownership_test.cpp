#include "explain/draw/ownership.h"

#include <gtest/gtest.h>

#include <set>

#include "explain/draw/palette.h"
#include "layout/print.h"

namespace kiln::explain {
namespace {

using target::Operand;

const target::Mma& k16() { return *target::find_mma("m16n8k16.f32.f16"); }

Index fact(const Cell& cell, std::string_view name) {
  for (const Fact& one : cell.facts) {
    if (one.name == name) return one.value;
  }
  ADD_FAILURE() << "no " << name << " in: " << describe(cell);
  return -1;
}

constexpr Operand kOperands[] = {Operand::kA, Operand::kB, Operand::kC};

// Every element of every operand of every instruction (of those that differ in N alone, one): its
// owner's map leads back to it.
TEST(Ownership, EachElementNamesItsOwner) {
  for (const target::Mma& mma : target::all_mmas()) {
    if (mma.reads_shared && mma.shape.n != 24) continue;
    for (const Operand operand : kOperands) {
      if (!target::has_map(mma, operand)) continue;
      const Picture picture = atom_picture(mma, operand, {});
      ASSERT_EQ(picture.grids.size(), 1U);
      const Grid& grid = picture.grids[0];
      const target::TileExtents tile = target::extents(mma, operand);
      ASSERT_EQ(row_count(grid), tile.rows);
      ASSERT_EQ(col_count(grid), tile.cols);
      // Quad pairs that all hold the tile are named by the first of their lanes, and how many more there are.
      const std::int64_t holders =
          size(target::map_of(mma, operand)) / (std::int64_t{tile.rows} * tile.cols);
      const std::string others = holders == 1 ? "" : format("+{}", holders - 1);
      std::set<std::pair<int, std::string>> seen;
      for (int row = 0; row < tile.rows; ++row) {
        for (int col = 0; col < tile.cols; ++col) {
          const Cell& cell = cell_at(grid, row, col);
          ASSERT_EQ(fact(cell, "row"), row);
          ASSERT_EQ(fact(cell, "col"), col);
          ASSERT_EQ(target::map_of(mma, operand)(fact(cell, "lane"), fact(cell, "value")),
                    row + tile.rows * col);
          ASSERT_EQ(cell.owner, fact(cell, "lane"));
          ASSERT_EQ(cell.label, thread_name(cell.owner) + others);
          ASSERT_LT(fact(cell, "register"), target::registers_of(mma, operand));
          ASSERT_TRUE(seen.insert({cell.owner, cell.detail}).second);
        }
      }
    }
  }
}

// PTX ISA, "Matrix Fragments for mma.m16n8k16", written out: lane 4 * g + t.
TEST(Ownership, IsThePtxFragment) {
  const Grid c = atom_picture(k16(), Operand::kC, {}).grids[0];
  const Grid a = atom_picture(k16(), Operand::kA, {}).grids[0];
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4;
    const int t = lane % 4;
    for (int r = 0; r < 4; ++r) {
      const Cell& cell = cell_at(c, g + 8 * (r / 2), 2 * t + r % 2);
      EXPECT_EQ(cell.owner, lane);
      EXPECT_EQ(cell.detail, std::to_string(r));
    }
    for (int i = 0; i < 8; ++i) {
      const Cell& cell = cell_at(a, g + 8 * (i / 2 % 2), 2 * t + i % 2 + 8 * (i / 4));
      EXPECT_EQ(cell.owner, lane);
      EXPECT_EQ(fact(cell, "register"), i / 2);
    }
  }
}

// PTX ISA, "Register Fragments for wgmma.mma_async.m64n...": warp i of the group has 16 rows from
// 16 * i on, and B has no lanes.
TEST(Ownership, OfAWarpgroupIsThePtxFragment) {
  const target::Mma& mma = *target::find_mma("m64n256k16.f32.f16");
  const Picture picture = atom_picture(mma, std::nullopt, {});
  ASSERT_EQ(picture.grids.size(), 2U);
  EXPECT_EQ(picture.owners.count, 128);
  const Grid& c = picture.grids[1];
  for (int lane = 0; lane < 128; ++lane) {
    for (int r = 0; r < 128; ++r) {
      const Cell& cell = cell_at(c, lane / 32 * 16 + lane % 32 / 4 + 8 * (r / 2 % 2),
                                 8 * (r / 4) + 2 * (lane % 4) + r % 2);
      ASSERT_EQ(cell.owner, lane);
      ASSERT_EQ(cell.detail, std::to_string(r));
    }
  }
  EXPECT_EQ(c.notes.back(), "operand B: 256 x 16 of f16, read from shared memory where it lies");
}

// Side by side, B lies on its side and still tells the element of its own tile.
TEST(Ownership, OperandsLineUpSideBySide) {
  const Picture apart = atom_picture(k16(), std::nullopt, {});
  const Picture beside = atom_picture(k16(), std::nullopt, {.side_by_side = true});
  ASSERT_EQ(apart.grids.size(), 3U);
  ASSERT_EQ(beside.grids.size(), 3U);
  const Grid& b = beside.grids[1];
  EXPECT_EQ(row_count(b), row_count(apart.grids[1]) * 2);
  EXPECT_EQ(b.cols.name, "n");
  EXPECT_EQ(col_count(b), col_count(beside.grids[2]));
  EXPECT_EQ(cell_at(b, 3, 1).facts, cell_at(apart.grids[1], 1, 3).facts);
  EXPECT_EQ(b.place.col, beside.grids[2].place.col);
  EXPECT_EQ(beside.grids[0].place.row, beside.grids[2].place.row);
}

TEST(Ownership, TablesSayTheSameByThread) {
  const Picture picture = atom_picture(k16(), Operand::kA, {.grids = true, .tables = true});
  ASSERT_EQ(picture.grids.size(), 2U);
  const Grid& table = picture.grids[1];
  EXPECT_TRUE(table.secondary);
  EXPECT_EQ(row_count(table), 32);
  EXPECT_EQ(col_count(table), 8);
  EXPECT_EQ(cell_at(table, 5, 6).label, "9,10");
  for (const Cell& cell : table.cells) {
    const Cell& element = cell_at(picture.grids[0], static_cast<int>(fact(cell, "row")),
                                  static_cast<int>(fact(cell, "col")));
    EXPECT_EQ(cell.owner, element.owner);
    EXPECT_EQ(fact(cell, "value"), fact(element, "value"));
  }
}

// ldmatrix gives lane L the elements (L / 4, 2 * (L % 4) + half) of each matrix, and takes the
// address of row r of matrix i from lane 8 * i + r.
TEST(Ownership, MatrixLoads) {
  const Picture picture = matrix_load_picture(*target::find_copy("ldmatrix.x4"), {});
  ASSERT_EQ(picture.grids.size(), 4U);
  for (int matrix = 0; matrix < 4; ++matrix) {
    const Grid& grid = picture.grids[static_cast<std::size_t>(matrix)];
    for (int row = 0; row < 8; ++row) {
      for (int col = 0; col < 8; ++col) {
        const Cell& cell = cell_at(grid, row, col);
        EXPECT_EQ(cell.owner, 4 * row + col / 2);
        EXPECT_EQ(fact(cell, "value"), 2 * matrix + col % 2);
        EXPECT_EQ(fact(cell, "address_lane"), 8 * matrix + row);
        EXPECT_EQ(fact(cell, "col"), col);
      }
    }
  }
  const Picture trans = matrix_load_picture(*target::find_copy("ldmatrix.x1.trans"), {});
  EXPECT_EQ(cell_at(trans.grids[0], 3, 6).owner, 4 * 6 + 3 / 2);
}

TEST(Ownership, ElementsWithoutAndWithSeveralOwners) {
  const Grid even = tile_picture(*parse_layout("(2,2):(2,4)"), {2, 4}, {}).grids[0];
  EXPECT_EQ(cell_at(even, 0, 1).label, "T01");
  EXPECT_EQ(cell_at(even, 1, 0).label, "-");
  EXPECT_EQ(cell_at(even, 1, 0).owner, -1);
  EXPECT_EQ(fact(cell_at(even, 1, 0), "lane"), -1);
  const Grid shared = tile_picture(*parse_layout("(4,2):(0,1)"), {2, 1}, {}).grids[0];
  EXPECT_EQ(cell_at(shared, 0, 0).label, "T00+3");
}

TEST(Palette, ColoursDifferAndAreLightEnoughForBlackText) {
  std::set<std::string> seen;
  for (int i = 0; i < kColours; ++i) {
    const std::string text = hex(i);
    ASSERT_EQ(text.size(), 6U);
    EXPECT_TRUE(seen.insert(text).second) << i;
    const auto part = [&](std::size_t at) { return std::stoi(text.substr(at, 2), nullptr, 16); };
    EXPECT_GT((2126 * part(0) + 7152 * part(2) + 722 * part(4)) / 10000, 110) << text;
  }
  EXPECT_EQ(ramp_colour(0, 15), kCategories);
  EXPECT_EQ(ramp_colour(15, 15), kColours - 1);
  EXPECT_EQ(ramp_colour(7, 15), kCategories + 7);
}

}  // namespace
}  // namespace kiln::explain
