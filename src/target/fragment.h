// The registers of a whole operand tile: a matrix instruction's map, repeated over the tile.
//
//   C of m16n8k16 on a 16x16 tile: two atoms side by side
//   tv = ((4,8),(2,2,2)):((32,1),(16,8,128)),  8 values a lane
//   element_of(f, 0, 4) == (row 0, column 8)     value 4 = the second atom's value 0
//
// Values count the atom's own values fastest, then the atoms down the rows, then those along the
// columns. Element index = row + rows * column.
#pragma once

#include <optional>

#include "kiln/layout.h"
#include "target/mma.h"

namespace kiln::target {

struct Fragment {
  Layout tv;     // (lane, value) -> element index
  Layout vt;     // element index -> lane + lanes * value
  int rows = 0;  // of the tile
  int cols = 0;
  int lanes = 0;
  int values = 0;     // elements each lane holds
  int reps_rows = 0;  // atoms down the rows
  int reps_cols = 0;  // atoms along the columns
};

struct Element {
  int row = 0;
  int col = 0;

  friend constexpr bool operator==(const Element&, const Element&) = default;
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

// The first value of the atom at (rep_row, rep_col): its values are this one and the following
// values_of(mma, operand) - 1.
[[nodiscard]] constexpr int first_value(const Fragment& fragment, int rep_row, int rep_col) {
  const int per_atom = fragment.values / (fragment.reps_rows * fragment.reps_cols);
  return per_atom * (rep_row + fragment.reps_rows * rep_col);
}

}  // namespace kiln::target
