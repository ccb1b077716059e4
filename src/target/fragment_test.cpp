#include "target/fragment.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>

#include "layout/print.h"

namespace kiln::target {
namespace {

// Every element of the tile is where the atom's own map puts it within the atom that covers it.
void expect_tiled(const Mma& mma, Operand operand, int rows, int cols) {
  const Fragment fragment = fragment_layout(mma, operand, rows, cols);
  const TileExtents atom = extents(mma, operand);
  const int atom_values = values_of(mma, operand);
  const bool repeats = !repeating_digits(fragment).empty();  // in each quad pair
  ASSERT_EQ(fragment.values * mma.lanes, rows * cols * (repeats ? 4 : 1));
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
      if (repeats) continue;
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

// The language's formula for the accumulator of a warpgroup, whose warps have 16 rows each.
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

// --- tiles that no instruction names

struct Extents2 {
  int rows;
  int cols;
};
constexpr Extents2 kTiles[] = {{1, 1},   {3, 5},    {1, 4},    {2, 64},   {4, 96},  {6, 100},
                               {64, 1},  {1, 4096}, {96, 64},  {64, 128}, {7, 32},  {128, 8},
                               {5, 640}, {16, 48},  {1, 1000}, {100, 3},  {48, 100}};
constexpr int kThreads[] = {32, 64, 96, 128, 160, 256, 384, 512};

template <class Law>
void for_each_spread(Law law) {
  for (const Extents2& tile : kTiles) {
    for (const int lanes : kThreads) {
      for (const int run : {1, 2, 4, 8, 16}) {
        SCOPED_TRACE(format("{}x{} over {} lanes, runs of {}", tile.rows, tile.cols, lanes, run));
        law(fragment_of(spread(tile.rows, tile.cols, lanes, run), tile.rows, tile.cols), lanes,
            run);
      }
    }
  }
}

struct SpreadOver {
  int lanes;
  int run;
  std::optional<int> within;
};

// The same tiles, padded where that pays.
template <class Law>
void for_each_padded(Law law) {
  for (const Extents2& tile : kTiles) {
    for (const int lanes : kThreads) {
      for (const int run : {1, 4, 16}) {
        for (const std::optional<int> within : {std::optional<int>(), {0}, {1}}) {
          SCOPED_TRACE(format("{}x{} over {} lanes, runs of {}, within {}", tile.rows, tile.cols,
                              lanes, run, within.value_or(-1)));
          const Fragment padded = spread_padded(tile.rows, tile.cols, lanes, run, within);
          law(padded, tile, SpreadOver{lanes, run, within});
        }
      }
    }
  }
}

// The layouts that accumulators have, of which those of the next tests are made.
std::vector<Fragment> accumulators() {
  std::vector<Fragment> out;
  const auto add = [&](const char* name, int rows, int cols) {
    out.push_back(fragment_layout(*find_mma(name), Operand::kC, rows, cols));
  };
  add("m16n8k16.f32.f16", 16, 8);
  add("m16n8k16.f32.f16", 32, 24);
  add("m64n64k16.f32.f16", 64, 64);
  add("m64n24k16.f32.f16", 64, 24);
  add("m8n8k4.f64.f64", 8, 8);
  return out;
}

TEST(Spread, EachElementIsHeldAndByNoLaneTwice) {
  for_each_spread([](const Fragment& tile, int lanes, int) {
    ASSERT_EQ(tile.lanes, lanes);
    std::set<int> held;
    for (int lane = 0; lane < lanes; ++lane) {
      std::set<int> own;
      for (int value = 0; value < tile.values; ++value) {
        const Element at = element_of(tile, lane, value);
        ASSERT_TRUE(own.insert(at.row + tile.rows * at.col).second) << lane << ", " << value;
      }
      held.insert(own.begin(), own.end());
    }
    EXPECT_EQ(static_cast<int>(held.size()), tile.rows * tile.cols);
  });
}

TEST(Spread, LanesThatRepeatAreDigitsOfTheirNumber) {
  const Fragment rows =
      fragment_of(make_layout(make_layout(make_layout(32, 0), make_layout(3, 0), make_layout(2, 1)),
                              make_layout(1, 0)),
                  2, 1);
  EXPECT_EQ(repeating_digits(rows), (std::vector<LaneDigit>{{1, 96}}));
  EXPECT_TRUE(repeating_digits(fragment_of(spread(2, 32, 64, 1), 2, 32)).empty());
}

TEST(Spread, TheFirstHoldersHoldEachElementOnce) {
  for_each_spread([](const Fragment& tile, int lanes, int) {
    std::set<int> held;
    for (int lane = 0; lane < lanes; ++lane) {
      if (!is_first_holder(tile, lane)) continue;
      for (int value = 0; value < tile.values; ++value) {
        const Element at = element_of(tile, lane, value);
        ASSERT_TRUE(held.insert(at.row + tile.rows * at.col).second) << lane << ", " << value;
      }
    }
    EXPECT_EQ(static_cast<int>(held.size()), tile.rows * tile.cols);
  });
}

TEST(Spread, RunsAreOfNeighboursInARowAsLongAsTheLanesLeaveThem) {
  const auto run_of = [](int rows, int cols, int lanes, int run) {
    const Fragment tile = fragment_of(spread(rows, cols, lanes, run), rows, cols);
    int length = 1;
    while (length < tile.values && element_of(tile, 0, length) == Element{0, length}) ++length;
    return length;
  };
  EXPECT_EQ(run_of(64, 128, 128, 4), 4);
  EXPECT_EQ(run_of(4, 4096, 128, 8), 8);
  EXPECT_EQ(run_of(1, 4096, 128, 8), 8);
  EXPECT_EQ(run_of(1, 64, 32, 4), 2) << "a lane has two elements";
  EXPECT_EQ(run_of(1, 32, 32, 4), 1);
}

TEST(Spread, WholeTilesOfPowersOfTwoUseAllLanes) {
  const Fragment tile = fragment_of(spread(64, 128, 128, 4), 64, 128);
  EXPECT_EQ(tile.values, 64);
  EXPECT_EQ(element_of(tile, 0, 3), (Element{0, 3}));
  EXPECT_EQ(parts_along(tile, 1), 1) << "each warp has whole rows";
  EXPECT_EQ(parts_along(tile, 0), 4);
  EXPECT_EQ(fragment_of(spread(6, 96, 96, 1), 6, 96).values, 6) << "three warps, two rows each";
}

TEST(SpreadPadded, DealsOutTheTileAndWhatIsBeyondItsEdgeOnceEach) {
  for_each_padded([](const Fragment& padded, const Extents2& tile, const SpreadOver& over) {
    ASSERT_EQ(padded.lanes, over.lanes);
    ASSERT_EQ(padded.edge, (Element{tile.rows, tile.cols}));
    ASSERT_GE(padded.rows, tile.rows);
    ASSERT_GE(padded.cols, tile.cols);
    EXPECT_TRUE(tile.rows > 1 || padded.rows == 1) << "a row stays one";
    EXPECT_TRUE(tile.cols > 1 || padded.cols == 1) << "a column stays one";
    std::set<int> held;
    for (int lane = 0; lane < over.lanes; ++lane) {
      if (!is_first_holder(padded, lane)) continue;
      for (int value = 0; value < padded.values; ++value) {
        const Element at = element_of(padded, lane, value);
        ASSERT_TRUE(held.insert(at.row + padded.rows * at.col).second) << lane << ", " << value;
      }
    }
    EXPECT_EQ(static_cast<int>(held.size()), padded.rows * padded.cols);
  });
}

TEST(SpreadPadded, HoldsLessInALaneOrIsNotPadded) {
  for_each_padded([](const Fragment& padded, const Extents2& tile, const SpreadOver& over) {
    const Fragment even = fragment_of(
        spread(tile.rows, tile.cols, over.lanes, over.run, over.within), tile.rows, tile.cols);
    EXPECT_EQ(padded.is_padded(), padded.values < even.values);
    EXPECT_TRUE(padded.is_padded() || padded.tv == even.tv);
  });
}

TEST(SpreadPadded, RunsAreInsideTheEdgeOrBeyondItAsAWhole) {
  for_each_padded([](const Fragment& padded, const Extents2&, const SpreadOver&) {
    if (!padded.is_padded()) return;
    int length = 1;
    while (length < padded.values && element_of(padded, 0, length) == Element{0, length}) ++length;
    // Several runs of a lane may follow each other, where it has a whole row.
    if (padded.cols == length) return;
    EXPECT_EQ(padded.edge.col % length, 0) << length;
  });
}

TEST(SpreadPadded, LinesThatAreToBeInOneWarpAre) {
  for_each_padded([](const Fragment& padded, const Extents2&, const SpreadOver& over) {
    EXPECT_TRUE(!over.within || parts_along(padded, *over.within) == 1);
  });
}

TEST(SpreadPadded, ARowOfOneLessThanAPowerOfTwoIsSharedLikeThePower) {
  const Fragment row = spread_padded(4, 1023, 128, 8);
  EXPECT_EQ(row.values, 32);
  EXPECT_EQ(row.rows, 4);
  EXPECT_EQ(row.cols, 1024);
  EXPECT_EQ(parts_along(row, 1), 1) << "each warp has a row";
  EXPECT_TRUE(row.has({3, 1022}));
  EXPECT_FALSE(row.has({3, 1023}));
  EXPECT_EQ(spread_padded(1, 1000, 32, 8).values, 32) << "125 vectors over 32 lanes";
  EXPECT_EQ(element_of(spread_padded(1, 1000, 32, 8), 1, 0), (Element{0, 8}));
  EXPECT_EQ(spread_padded(3, 5, 32, 4).values, 1);
  EXPECT_FALSE(spread_padded(4, 1024, 128, 8).is_padded());
}

// The lanes that the XORs reach, and they alone, make the elements of a row or column whole.
void expect_reduces(const Fragment& whole, int dimension) {
  const int parts = parts_along(whole, dimension);
  const int rows = dimension == 0 ? parts : whole.rows;
  const int cols = dimension == 1 ? parts : whole.cols;
  const Fragment target = fragment_of(reduced(whole, dimension, parts), rows, cols);
  const std::vector<int> target_of = reduced_values(target, whole, dimension);
  const std::vector<int> bits = lanes_along(whole, dimension);
  ASSERT_EQ(target_of.size(), static_cast<std::size_t>(whole.values));
  std::map<std::pair<int, int>, std::set<int>> made;  // from which places along the dimension
  for (int lane = 0; lane < whole.lanes; ++lane) {
    for (int value = 0; value < target.values; ++value) {
      std::multiset<int> from;
      for (std::size_t subset = 0; subset < (std::size_t{1} << bits.size()); ++subset) {
        int other = lane;
        for (std::size_t i = 0; i < bits.size(); ++i) {
          if ((subset >> i & 1) != 0) other ^= bits[i];
        }
        for (int v = 0; v < whole.values; ++v) {
          if (target_of[static_cast<std::size_t>(v)] != value) continue;
          const Element at = element_of(whole, other, v);
          const Element kept = element_of(target, lane, value);
          ASSERT_EQ(dimension == 0 ? at.col : at.row, dimension == 0 ? kept.col : kept.row);
          from.insert(dimension == 0 ? at.row : at.col);
        }
      }
      const std::set<int> places(from.begin(), from.end());
      ASSERT_EQ(places.size(), from.size()) << "an element counts twice in lane " << lane;
      const Element kept = element_of(target, lane, value);
      auto& known = made[{kept.row, kept.col}];
      if (known.empty()) known = places;
      ASSERT_EQ(known, places) << "lane " << lane << " makes another part";
    }
  }
  std::map<int, std::size_t> of_line;
  for (const auto& [at, places] : made)
    of_line[dimension == 0 ? at.second : at.first] += places.size();
  for (const auto& [line, count] : of_line) {
    ASSERT_EQ(count, static_cast<std::size_t>(dimension == 0 ? whole.rows : whole.cols)) << line;
  }
}

TEST(Reduced, EachLineIsMadeOfAllItsElementsOnce) {
  for (const Fragment& whole : accumulators()) {
    SCOPED_TRACE(to_text(whole.tv));
    for (const int dimension : {0, 1}) expect_reduces(whole, dimension);
  }
  for_each_spread([](const Fragment& tile, int, int run) {
    if (run != 4 || tile.lanes > 128 || tile.values > 32) return;
    for (const int dimension : {0, 1}) expect_reduces(tile, dimension);
  });
  for_each_padded([](const Fragment& padded, const Extents2&, const SpreadOver& over) {
    if (over.run != 4 || over.within || padded.lanes > 128 || padded.values > 32) return;
    for (const int dimension : {0, 1}) expect_reduces(padded, dimension);
  });
}

TEST(Reduced, StandsBesideWhatItIsMadeOf) {
  for (const Fragment& whole : accumulators()) {
    for (const int dimension : {0, 1}) {
      const Fragment line = fragment_of(reduced(whole, dimension), dimension == 0 ? 1 : whole.rows,
                                        dimension == 1 ? 1 : whole.cols);
      const std::vector<int> beside = values_beside(line, whole);
      ASSERT_EQ(beside.size(), static_cast<std::size_t>(whole.values)) << to_text(whole.tv);
      for (int lane = 0; lane < whole.lanes; ++lane) {
        for (int value = 0; value < whole.values; ++value) {
          const Element at = element_of(whole, lane, value);
          ASSERT_EQ(element_of(line, lane, beside[static_cast<std::size_t>(value)]),
                    (dimension == 0 ? Element{0, at.col} : Element{at.row, 0}));
        }
      }
    }
  }
}

TEST(Reduced, RepeatedIsHeldWholeByEachLane) {
  for (const Fragment& whole : accumulators()) {
    for (const int dimension : {0, 1}) {
      const Fragment line = fragment_of(reduced(whole, dimension), dimension == 0 ? 1 : whole.rows,
                                        dimension == 1 ? 1 : whole.cols);
      const Fragment again =
          fragment_of(repeated(line, dimension, 4), dimension == 0 ? 4 : whole.rows,
                      dimension == 1 ? 4 : whole.cols);
      ASSERT_EQ(again.values, 4 * line.values);
      EXPECT_TRUE(lanes_along(again, dimension).empty());
      EXPECT_EQ(parts_along(again, dimension), 1);
      EXPECT_FALSE(values_beside(line, again).empty());
    }
  }
}

// Going along each line as `Lines` says meets each of its elements once, in order.
void expect_lines(const Fragment& whole, int dimension) {
  const auto lines = lines_along(whole, dimension);
  ASSERT_TRUE(lines.has_value());
  const int length = dimension == 0 ? whole.rows : whole.cols;
  const int group = 1 << lines->lanes.size();
  const int own = lines->run * lines->blocks;
  ASSERT_EQ(group * own, length);
  ASSERT_EQ(lines->values.size(), static_cast<std::size_t>(whole.values));
  for (int lane = 0; lane < whole.lanes; ++lane) {
    int number = 0;  // of the lane in its group
    for (std::size_t i = 0; i < lines->lanes.size(); ++i) {
      if ((lane & lines->lanes[i]) != 0) number += 1 << i;
    }
    for (int n = 0; n < whole.values; ++n) {
      const Element at = element_of(whole, lane, lines->values[static_cast<std::size_t>(n)]);
      const Element first =
          element_of(whole, lane, lines->values[static_cast<std::size_t>(n / own * own)]);
      const int place =
          n % own / lines->run * lines->run * group + number * lines->run + n % lines->run;
      ASSERT_EQ(dimension == 0 ? at.row : at.col, place) << "lane " << lane << ", number " << n;
      ASSERT_EQ(dimension == 0 ? at.col : at.row, dimension == 0 ? first.col : first.row);
    }
  }
}

TEST(Lines, OfTilesThatAreSpreadForThemAreInOneWarpEach) {
  for (const Extents2& tile : kTiles) {
    for (const int lanes : kThreads) {
      for (const int dimension : {0, 1}) {
        SCOPED_TRACE(format("{}x{} over {} lanes, {}", tile.rows, tile.cols, lanes, dimension));
        const Layout layout = spread(tile.rows, tile.cols, lanes, 4, dimension);
        expect_lines(fragment_of(layout, tile.rows, tile.cols), dimension);
        expect_lines(spread_padded(tile.rows, tile.cols, lanes, 4, dimension), dimension);
      }
    }
  }
}

TEST(Lines, OfAccumulatorsAreInOneWarpUnlessTheyGoDownAWarpgroup) {
  const std::vector<Fragment> all = accumulators();
  for (const Fragment& whole : all) {
    expect_lines(whole, 1);
    if (whole.lanes == 32) expect_lines(whole, 0);
    EXPECT_EQ(lines_along(whole, 0).has_value(), whole.lanes == 32);
  }
  const auto lines =
      lines_along(fragment_layout(*find_mma("m16n8k16.f32.f16"), Operand::kC, 16, 16), 1);
  EXPECT_EQ(lines->run, 2);
  EXPECT_EQ(lines->blocks, 2);
  EXPECT_EQ(lines->lanes, (std::vector<int>{1, 2}));
  EXPECT_EQ(lines->values, (std::vector<int>{0, 1, 4, 5, 2, 3, 6, 7}));
}

TEST(Lines, AreNothingWhereALaneComesBetweenTheValuesOfAnother) {
  // columns: two lanes, two values, two lanes
  const Fragment turns =
      fragment_of(make_layout(make_layout(make_layout(2, 1), make_layout(2, 4), make_layout(8, 8)),
                              make_layout(2, 2)),
                  1, 64);
  EXPECT_FALSE(lines_along(turns, 1).has_value());
}

// Two elements for one, and one for two again, of operands and of tiles that are dealt out.
TEST(SplitColumns, JoinedAgainAreTheSame) {
  std::vector<Fragment> all = {spread_padded(1, 1023, 32, 8), spread_padded(3, 20, 64, 4),
                               spread_padded(16, 64, 128, 2)};
  for (const Mma& row : all_mmas()) {
    if (is_outermost(row) && has_map(row, Operand::kC)) {
      const TileExtents atom = extents(row, Operand::kC);
      all.push_back(fragment_layout(row, Operand::kC, atom.rows, atom.cols));
    }
  }
  for (const Fragment& wide : all) {
    const Fragment narrow = split_columns(wide, 4);
    EXPECT_EQ(narrow.values, 4 * wide.values);
    EXPECT_EQ(narrow.edge, (Element{wide.edge.row, 4 * wide.edge.col}));
    for (int lane = 0; lane < wide.lanes; ++lane) {
      for (int value = 0; value < narrow.values; ++value) {
        const Element whole = element_of(wide, lane, value / 4);
        EXPECT_EQ(element_of(narrow, lane, value), (Element{whole.row, 4 * whole.col + value % 4}));
      }
    }
    const auto joined = joined_columns(narrow, 4);
    ASSERT_TRUE(joined.has_value());
    EXPECT_EQ(joined->edge, wide.edge);
    for (int lane = 0; lane < wide.lanes; ++lane) {
      for (int value = 0; value < wide.values; ++value) {
        EXPECT_EQ(element_of(*joined, lane, value), element_of(wide, lane, value));
      }
    }
  }
}

// Of each block of 8 columns the quad's lanes have two each; of four blocks each lane gets one.
TEST(WithRuns, GivesEachLaneOfAQuadEightNeighbours) {
  for (const char* name : {"m64n256k16.f32.bf16", "m64n96k16.f32.bf16", "m64n32k16.f32.f16"}) {
    const Mma& mma = *find_mma(name);
    const Fragment pairs = fragment_layout(mma, Operand::kC, 64, mma.shape.n);
    const auto runs = with_runs(pairs);
    ASSERT_TRUE(runs.has_value()) << name;
    ASSERT_EQ(runs->values, pairs.values);
    std::set<std::pair<int, int>> held;
    for (int lane = 0; lane < runs->lanes; ++lane) {
      for (int value = 0; value < runs->values; ++value) {
        const Element at = element_of(*runs, lane, value);
        held.insert({at.row, at.col});
        // Of a run the first is that of the lane's row and block; lanes of a quad have the same rows as before.
        const Element first = element_of(*runs, lane, value / 8 * 8);
        EXPECT_EQ(at, (Element{first.row, first.col + value % 8}));
        EXPECT_EQ(first.col % 32, 8 * (lane % 4));
        EXPECT_EQ(first.row % 8, element_of(pairs, lane, 0).row % 8);
      }
    }
    EXPECT_EQ(held.size(), std::size_t{64} * static_cast<std::size_t>(mma.shape.n)) << name;
  }
}

TEST(WithRuns, NeedsFourBlocksOfPairs) {
  const Mma& narrow = *find_mma("m64n16k16.f32.bf16");
  EXPECT_FALSE(with_runs(fragment_layout(narrow, Operand::kC, 64, 16)).has_value());
  EXPECT_FALSE(with_runs(spread_padded(4, 31, 32, 1)).has_value());
}

TEST(JoinedColumns, NeedsALaneThatHoldsAllParts) {
  const Mma& mma = *find_mma("m64n16k16.f32.bf16");
  const auto words = joined_columns(fragment_layout(mma, Operand::kA, 64, 32), 2);
  ASSERT_TRUE(words.has_value());
  EXPECT_EQ(element_of(*words, 5, 1), (Element{9, 1}));
  EXPECT_FALSE(joined_columns(fragment_layout(mma, Operand::kA, 64, 32), 4).has_value());
  EXPECT_FALSE(joined_columns(spread_padded(4, 31, 32, 1), 2).has_value());
}

TEST(Transposed, TwiceIsTheSameAndOnceSwapsTheCoordinates) {
  for (const Fragment& whole : accumulators()) {
    const Fragment turned = fragment_of(transposed(whole), whole.cols, whole.rows);
    const Fragment back = fragment_of(transposed(turned), whole.rows, whole.cols);
    for (int lane = 0; lane < whole.lanes; ++lane) {
      for (int value = 0; value < whole.values; ++value) {
        const Element at = element_of(whole, lane, value);
        ASSERT_EQ(element_of(turned, lane, value), (Element{at.col, at.row}));
        ASSERT_EQ(element_of(back, lane, value), at);
      }
    }
  }
}

TEST(ValuesBeside, AreNothingWhereALaneLacksTheElement) {
  const std::vector<Fragment> all = accumulators();
  const Fragment spread_out = fragment_of(spread(64, 64, 128, 4), 64, 64);
  EXPECT_TRUE(values_beside(spread_out, all[2]).empty());
  EXPECT_TRUE(values_beside(all[0], all[2]).empty()) << "32 and 128 lanes";
  EXPECT_FALSE(values_beside(all[2], all[2]).empty());
}

}  // namespace
}  // namespace kiln::target
