#include "target/fragment.h"

#include <gtest/gtest.h>

#include "layout/print.h"

namespace kiln::target {
namespace {

// Every element of the tile is where the atom's own map puts it within the atom that covers it.
void expect_tiled(const Mma& mma, Operand operand, int rows, int cols) {
  const Fragment fragment = fragment_layout(mma, operand, rows, cols);
  const TileExtents atom = extents(mma, operand);
  const int atom_values = values_of(mma, operand);
  ASSERT_EQ(fragment.values * mma.lanes, rows * cols);
  for (int lane = 0; lane < mma.lanes; ++lane) {
    for (int value = 0; value < fragment.values; ++value) {
      const int rep = value / atom_values;
      const auto local = static_cast<int>(map_of(mma, operand)(lane, value % atom_values));
      const Element expected = {
          local % atom.rows + atom.rows * (rep % fragment.reps_rows),
          local / atom.rows + atom.cols * (rep / fragment.reps_rows),
      };
      const Element element = element_of(fragment, lane, value);
      ASSERT_EQ(element, expected) << mma.name << " " << rows << "x" << cols;
      ASSERT_EQ(owner_of(fragment, element.row, element.col), (Owner{lane, value}));
    }
  }
}

// Of rows that differ in N alone, the narrowest and the widest.
bool is_outermost(const Mma& row) {
  return !row.reads_shared || row.shape.n == 8 || row.shape.n == 256;
}

TEST(Fragments, RepeatTheAtomForEveryRowAndRequest) {
  for (const Mma& row : all_mmas()) {
    if (!is_outermost(row)) continue;
    for (const MmaShape& tile : row.tiles) {
      if (tile == MmaShape{}) continue;
      for (const Operand operand : {Operand::kA, Operand::kB, Operand::kC}) {
        if (!has_map(row, operand)) continue;
        TileExtents whole = extents(tile, operand);
        if (row.sparse && operand == Operand::kA) whole.cols /= 2;
        expect_tiled(row, operand, whole.rows, whole.cols);
      }
    }
  }
}

TEST(Fragments, RepeatBothWaysInOrder) {
  const Mma& mma = *find_mma("m16n8k16.f32.f16");
  expect_tiled(mma, Operand::kC, 48, 24);
  expect_tiled(mma, Operand::kB, 64, 32);
  const Fragment fragment = fragment_layout(mma, Operand::kC, 48, 24);
  EXPECT_EQ(fragment.reps_rows, 3);
  EXPECT_EQ(fragment.reps_cols, 3);
  EXPECT_EQ(first_value(fragment, 2, 1), 4 * (2 + 3 * 1));
  EXPECT_EQ(element_of(fragment, 0, first_value(fragment, 2, 1)), (Element{32, 8}));
}

// The language's closed form (section 14.10) for an accumulator of one warp.
TEST(Fragments, AccumulatorAgreesWithTheLanguagesFormula) {
  const Fragment fragment = fragment_layout(*find_mma("m16n8k16.f32.f16"), Operand::kC, 16, 16);
  EXPECT_EQ(to_text(fragment.tv), "((4,8),(2,2,2)):((32,1),(16,8,128))");
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) {
      const Owner expected = {(i % 8) * 4 + (j % 8) / 2, (j / 8) * 4 + ((i % 16) / 8) * 2 + j % 2};
      ASSERT_EQ(owner_of(fragment, i, j), expected) << i << ", " << j;
    }
  }
}

// The same formula for one of a warpgroup, whose warps have 16 rows each.
TEST(Fragments, AccumulatorOfAWarpgroupAgreesWithTheLanguagesFormula) {
  const Fragment fragment = fragment_layout(*find_mma("m64n24k16.f32.f16"), Operand::kC, 64, 24);
  ASSERT_EQ(fragment.lanes, 128);
  for (int i = 0; i < 64; ++i) {
    for (int j = 0; j < 24; ++j) {
      const Owner expected = {i / 16 * 32 + (i % 8) * 4 + (j % 8) / 2,
                              (j / 8) * 4 + ((i % 16) / 8) * 2 + j % 2};
      ASSERT_EQ(owner_of(fragment, i, j), expected) << i << ", " << j;
    }
  }
}

// A of several instructions along K, as `mma.load.frag` holds it.
TEST(Fragments, OperandOfAWarpgroupRepeatsAlongK) {
  expect_tiled(*find_mma("m64n8k16.f32.f16"), Operand::kA, 64, 48);
  expect_tiled(*find_mma("m64n8k8.f32.tf32"), Operand::kA, 64, 16);
  expect_tiled(*find_mma("m64n8k32.s32.s8"), Operand::kA, 64, 64);
}

// Columns `first` to `first + cols` are the part's own, value by value, and found again.
void expect_columns(const Fragment& whole, int first, int cols) {
  const auto part = columns_of(whole, first, cols);
  ASSERT_TRUE(part.has_value()) << whole.cols << ": " << first << ", " << cols;
  const Fragment& fragment = part->fragment;
  EXPECT_EQ(fragment.rows, whole.rows);
  EXPECT_EQ(fragment.cols, cols);
  ASSERT_EQ(fragment.values * whole.cols, whole.values * cols);
  for (int lane = 0; lane < whole.lanes; ++lane) {
    for (int value = 0; value < fragment.values; ++value) {
      const Element there = element_of(whole, lane, part->first_value + value);
      const Element here = element_of(fragment, lane, value);
      ASSERT_EQ(there, (Element{here.row, here.col + first})) << first << ", " << cols;
      ASSERT_EQ(owner_of(fragment, here.row, here.col), (Owner{lane, value}));
    }
  }
}

TEST(FragmentColumns, OfAWarpgroupsAccumulatorAreARunOfRegisters) {
  for (const char* name : {"m64n8k16.f32.f16", "m64n24k16.f16.f16", "m64n96k32.s32.s8"}) {
    const Mma& mma = *find_mma(name);
    const Fragment whole = fragment_layout(mma, Operand::kC, 64, mma.shape.n);
    for (int cols = 8; cols <= whole.cols; cols += 8) {
      for (int first = 0; first + cols <= whole.cols; first += 8)
        expect_columns(whole, first, cols);
    }
  }
}

TEST(FragmentColumns, HalvesOfTheWidestAccumulator) {
  const Fragment whole = fragment_layout(*find_mma("m64n256k16.f32.bf16"), Operand::kC, 64, 256);
  expect_columns(whole, 0, 256);
  expect_columns(whole, 0, 128);
  expect_columns(whole, 128, 128);
  EXPECT_EQ(columns_of(whole, 128, 128)->first_value, 64);
  EXPECT_EQ(columns_of(whole, 192, 64)->first_value, 96);
}

// Two atoms down the rows: their values come before the next columns'.
TEST(FragmentColumns, OfAWarpsAccumulatorOfSeveralAtoms) {
  const Fragment whole = fragment_layout(*find_mma("m16n8k16.f32.f16"), Operand::kC, 32, 24);
  expect_columns(whole, 8, 16);
  EXPECT_EQ(columns_of(whole, 8, 8)->first_value, 8);
}

TEST(FragmentColumns, AreNothingWhereLanesHoldNoRunOfThem) {
  const Fragment whole = fragment_layout(*find_mma("m64n24k16.f32.f16"), Operand::kC, 64, 24);
  EXPECT_FALSE(columns_of(whole, 0, 4).has_value()) << "half of a matrix";
  EXPECT_FALSE(columns_of(whole, 0, 12).has_value());
  EXPECT_FALSE(columns_of(whole, 4, 8).has_value()) << "between two matrices";
  EXPECT_FALSE(columns_of(whole, 2, 8).has_value());
  EXPECT_FALSE(columns_of(whole, 0, 1).has_value()) << "half a value";
  EXPECT_FALSE(columns_of(whole, 1, 8).has_value());
}

TEST(FragmentColumns, AreNothingOutside) {
  const Fragment whole = fragment_layout(*find_mma("m64n24k16.f32.f16"), Operand::kC, 64, 24);
  EXPECT_FALSE(columns_of(whole, 24, 8).has_value());
  EXPECT_FALSE(columns_of(whole, 16, 16).has_value());
  EXPECT_FALSE(columns_of(whole, 0, 32).has_value());
  EXPECT_FALSE(columns_of(whole, -8, 8).has_value());
  EXPECT_FALSE(columns_of(whole, 8, 0).has_value());
}

TEST(FragmentsDeathTest, RefuseATileThatIsNoMultiple) {
  EXPECT_DEATH((void)fragment_layout(*find_mma("m16n8k16.f32.f16"), Operand::kC, 16, 12),
               "16x12 tile, which is no multiple of 16x8");
}

}  // namespace
}  // namespace kiln::target
