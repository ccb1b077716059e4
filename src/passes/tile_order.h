// In which order a kernel's tiles are taken, by `[[order]]`: which tile comes as number so and so. Part of the pass
// persist.
//
//   columns, 3 of 2 x 5 tiles     rows, 2 of 3 x 3     hilbert of 4 x 5
//     0 1 2 6 7                     0 2 4                0  1  2 18 19
//     3 4 5 8 9                     1 3 5                5  4  3 17 16
//                                   6 7 8                6  7 11 12 15
//                                                        8  9 10 13 14
//
// Hilbert: the grid is cut into bands of rows, a band into squares: as few as there can be of up to kSquareMost tiles a
// side, all as large as each other but for the last. Bands follow each other, and so do the squares of a band. In a
// square the curve begins in the first column and ends in the last, in the first row. It goes through halves of columns,
// and in each through halves of rows, the outer ones turned:
//
//   the quarters  1 4     the first turned: it begins in its first row and ends in its last
//                 2 3     the second and third as they are, the fourth turned the other way
//
// kHalvings times; what is left, up to 4 x 4 tiles, comes row by row. Halves need not be equal, so that any extents
// will do: each tile comes once and there are no others. n tiles after each other touch few more than 2 * sqrt(n) rows
// and columns at each n up to a square's, where a group of 8 columns is as good at about 64 tiles alone.
//
// Written once, for formulas, of which the pass makes operations, and for plain numbers, as the tests have them. A Maker
// has a type Number with +, -, *, floor_div, mod, min, cdiv, and:
//
//   Number bind(name, value, extent)                a name for it; it lies in 0 .. extent - 1
//   Condition less(name, left, right)               left < right
//   Number choose(name, condition, if_true, if_false, extent)
#pragma once

#include <algorithm>
#include <cstdint>

#include "ir/op.h"
#include "support/integer.h"

namespace kiln::passes {

struct TileOrder {
  enum class Kind : std::uint8_t { kGrid, kColumns, kRows, kHilbert };
  Kind kind = Kind::kGrid;    // kGrid: as blocks of a grid come, the first axis fastest
  std::int64_t together = 0;  // kColumns, kRows: so many
};
[[nodiscard]] TileOrder order_of(const ir::Parallel& launch);
void set_order(ir::Parallel& launch, const TileOrder& order);

template <typename Number>
struct TilePlace {
  Number row;
  Number column;
};

inline constexpr std::int64_t kSquareMost = 32;
inline constexpr int kHalvings = 3;

// Number `tile` of the columns, `order.together` at a time; of the rows where `along` counts columns.
template <typename Maker, typename Number = typename Maker::Number>
TilePlace<Number> in_groups(Maker& maker, Number tile, std::int64_t together,
                            const TilePlace<Number>& grid) {
  const Number group = grid.row * together;
  const Number inside = maker.bind("inside", mod(tile, group), group);
  const Number first = maker.bind("first", floor_div(tile, group) * together, grid.column);
  const Number width =
      maker.bind("width", min(grid.column - first, Number(together)), Number(together + 1));
  return {.row = floor_div(inside, width), .column = first + mod(inside, width)};
}

// Number `tile` of the curve through so many rows and columns, both at least 1.
template <typename Maker, typename Number = typename Maker::Number>
TilePlace<Number> on_curve(Maker& maker, const Number& tile, const TilePlace<Number>& square,
                           int halvings) {
  const auto& [rows, columns] = square;
  if (halvings == 0) return {.row = floor_div(tile, columns), .column = mod(tile, columns)};
  const auto extent = Number(kSquareMost * kSquareMost);
  const auto side = Number(kSquareMost + 1);
  // The second half is the mirror of a first one, from its end.
  const Number near = floor_div(columns + 1, 2);
  const auto first = maker.less("first", tile, near * rows);
  const Number wide = maker.choose("wide", first, near, columns - near, side);
  const Number step = maker.choose("step", first, tile, rows * columns - 1 - tile, extent);
  const Number low = floor_div(rows + 1, 2);
  const auto turned = maker.less("turned", step, wide * low);
  const TilePlace<Number> quarter = {.row = maker.choose("down", turned, wide, rows - low, side),
                                     .column = maker.choose("across", turned, low, wide, side)};
  const Number rest = maker.choose("rest", turned, step, step - wide * low, extent);
  const TilePlace<Number> in = on_curve(maker, rest, quarter, halvings - 1);
  const Number across = maker.choose("x", turned, in.row, in.column, side);
  return {.row = maker.choose("y", turned, in.column, low + in.row, side),
          .column = maker.choose("x", first, across, columns - 1 - across, side)};
}

template <typename Maker, typename Number = typename Maker::Number>
TilePlace<Number> in_squares(Maker& maker, const Number& tile, const TilePlace<Number>& grid) {
  const auto most = Number(kSquareMost);
  const Number height = maker.bind("height", cdiv(grid.row, cdiv(grid.row, most)), most + 1);
  const Number width = maker.bind("width", cdiv(grid.column, cdiv(grid.column, most)), most + 1);
  const Number band = height * grid.column;
  const Number top = maker.bind("top", floor_div(tile, band) * height, grid.row);
  const Number inside = maker.bind("inside", mod(tile, band), band);
  const Number rows = maker.bind("rows", min(height, grid.row - top), most + 1);
  const Number of_square = rows * width;
  const Number left = maker.bind("left", floor_div(inside, of_square) * width, grid.column);
  const Number columns = maker.bind("columns", min(width, grid.column - left), most + 1);
  const Number rest = maker.bind("rest", mod(inside, of_square), most * most);
  const TilePlace<Number> in = on_curve(maker, rest, {rows, columns}, kHalvings);
  return {.row = top + in.row, .column = left + in.column};
}

// The tile with this number, of a grid of so many rows and columns; for the orders but kGrid.
template <typename Maker, typename Number = typename Maker::Number>
TilePlace<Number> tile_at(Maker& maker, const TileOrder& order, const Number& tile,
                          const TilePlace<Number>& grid) {
  if (order.kind == TileOrder::Kind::kHilbert) return in_squares(maker, tile, grid);
  if (order.kind == TileOrder::Kind::kColumns) return in_groups(maker, tile, order.together, grid);
  const TilePlace<Number> turned =
      in_groups(maker, tile, order.together, {.row = grid.column, .column = grid.row});
  return {.row = turned.column, .column = turned.row};
}

}  // namespace kiln::passes
