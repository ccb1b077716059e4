#include "target/fragment.h"

#include <algorithm>

#include "layout/print.h"
#include "support/check.h"

namespace kiln::target {

Fragment fragment_layout(const Mma& mma, Operand operand, int tile_rows, int tile_cols) {
  const TileExtents atom = extents(mma, operand);
  KILN_CHECK(
      tile_rows > 0 && tile_cols > 0 && tile_rows % atom.rows == 0 && tile_cols % atom.cols == 0,
      "operand {} of {} on a {}x{} tile, which is no multiple of {}x{}", name(operand), mma.name,
      tile_rows, tile_cols, atom.rows, atom.cols);
  Fragment out;
  out.rows = tile_rows;
  out.cols = tile_cols;
  out.lanes = mma.lanes;
  out.reps_rows = tile_rows / atom.rows;
  out.reps_cols = tile_cols / atom.cols;
  out.values = values_of(mma, operand) * out.reps_rows * out.reps_cols;

  // Where the atom's elements lie in the tile: its columns are tile_rows apart there.
  const Layout place = make_layout(make_layout(atom.rows, 1), make_layout(atom.cols, tile_rows));
  const Layout atom_tv = composition(place, map_of(mma, operand));
  const Layout atom_values = mode(atom_tv, 1);
  detail::LayoutBuilder values;
  for (int i = 0; i < atom_values.leaves; ++i) {
    values.leaf(atom_values.extents[i], atom_values.strides[i]);
  }
  if (out.reps_rows > 1) values.leaf(out.reps_rows, atom.rows);
  if (out.reps_cols > 1) values.leaf(out.reps_cols, Index{tile_rows} * atom.cols);
  out.tv = make_layout(mode(atom_tv, 0), values.done_flat());
  out.vt = right_inverse(out.tv);
  KILN_CHECK(is_bijective(out.tv) && size(out.vt) == Index{tile_rows} * tile_cols,
             "operand {} of {} on a {}x{} tile: {} is no bijection", name(operand), mma.name,
             tile_rows, tile_cols, to_text(out.tv));
  return out;
}

std::optional<FragmentColumns> columns_of(const Fragment& whole, int first, int cols) {
  if (first == 0 && cols == whole.cols) return FragmentColumns{whole, 0};
  if (first < 0 || cols < 1 || first + cols > whole.cols || cols * whole.values % whole.cols != 0 ||
      first * whole.values % whole.cols != 0) {
    return std::nullopt;
  }
  const int values = cols * whole.values / whole.cols;
  const int first_value = first * whole.values / whole.cols;
  Fragment part = whole;
  part.cols = cols;
  part.values = values;
  part.reps_cols = 1;
  // An index is a lane's offset plus a value's, so lanes need not be crossed with values.
  Index widest = 0;
  for (int lane = 0; lane < whole.lanes; ++lane) widest = std::max(widest, whole.tv(lane, 0));
  for (int value = 0; value < values; ++value) {
    const Index here = whole.tv(0, value);
    const Index there = whole.tv(0, first_value + value);
    if (there - here != Index{first} * whole.rows) return std::nullopt;
    if ((widest + here) / whole.rows >= cols) return std::nullopt;
  }
  part.tv = make_layout(mode(whole.tv, 0), composition(mode(whole.tv, 1), make_layout(values, 1)));
  part.vt = right_inverse(part.tv);
  return FragmentColumns{part, first_value};
}

Element element_of(const Fragment& fragment, int lane, int value) {
  KILN_CHECK(lane >= 0 && lane < fragment.lanes && value >= 0 && value < fragment.values,
             "lane {} of {}, value {} of {}", lane, fragment.lanes, value, fragment.values);
  const auto index = static_cast<int>(fragment.tv(lane, value));
  return {index % fragment.rows, index / fragment.rows};
}

Owner owner_of(const Fragment& fragment, int row, int col) {
  KILN_CHECK(row >= 0 && row < fragment.rows && col >= 0 && col < fragment.cols,
             "element ({}, {}) of a {}x{} tile", row, col, fragment.rows, fragment.cols);
  const auto place = static_cast<int>(fragment.vt(row + Index{fragment.rows} * col));
  return {place % fragment.lanes, place / fragment.lanes};
}

}  // namespace kiln::target
