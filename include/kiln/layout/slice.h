// Parts of a layout: what stays when some coordinates are fixed, and where it begins.
//
//   slice(make_coord(2, kAll), (8,4):(4,1))       ==  {(4):(1), offset 8}       // row 2
//   local_partition((8,4):(4,1), (4,2):(2,1), 3)  ==  {(2,2):(16,2), offset 5}  // thread 3 = (1,1)
//   local_tile((128,64):(64,1), make_tiler(32, 16), make_coord(1, kAll))
//                                                 ==  {(32,16,4):(64,1,16), offset 2048}
//
// Where CuTe gives a tensor with a moved pointer, a value can only say by how much: `offset` is the
// index at which the part's index 0 lies. Include kiln/layout.h, which has the whole algebra.
#pragma once

#include "kiln/layout/divide.h"
#include "kiln/layout/value.h"

namespace kiln {

// In a coordinate: all of this mode.
inline constexpr Index kAll = -(Index{1} << 62);

struct Slice {
  Layout layout;  // invalid when the coordinate does not fit
  Index offset = 0;

  friend KILN_HD constexpr bool operator==(const Slice&, const Slice&) = default;
};

namespace detail {

// The parts of `layout` whose number in `coord` is kAll (or is not, for kFixed), as modes of a
// tuple. One number for each mode or, when the count is that instead, for each leaf. No part gives
// the layout of a single element, 1:0.
KILN_HD constexpr Layout keep(const Coord& coord, const Layout& layout, bool all) {
  const bool by_mode = coord.count == rank(layout);
  if (!layout.valid() || (!by_mode && coord.count != layout.leaves)) return {};
  LayoutBuilder out;
  int first = 0;
  for (int i = 0; i < coord.count; ++i) {
    const int end = by_mode ? mode_end(layout, first) : first + 1;
    if ((coord.at[i] == kAll) == all) {
      out.append(by_mode ? subtree(layout, first, end)
                         : make_layout(layout.extents[first], layout.strides[first]));
    }
    first = end;
  }
  if (out.layout.leaves == 0 && !out.overflow) return make_layout(1, 0);
  return out.done_tuple();
}

KILN_HD constexpr int count_all(const Coord& coord) {
  int count = 0;
  for (int i = 0; i < coord.count; ++i) count += coord.at[i] == kAll ? 1 : 0;
  return count;
}

}  // namespace detail

// What stays of `layout` when the numbers of `coord` are fixed: one mode for each kAll. One number
// for each mode, or one for each leaf. Nothing left to vary gives the layout 1:0.
[[nodiscard]] KILN_HD constexpr Slice slice(Coord coord, const Layout& layout) {
  const Layout kept = detail::keep(coord, layout, true);
  if (!kept.valid()) return {};
  for (int i = 0; i < coord.count; ++i) {
    if (coord.at[i] == kAll) coord.at[i] = 0;
  }
  return {kept, crd2idx(coord, layout)};
}

// The modes that `coord` fixes, which slice() drops; 1:0 when it fixes none.
[[nodiscard]] KILN_HD constexpr Layout dice(const Coord& coord, const Layout& layout) {
  return detail::keep(coord, layout, false);
}

// The tiles, and the numbers of `what`, that stand where `coord` has a number. So a step like
// make_coord(1, kAll, 1) takes the (M, K) part of an (M, N, K) tiler and of a coordinate.
[[nodiscard]] KILN_HD constexpr Tiler dice(const Coord& coord, const Tiler& tiler) {
  if (coord.count != rank(tiler) || detail::count_all(coord) == coord.count) return {};
  return {detail::keep(coord, tiler.modes, false)};
}
[[nodiscard]] KILN_HD constexpr Coord dice(const Coord& coord, const Coord& what) {
  Coord out;
  for (int i = 0; i < coord.count && i < what.count; ++i) {
    if (coord.at[i] != kAll) out.at[out.count++] = what.at[i];
  }
  return out;
}

// Tile number `coord` of `layout`: the modes of the tile, then one mode for each kAll in `coord`.
// `coord` counts tiles and has one number for each mode that runs over tiles; those it lacks are
// kAll.
template <class AnyTiler>
[[nodiscard]] KILN_HD constexpr Slice local_tile(const Layout& layout, const AnyTiler& tiler,
                                                 Coord coord) {
  const Layout zipped = zipped_divide(layout, tiler);
  const Layout rests = mode(zipped, 1);
  while (coord.count < rank(rests)) coord.at[coord.count++] = kAll;
  const Slice picked = slice(coord, rests);
  detail::LayoutBuilder out;
  detail::append_modes(out, mode(zipped, 0));
  if (!picked.layout.valid()) return {};
  if (detail::count_all(coord) > 0) detail::append_modes(out, picked.layout);
  return {out.done_tuple(), picked.offset};
}

// Tile number `i`, counting all tiles in a row.
template <class AnyTiler>
[[nodiscard]] KILN_HD constexpr Slice local_tile(const Layout& layout, const AnyTiler& tiler,
                                                 Index i) {
  const Layout zipped = zipped_divide(layout, tiler);
  if (!zipped.valid()) return {};
  detail::LayoutBuilder out;
  detail::append_modes(out, mode(zipped, 0));
  return {out.done_tuple(), mode(zipped, 1)(i)};
}

// Only with those tiles and numbers for which `step` has a number, not kAll:
// local_tile(a, cta_tiler, cta_coord, make_coord(1, kAll, 1)).
[[nodiscard]] KILN_HD constexpr Slice local_tile(const Layout& layout, const Tiler& tiler,
                                                 const Coord& coord, const Coord& step) {
  return local_tile(layout, dice(step, tiler), dice(step, coord));
}

namespace detail {

// For each mode of `threads` its linear coordinate of the thread with index `i`.
KILN_HD constexpr Coord thread_coord(const Layout& threads, Index i) {
  Coord coord;
  for (int first = 0; first < threads.leaves; ++coord.count) {
    const int end = mode_end(threads, first);
    Index weight = 1;
    for (; first < end; ++first) {
      const Index stride = threads.strides[first];
      if (stride > 0) coord.at[coord.count] += i / stride % threads.extents[first] * weight;
      weight *= threads.extents[first];
    }
  }
  return coord;
}

}  // namespace detail

// The elements of `layout` that thread `i` takes when the threads, arranged as `threads` says
// (coordinate -> thread number), lie on it in whole copies: one mode for each mode of `layout`.
[[nodiscard]] KILN_HD constexpr Slice local_partition(const Layout& layout, const Layout& threads,
                                                      Index i) {
  detail::LayoutBuilder tiles;
  for (int m = 0; m < rank(threads); ++m) tiles.leaf(size(threads, m), 1);
  const Layout zipped = zipped_divide(layout, Tiler{tiles.done_tuple()});
  if (!zipped.valid()) return {};
  return {mode(zipped, 1), crd2idx(detail::thread_coord(threads, i), mode(zipped, 0))};
}

// Only with those modes of `threads` for which `step` has a number, not kAll.
[[nodiscard]] KILN_HD constexpr Slice local_partition(const Layout& layout, const Layout& threads,
                                                      Index i, const Coord& step) {
  return local_partition(layout, dice(step, threads), i);
}

}  // namespace kiln
