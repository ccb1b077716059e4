#include "passes/tile_order.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace kiln::passes {

namespace {

// A plain number with what tile_order.h asks of one.
struct Plain {
  std::int64_t value;
  Plain(std::int64_t number) : value(number) {}

  friend Plain operator+(Plain a, Plain b) { return a.value + b.value; }
  friend Plain operator-(Plain a, Plain b) { return a.value - b.value; }
  friend Plain operator*(Plain a, Plain b) { return a.value * b.value; }
  friend Plain floor_div(Plain a, Plain b) { return a.value / b.value; }
  friend Plain mod(Plain a, Plain b) { return a.value % b.value; }
  friend Plain cdiv(Plain a, Plain b) { return ceil_div(a.value, b.value); }
  friend Plain min(Plain a, Plain b) { return std::min(a.value, b.value); }
};

using Place = std::pair<std::int64_t, std::int64_t>;

// Formulas' names are numbers here; each lies below what it was said to.
struct Numbers {
  using Number = Plain;

  Plain bind(const std::string& name, Plain number, Plain extent) {
    if (number.value < 0 || number.value >= extent.value) outside.insert(name);
    return number;
  }
  static bool less(const std::string&, Plain left, Plain right) { return left.value < right.value; }
  Plain choose(const std::string& name, bool condition, Plain if_true, Plain if_false,
               Plain extent) {
    return bind(name, condition ? if_true : if_false, extent);
  }

  std::set<std::string> outside = {};
};

std::vector<Place> all_tiles(const TileOrder& order, std::int64_t rows, std::int64_t columns) {
  Numbers numbers;
  std::vector<Place> out;
  for (std::int64_t tile = 0; tile < rows * columns; ++tile) {
    const auto at = tile_at(numbers, order, Plain(tile), {.row = rows, .column = columns});
    out.emplace_back(at.row.value, at.column.value);
  }
  EXPECT_TRUE(numbers.outside.empty())
      << *numbers.outside.begin() << " of " << rows << " x " << columns;
  return out;
}

void expect_each_once(const TileOrder& order, std::int64_t rows, std::int64_t columns) {
  const std::vector<Place> tiles = all_tiles(order, rows, columns);
  const std::set<Place> places(tiles.begin(), tiles.end());
  EXPECT_EQ(places.size(), tiles.size()) << rows << " x " << columns;
  for (const auto& [row, column] : places) {
    ASSERT_TRUE(row >= 0 && row < rows && column >= 0 && column < columns)
        << row << ", " << column << " of " << rows << " x " << columns;
  }
}

constexpr TileOrder kCurve{TileOrder::Kind::kHilbert};

TEST(TileOrder, EachTileComesOnceAtAnyExtents) {
  std::vector<std::int64_t> extents = {31, 32, 33, 40};
  for (std::int64_t extent = 1; extent <= 18; ++extent) extents.push_back(extent);
  for (const std::int64_t rows : extents) {
    for (const std::int64_t columns : extents) {
      expect_each_once(kCurve, rows, columns);
      expect_each_once({TileOrder::Kind::kColumns, 1 + rows % 9}, rows, columns);
      expect_each_once({TileOrder::Kind::kRows, 1 + columns % 9}, rows, columns);
    }
  }
}

TEST(TileOrder, EachTileComesOnceInSeveralSquares) {
  for (const auto& [rows, columns] : std::vector<Place>{
           {1, 1000}, {1000, 1}, {3, 333}, {64, 64}, {65, 33}, {97, 131}, {200, 7}, {31, 129}}) {
    expect_each_once(kCurve, rows, columns);
  }
}

TEST(TileOrder, TheCurveIsTheOneOfTheHeader) {
  EXPECT_EQ(all_tiles(kCurve, 4, 5),
            (std::vector<Place>{{0, 0}, {0, 1}, {0, 2}, {1, 2}, {1, 1}, {1, 0}, {2, 0},
                                {2, 1}, {3, 0}, {3, 1}, {3, 2}, {2, 2}, {2, 3}, {3, 3},
                                {3, 4}, {2, 4}, {1, 4}, {1, 3}, {0, 3}, {0, 4}}));
}

// Rows and columns that so many tiles after each other touch, at most.
std::size_t touched(const std::vector<Place>& tiles, std::size_t together) {
  std::size_t most = 0;
  std::map<std::int64_t, int> rows;  // how many of the tiles lie there
  std::map<std::int64_t, int> columns;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    ++rows[tiles[i].first];
    ++columns[tiles[i].second];
    if (i >= together) {
      const auto& [row, column] = tiles[i - together];
      if (--rows[row] == 0) rows.erase(row);
      if (--columns[column] == 0) columns.erase(column);
    }
    if (i + 1 >= together) most = std::max(most, rows.size() + columns.size());
  }
  return most;
}

// Of a square of n tiles it is twice the root of n. A group of 8 columns is as good at 64 tiles alone.
TEST(TileOrder, TilesOfTheCurveAreTogetherAtEachNumber) {
  for (const auto& [rows, columns] : std::vector<Place>{{64, 64}, {40, 50}, {97, 131}}) {
    const std::vector<Place> curve = all_tiles(kCurve, rows, columns);
    EXPECT_LE(touched(curve, 16), 14U);
    EXPECT_LE(touched(curve, 64), 28U);
    EXPECT_LE(touched(curve, 256), 56U);
    EXPECT_GE(touched(all_tiles({TileOrder::Kind::kColumns, 4}, rows, columns), 256), 44U);
  }
}

}  // namespace

}  // namespace kiln::passes
