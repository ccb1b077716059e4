// The registers of a whole operand tile: a matrix instruction's map, repeated over the tile.
//
//   C of m16n8k16 on a 16x16 tile: two atoms side by side
//   tv = ((4,8),(2,2,2)):((32,1),(16,8,128)),  8 values a lane
//   element_of(f, 0, 4) == (row 0, column 8)     value 4 = the second atom's value 0
//
// Values count the atom's own values fastest, then the atoms down the rows, then those along the
// columns. Element index = row + rows * column.
//
// A tile that no instruction names has a layout of its own: rows that several lanes hold, as the row
// maxima of an accumulator are, have lanes with stride 0. Where its lanes cannot share it evenly it is
// padded: the layout deals out more rows or columns than the tile has, and what lies beyond its edge is
// no element.
//
//   1x1023 over a warp: 32 values a lane of 1x1024, edge (1, 1023); lane 31's last value is none
#pragma once

#include <optional>
#include <vector>

#include "kiln/layout.h"
#include "target/mma.h"

namespace kiln::target {

struct Element {
  int row = 0;
  int col = 0;

  friend constexpr bool operator==(const Element&, const Element&) = default;
};

struct Fragment {
  Layout tv;     // (lane, value) -> element index; see deal
  Layout vt;     // element index -> lane + lanes * value; invalid where several lanes hold the same
  int rows = 0;  // of the tile, with what it is padded by
  int cols = 0;
  Element edge;  // the tile's own rows and columns
  int lanes = 0;
  int values = 0;     // elements each lane holds
  int reps_rows = 0;  // atoms down the rows
  int reps_cols = 0;  // atoms along the columns
  // tv(lane, value) is a lane's number here and a value's: what is asked for each of both need not divide.
  std::vector<Index> of_lanes;
  std::vector<Index> of_values;

  // Sets tv and what is kept of it.
  void deal(const Layout& layout);
  [[nodiscard]] bool is_padded() const { return edge != Element{rows, cols}; }
  // Whether the tile has that element: else it lies beyond the edge.
  [[nodiscard]] bool has(const Element& at) const { return at.row < edge.row && at.col < edge.col; }
};

struct Owner {
  int lane = 0;
  int value = 0;

  friend constexpr bool operator==(const Owner&, const Owner&) = default;
};

// The fragment of a tile_rows x tile_cols tile of `operand`. The tile must be a whole number of the
// row's atoms each way (KILN_CHECK); A is (M, K), B is (N, K), C is (M, N).
[[nodiscard]] Fragment fragment_layout(const Mma& mma, Operand operand, int tile_rows,
                                       int tile_cols);

// Columns first .. first + cols - 1 of a fragment, counted from 0 again, and which of the
// fragment's values is their first. Nothing when they are not consecutive values of every lane.
struct FragmentColumns {
  Fragment fragment;
  int first_value = 0;
};
[[nodiscard]] std::optional<FragmentColumns> columns_of(const Fragment& whole, int first, int cols);

// The element that `value` of `lane` holds, and back. Arguments must be in range.
[[nodiscard]] Element element_of(const Fragment& fragment, int lane, int value);
[[nodiscard]] Owner owner_of(const Fragment& fragment, int row, int col);

// The fragment with that layout; every element must be held, and each lane hold it once
// (KILN_CHECK). `edge`: of a tile that is padded to those rows and columns.
[[nodiscard]] Fragment fragment_of(const Layout& tv, int rows, int cols);
[[nodiscard]] Fragment fragment_of(const Layout& tv, int rows, int cols, Element edge);

// Of a tile with so many rows and columns, spread over `lanes` threads: each lane holds runs of up
// to `run` columns, as many lanes as divide a row stand side by side, and further lanes hold other
// rows. Lanes that are left over hold the same as others. `within`: the dimension (0: columns, 1:
// rows) whose lines are not to be in several warps.
[[nodiscard]] Layout spread(int rows, int cols, int lanes, int run, std::optional<int> within = {});

// The same, padded where the lanes then hold less than of what they can share evenly. Runs end at the
// tile's edge: a vector of memory is inside or outside as a whole.
//
//   1x1023 over 32 lanes    evenly all 1023 in each lane; padded to 1x1024, 32 in each
//   1x1024 over 32 lanes    32 in each, nothing is padded
[[nodiscard]] Fragment spread_padded(int rows, int cols, int lanes, int run,
                                     std::optional<int> within = {});

// What is left of a fragment when one of its dimensions (0: the rows, 1: the columns) becomes 1:
// every lane holds the row or column of each element that it held. With `parts` above 1 the
// dimension keeps an element for each of that many groups of warps, which held different elements.
[[nodiscard]] Layout reduced(const Fragment& whole, int dimension, int parts = 1);

// The same with an element for each lane of a warp that held different ones: what each has of a row or
// column by itself. No two groups of warps may.
[[nodiscard]] Fragment reduced_by_lane(const Fragment& whole, int dimension);

// A fragment one of whose dimensions is 1 with so many elements there instead, all of which each lane
// holds that held the one.
[[nodiscard]] Layout repeated(const Fragment& one, int dimension, int count);

// The same registers of the tile with rows for columns.
[[nodiscard]] Layout transposed(const Fragment& fragment);

// Of a tile with `count` elements, side by side, where `wide` has one: every lane holds the parts of
// what it held, those of one element as neighbouring values.
//
//   a word of 32 bits in each lane, (32,1):(1,0)    =>   two of 16: (32,2):(2,1)
[[nodiscard]] Fragment split_columns(const Fragment& wide, int count);

// The other way round; nothing where lanes do not hold all `count` neighbours, as neighbouring values.
[[nodiscard]] std::optional<Fragment> joined_columns(const Fragment& narrow, int count);

// Of a fragment whose lanes have two neighbours of a row where the four of a quad have eight: the one in which each lane has
// all eight, of as many such blocks, so that memory is moved in vectors. Nothing of others.
//
//   row 0, columns 0 to 31, in lanes 0 to 3:    0 1|8 9|16 17|24 25  2 3|10 11|..  4 5|..  6 7|..
//                                         =>    0 1 2 .. 7  8 9 10 .. 15  16 17 .. 23  24 25 .. 31
[[nodiscard]] std::optional<Fragment> with_runs(const Fragment& pairs);

// The groups of warps that hold different elements along the dimension, each all that its lanes
// have of a row or column; 1: every warp has whole rows or columns.
[[nodiscard]] int parts_along(const Fragment& whole, int dimension);

// By which XORs of the lane's number (powers of two below 32) one gets to the other lanes of the
// warp that hold different elements along the dimension.
[[nodiscard]] std::vector<int> lanes_along(const Fragment& whole, int dimension);

// How the lines of a fragment along a dimension (1: its rows) lie in a warp, when each is made of
// blocks, and a block of a run of values of one lane, then as many of the next lane, and so on.
//
//   the accumulator of m16n8k16, 16x16, along its rows: lane 0 has columns 0 1 8 9 of rows 0 and 8
//   run = 2, blocks = 2, lanes = {1, 2}, values = {0, 1, 4, 5, 2, 3, 6, 7}
struct Lines {
  int run = 1;
  int blocks = 1;
  std::vector<int>
      lanes;  // XORs of the lane's number (powers of two) to the other lanes, nearest first
  std::vector<int> values;  // the lane's values, line by line, each from its beginning to its end
};
// Nothing when lines are in several warps, or their values and lanes take turns in another way.
[[nodiscard]] std::optional<Lines> lines_along(const Fragment& whole, int dimension);

// For each value of `anchor`, the value of `other` that belongs to the same place: the same element,
// or that of its row or column where `other` has one in that dimension. Empty when some lane does
// not hold it, or not under one number as all other lanes do.
[[nodiscard]] std::vector<int> values_beside(const Fragment& other, const Fragment& anchor);

// For each value of `source`, the value of `target` that it is a part of when the dimension is
// reduced: target is `reduced(source, dimension)`, perhaps in parts (KILN_CHECK).
[[nodiscard]] std::vector<int> reduced_values(const Fragment& target, const Fragment& source,
                                              int dimension);

// The digits of a lane's number that make no difference to what it holds: lane / below % extent.
//
//   a tile of 2x1 on 192 lanes, 96 lanes a row     =>   {below 1, extent 96}
struct LaneDigit {
  Index below = 1;
  Index extent = 1;

  friend constexpr bool operator==(const LaneDigit&, const LaneDigit&) = default;
};
[[nodiscard]] std::vector<LaneDigit> repeating_digits(const Fragment& fragment);

// Whether the lane is the first of those that hold its elements: all those digits are 0.
[[nodiscard]] bool is_first_holder(const Fragment& fragment, int lane);

// The first value of the atom at (rep_row, rep_col): its values are this one and the following
// values_of(mma, operand) - 1.
[[nodiscard]] constexpr int first_value(const Fragment& fragment, int rep_row, int rep_col) {
  const int per_atom = fragment.values / (fragment.reps_rows * fragment.reps_cols);
  return per_atom * (rep_row + fragment.reps_rows * rep_col);
}

}  // namespace kiln::target
