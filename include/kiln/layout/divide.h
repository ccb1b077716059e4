// Tilers and the divisions: a layout cut into a tile and what repeats it, and products the other
// way.
//
//   logical_divide((4,2,3):(2,1,8), 4:2)         ==  ((2,2),(2,3)):((4,1),(2,8))
//   zipped_divide((128,64), make_tiler(32, 16))  ==  ((32,16),(4,4)):((1,128),(32,2048))
//   logical_product((2,2):(4,1), 6:1)            ==  ((2,2),(2,3)):((4,1),(2,8))
//
// The first mode of a division is the tile, the rest says where the tiles lie. A `Layout` as tiler
// divides the linear coordinate; a `Tiler` has one layout for each mode and divides them apart.
// Include kiln/layout.h, which has the whole algebra.
#pragma once

#include "kiln/layout/algebra.h"
#include "kiln/layout/swizzle.h"
#include "kiln/layout/value.h"

namespace kiln {

// One tile layout for each mode of what is divided: mode i of `modes` is the tile of mode i. Modes
// past the last are left whole. Structural, as Layout is.
struct Tiler {
  Layout modes;  // always a tuple

  [[nodiscard]] KILN_HD constexpr bool valid() const { return modes.valid(); }

  friend KILN_HD constexpr bool operator==(const Tiler&, const Tiler&) = default;
};

namespace detail {

KILN_HD constexpr Layout tile_of(Index extent) { return make_layout(extent, 1); }
KILN_HD constexpr const Layout& tile_of(const Layout& layout) { return layout; }

}  // namespace detail

// From layouts or plain extents, in any mix: make_tiler(128, "2:4"_layout) is <128:1, 2:4>.
template <class... Tiles>
[[nodiscard]] KILN_HD constexpr Tiler make_tiler(const Tiles&... tiles) {
  return {make_layout(Layout(detail::tile_of(tiles))...)};
}

[[nodiscard]] KILN_HD constexpr int rank(const Tiler& tiler) { return rank(tiler.modes); }
[[nodiscard]] KILN_HD constexpr Index size(const Tiler& tiler) { return size(tiler.modes); }
[[nodiscard]] KILN_HD constexpr Index size(const Tiler& tiler, int i) {
  return size(tiler.modes, i);
}

namespace detail {

// The modes of `layout` in a row, without the brackets around all of them.
KILN_HD constexpr void append_modes(LayoutBuilder& out, const Layout& layout) {
  if (!layout.valid()) out.overflow = true;
  for (int first = 0; first < layout.leaves;) {
    const int end = mode_end(layout, first);
    out.append(subtree(layout, first, end));
    first = end;
  }
}

using LayoutOperation = Layout (*)(const Layout&, const Layout&);

// Mode i of the result is kOperation(mode i, tile i); modes past the last tile stay whole.
template <LayoutOperation kOperation>
KILN_HD constexpr Layout by_mode(const Layout& layout, const Tiler& tiler) {
  const int tiles = rank(tiler);
  const int modes = rank(layout);
  if (tiles == 0 || tiles > modes) return {};
  LayoutBuilder out;
  for (int i = 0; i < modes; ++i) {
    const Layout whole = mode(layout, i);
    out.append(i < tiles ? kOperation(whole, mode(tiler.modes, i)) : whole);
  }
  return out.done_tuple();
}

// ((a,b),(c,d),e) => ((a,c),(b,d,e)): the first `pairs` modes, of two modes each, taken apart.
KILN_HD constexpr Layout unzip(const Layout& layout, int pairs) {
  LayoutBuilder firsts;
  LayoutBuilder seconds;
  for (int i = 0; i < rank(layout); ++i) {
    const Layout whole = mode(layout, i);
    if (i < pairs) firsts.append(mode(whole, 0));
    seconds.append(i < pairs ? mode(whole, 1) : whole);
  }
  return make_layout(firsts.done_tuple(), seconds.done_tuple());
}

// (a,(b,c)) => (a,b,c)
KILN_HD constexpr Layout unpack_second(const Layout& layout) {
  LayoutBuilder out;
  out.append(mode(layout, 0));
  append_modes(out, mode(layout, 1));
  return out.done_tuple();
}

// ((a,b),(c,d)) => (a,b,c,d)
KILN_HD constexpr Layout unpack_both(const Layout& layout) {
  LayoutBuilder out;
  append_modes(out, mode(layout, 0));
  append_modes(out, mode(layout, 1));
  return out.done_tuple();
}

}  // namespace detail

// ---- division ------------------------------------------------------------------------------

// Mode by mode: mode i of the result is composition(mode i of `a`, tile i).
[[nodiscard]] KILN_HD constexpr Layout composition(const Layout& a, const Tiler& tiler) {
  return detail::by_mode<composition>(a, tiler);
}
[[nodiscard]] KILN_HD constexpr Swizzled composition(const Swizzled& a, const Tiler& tiler) {
  return {a.swizzle, composition(a.layout, tiler)};
}

// Mode 0 is the tile that `tiler` picks out of `layout`, mode 1 runs over the tiles. A tile that
// does not divide the layout is rounded up: the last tile then reaches past size(layout).
[[nodiscard]] KILN_HD constexpr Layout logical_divide(const Layout& layout, const Layout& tiler) {
  return composition(layout, make_layout(tiler, complement(tiler, size(layout))));
}
// Mode by mode: mode i of the result is (tile i, what repeats it).
[[nodiscard]] KILN_HD constexpr Layout logical_divide(const Layout& layout, const Tiler& tiler) {
  return detail::by_mode<logical_divide>(layout, tiler);
}

// logical_divide, gathered into one mode for the tile and one that runs over the tiles: for a Tiler
// ((tile 0, tile 1, ...), (rest 0, rest 1, ..., modes left whole)).
[[nodiscard]] KILN_HD constexpr Layout zipped_divide(const Layout& layout, const Layout& tiler) {
  return logical_divide(layout, tiler);
}
[[nodiscard]] KILN_HD constexpr Layout zipped_divide(const Layout& layout, const Tiler& tiler) {
  return detail::unzip(logical_divide(layout, tiler), rank(tiler));
}

// zipped_divide with the second mode's own modes side by side: (tile, rest 0, rest 1, ...).
template <class AnyTiler>
[[nodiscard]] KILN_HD constexpr Layout tiled_divide(const Layout& layout, const AnyTiler& tiler) {
  return detail::unpack_second(zipped_divide(layout, tiler));
}

// zipped_divide with all modes side by side: (tile 0, tile 1, ..., rest 0, rest 1, ...).
template <class AnyTiler>
[[nodiscard]] KILN_HD constexpr Layout flat_divide(const Layout& layout, const AnyTiler& tiler) {
  return detail::unpack_both(zipped_divide(layout, tiler));
}

// A swizzled layout is divided below its swizzle.
template <class AnyTiler>
[[nodiscard]] KILN_HD constexpr Swizzled logical_divide(const Swizzled& s, const AnyTiler& tiler) {
  return {s.swizzle, logical_divide(s.layout, tiler)};
}
template <class AnyTiler>
[[nodiscard]] KILN_HD constexpr Swizzled zipped_divide(const Swizzled& s, const AnyTiler& tiler) {
  return {s.swizzle, zipped_divide(s.layout, tiler)};
}
template <class AnyTiler>
[[nodiscard]] KILN_HD constexpr Swizzled tiled_divide(const Swizzled& s, const AnyTiler& tiler) {
  return {s.swizzle, tiled_divide(s.layout, tiler)};
}
template <class AnyTiler>
[[nodiscard]] KILN_HD constexpr Swizzled flat_divide(const Swizzled& s, const AnyTiler& tiler) {
  return {s.swizzle, flat_divide(s.layout, tiler)};
}
// ---- products ------------------------------------------------------------------------------

// Mode 0 is `layout`, mode 1 repeats it, disjointly, in the arrangement of `tiler`.
[[nodiscard]] KILN_HD constexpr Layout logical_product(const Layout& layout, const Layout& tiler) {
  const Layout rest = complement(layout, size(layout) * cosize(tiler));
  return make_layout(layout, composition(rest, tiler));
}

// Mode by mode: mode i of the result is (mode i, tile i's arrangement of it).
[[nodiscard]] KILN_HD constexpr Layout logical_product(const Layout& layout, const Tiler& tiler) {
  return detail::by_mode<logical_product>(layout, tiler);
}

// The products in the arrangements that the divisions have.
[[nodiscard]] KILN_HD constexpr Layout zipped_product(const Layout& layout, const Layout& tiler) {
  return logical_product(layout, tiler);
}
[[nodiscard]] KILN_HD constexpr Layout zipped_product(const Layout& layout, const Tiler& tiler) {
  return detail::unzip(logical_product(layout, tiler), rank(tiler));
}
template <class AnyTiler>
[[nodiscard]] KILN_HD constexpr Layout tiled_product(const Layout& layout, const AnyTiler& tiler) {
  return detail::unpack_second(zipped_product(layout, tiler));
}
template <class AnyTiler>
[[nodiscard]] KILN_HD constexpr Layout flat_product(const Layout& layout, const AnyTiler& tiler) {
  return detail::unpack_both(zipped_product(layout, tiler));
}

namespace detail {

// As a tuple of at least `modes` modes, filled up with 1:0.
KILN_HD constexpr Layout padded(const Layout& layout, int modes) {
  LayoutBuilder out;
  append_modes(out, layout);
  for (int i = rank(layout); i < modes; ++i) out.leaf(1, 0);
  return out.done_tuple();
}

// logical_product of both at the same rank, with mode i of one beside mode i of the other.
KILN_HD constexpr Layout zipped_by_mode(const Layout& block, const Layout& tiler, bool raked) {
  const int modes = rank(block) > rank(tiler) ? rank(block) : rank(tiler);
  const Layout product = logical_product(padded(block, modes), padded(tiler, modes));
  const Layout inner = mode(product, raked ? 1 : 0);
  const Layout outer = mode(product, raked ? 0 : 1);
  LayoutBuilder out;
  for (int i = 0; i < modes; ++i) out.append(make_layout(mode(inner, i), mode(outer, i)));
  return product.valid() ? out.done_tuple() : Layout{};
}

}  // namespace detail

// `block` repeated as `tiler` says, whole block beside whole block: mode i of the result is
// (block mode i, tiler mode i). blocked_product((2,5):(5,1), (3,4):(1,3)) is
// ((2,3),(5,4)):((5,10),(1,30)), a 6x20 layout made of 2x5 blocks.
[[nodiscard]] KILN_HD constexpr Layout blocked_product(const Layout& block, const Layout& tiler) {
  return detail::zipped_by_mode(block, tiler, false);
}

// `block` repeated as `tiler` says, the blocks interleaved: mode i of the result is (tiler mode i,
// block mode i), so neighbours come from different blocks.
[[nodiscard]] KILN_HD constexpr Layout raked_product(const Layout& block, const Layout& tiler) {
  return detail::zipped_by_mode(block, tiler, true);
}

}  // namespace kiln
