// The value at the bottom of the algebra: what a layout is, what it answers, how it counts.
//
//   constexpr Layout c = make_layout(make_layout(4, 32), make_layout(2, 16));   // (4,2):(32,16)
//   c(5)    ==  1 * 32 + 1 * 16  ==  48         // linear coordinate 5 is (1,1)
//   c(3, 1) ==  3 * 32 + 1 * 16  ==  112        // one number for each mode
//   rank(c) == 2,  size(c) == 8,  cosize(c) == 113,  mode(c, 1) == 2:16
//
// Include kiln/layout.h, which has the whole algebra; this is its first part.
#pragma once

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define KILN_HD __host__ __device__
#else
#define KILN_HD
#endif

#if !defined(__CUDACC_RTC__)
#include <cstdint>
#endif

namespace kiln {

#if defined(__CUDACC_RTC__)
using Index = long long;
using LeafDepth = unsigned char;
#else
using Index = std::int64_t;
using LeafDepth = std::uint8_t;
#endif

// A layout, as a structural type. The nesting is kept the way it is written: leaf i is preceded by
// `opens[i]` opening and followed by `closes[i]` closing brackets, so "(4,(2,3))" has opens {1,1,0}
// and closes {0,0,2}, and a bare "4" has neither. Entries past `leaves` are zero, which makes
// memberwise equality and template identity the equality of layouts.
struct Layout {
  static constexpr int kLeavesMax = 16;

  Index extents[kLeavesMax] = {};
  Index strides[kLeavesMax] = {};
  LeafDepth opens[kLeavesMax] = {};
  LeafDepth closes[kLeavesMax] = {};
  int leaves = 0;

  // False for the default-constructed layout and for the result of an operation with no answer.
  [[nodiscard]] KILN_HD constexpr bool valid() const { return leaves > 0; }

  // The index of the linear coordinate `i`. Past size(*this) the last leaf keeps counting.
  [[nodiscard]] KILN_HD constexpr Index operator()(Index i) const;
  // The index of one linear coordinate for each mode: `layout(lane, value)`.
  template <class... Rest>
  [[nodiscard]] KILN_HD constexpr Index operator()(Index first, Index second, Rest... rest) const;

  friend KILN_HD constexpr bool operator==(const Layout&, const Layout&) = default;
};

// A coordinate: one number for each leaf, or one for each mode (see crd2idx).
struct Coord {
  Index at[Layout::kLeavesMax] = {};
  int count = 0;

  friend KILN_HD constexpr bool operator==(const Coord&, const Coord&) = default;
};

namespace detail {

KILN_HD constexpr Index ceil_div(Index a, Index b) { return (a + b - 1) / b; }
KILN_HD constexpr Index magnitude(Index a) { return a < 0 ? -a : a; }
KILN_HD constexpr Index smaller(Index a, Index b) { return a < b ? a : b; }

// Appends one leaf; past the limit the layout becomes invalid and stays so.
struct LayoutBuilder {
  Layout layout;
  bool overflow = false;

  KILN_HD constexpr void leaf(Index extent, Index stride, int opens = 0, int closes = 0) {
    if (overflow || layout.leaves == Layout::kLeavesMax) {
      overflow = true;
      return;
    }
    const int i = layout.leaves++;
    layout.extents[i] = extent;
    layout.strides[i] = stride;
    layout.opens[i] = static_cast<LeafDepth>(opens);
    layout.closes[i] = static_cast<LeafDepth>(closes);
  }

  // All leaves of `part`, inside `opens` and `closes` further brackets.
  KILN_HD constexpr void append(const Layout& part, int opens = 0, int closes = 0) {
    if (!part.valid()) overflow = true;
    for (int i = 0; i < part.leaves; ++i) {
      leaf(part.extents[i], part.strides[i], part.opens[i] + (i == 0 ? opens : 0),
           part.closes[i] + (i == part.leaves - 1 ? closes : 0));
    }
  }

  [[nodiscard]] KILN_HD constexpr Layout done() const { return overflow ? Layout{} : layout; }

  // One leaf stands bare, several become one tuple. Only for builders of bare leaves.
  [[nodiscard]] KILN_HD constexpr Layout done_flat() const {
    Layout out = done();
    if (out.leaves > 1) {
      out.opens[0] = 1;
      out.closes[out.leaves - 1] = 1;
    }
    return out;
  }

  // What was appended, as the modes of one tuple.
  [[nodiscard]] KILN_HD constexpr Layout done_tuple() const {
    Layout out = done();
    if (out.leaves > 0) {
      ++out.opens[0];
      ++out.closes[out.leaves - 1];
    }
    return out;
  }
};

// Whether the root is a tuple "( ... )" rather than a bare leaf.
KILN_HD constexpr bool is_tuple(const Layout& layout) {
  return layout.valid() && layout.opens[0] > 0;
}

// One past the last leaf of the mode that starts at leaf `first`.
KILN_HD constexpr int mode_end(const Layout& layout, int first) {
  if (!is_tuple(layout)) return layout.leaves;
  int depth = first == 0 ? -1 : 0;  // the root's own bracket does not count
  for (int i = first; i < layout.leaves; ++i) {
    depth += layout.opens[i] - layout.closes[i];
    if (depth <= 0) return i + 1;
  }
  return layout.leaves;
}

}  // namespace detail

// ---- questions -----------------------------------------------------------------------------

// The number of modes: 1 for a bare leaf, 0 for an invalid layout.
[[nodiscard]] KILN_HD constexpr int rank(const Layout& layout) {
  int modes = 0;
  for (int first = 0; first < layout.leaves; first = detail::mode_end(layout, first)) ++modes;
  return modes;
}

// How deeply tuples nest: 0 for a bare leaf, 2 for "((4,8),2)".
[[nodiscard]] KILN_HD constexpr int depth(const Layout& layout) {
  int now = 0;
  int deepest = 0;
  for (int i = 0; i < layout.leaves; ++i) {
    now += layout.opens[i];
    if (now > deepest) deepest = now;
    now -= layout.closes[i];
  }
  return deepest;
}

// The number of coordinates; 0 for an invalid layout.
[[nodiscard]] KILN_HD constexpr Index size(const Layout& layout) {
  Index product = layout.valid() ? 1 : 0;
  for (int i = 0; i < layout.leaves; ++i) product *= layout.extents[i];
  return product;
}

// One past the largest index, reading negative strides by magnitude; 0 for an invalid layout.
[[nodiscard]] KILN_HD constexpr Index cosize(const Layout& layout) {
  if (!layout.valid()) return 0;
  Index last = 0;
  for (int i = 0; i < layout.leaves; ++i) {
    last += (layout.extents[i] - 1) * detail::magnitude(layout.strides[i]);
  }
  return last + 1;
}

namespace detail {

// Leaves [first, end), which are one mode, as a layout of its own.
KILN_HD constexpr Layout subtree(const Layout& layout, int first, int end) {
  Layout out;
  for (int leaf = first; leaf < end; ++leaf) {
    const int i = out.leaves++;
    out.extents[i] = layout.extents[leaf];
    out.strides[i] = layout.strides[leaf];
    out.opens[i] = layout.opens[leaf];
    out.closes[i] = layout.closes[leaf];
  }
  if (out.leaves > 0 && is_tuple(layout)) {
    if (first == 0) --out.opens[0];
    if (end == layout.leaves) --out.closes[out.leaves - 1];
  }
  return out;
}

}  // namespace detail

// Mode `i` as a layout of its own; invalid when there is no such mode.
[[nodiscard]] KILN_HD constexpr Layout mode(const Layout& layout, int i) {
  int first = 0;
  for (; i > 0 && first < layout.leaves; --i) first = detail::mode_end(layout, first);
  if (i != 0 || first >= layout.leaves) return {};
  return detail::subtree(layout, first, detail::mode_end(layout, first));
}

// The number of coordinates of mode `i`; 0 when there is no such mode.
[[nodiscard]] KILN_HD constexpr Index size(const Layout& layout, int i) {
  return size(mode(layout, i));
}

// Whether both are the same tree of brackets, whatever the numbers.
[[nodiscard]] KILN_HD constexpr bool congruent(const Layout& a, const Layout& b) {
  if (a.leaves != b.leaves) return false;
  for (int i = 0; i < a.leaves; ++i) {
    if (a.opens[i] != b.opens[i] || a.closes[i] != b.closes[i]) return false;
  }
  return true;
}

// Whether both have the same nesting and the same extents.
[[nodiscard]] KILN_HD constexpr bool same_shape(const Layout& a, const Layout& b) {
  if (!congruent(a, b)) return false;
  for (int i = 0; i < a.leaves; ++i) {
    if (a.extents[i] != b.extents[i]) return false;
  }
  return true;
}

// ---- coordinates ---------------------------------------------------------------------------

// The coordinate of these numbers: make_coord(3, 1).
template <class... Ints>
[[nodiscard]] KILN_HD constexpr Coord make_coord(Ints... numbers) {
  return {{static_cast<Index>(numbers)...}, static_cast<int>(sizeof...(Ints))};
}

// The coordinate with one number for each leaf that `i` counts to. The last leaf is not reduced, so
// that i >= size(layout) keeps counting there.
[[nodiscard]] KILN_HD constexpr Coord idx2crd(Index i, const Layout& layout) {
  Coord coord;
  coord.count = layout.leaves;
  for (int leaf = 0; leaf < layout.leaves; ++leaf) {
    const bool last = leaf == layout.leaves - 1;
    coord.at[leaf] = last ? i : i % layout.extents[leaf];
    i = last ? 0 : i / layout.extents[leaf];
  }
  return coord;
}

// The index of a coordinate with one number for each leaf or, when the count is the rank instead,
// one linear number for each mode. Any other count gives -1.
[[nodiscard]] KILN_HD constexpr Index crd2idx(const Coord& coord, const Layout& layout) {
  Index index = 0;
  if (coord.count == layout.leaves) {
    for (int leaf = 0; leaf < layout.leaves; ++leaf) index += coord.at[leaf] * layout.strides[leaf];
    return index;
  }
  if (coord.count != rank(layout)) return -1;
  int first = 0;
  for (int m = 0; m < coord.count; ++m) {
    const int end = detail::mode_end(layout, first);
    Index rest = coord.at[m];
    for (int leaf = first; leaf < end - 1; ++leaf) {
      index += rest % layout.extents[leaf] * layout.strides[leaf];
      rest /= layout.extents[leaf];
    }
    index += rest * layout.strides[end - 1];
    first = end;
  }
  return index;
}

KILN_HD constexpr Index Layout::operator()(Index i) const {
  Index index = 0;
  for (int leaf = 0; leaf < leaves - 1; ++leaf) {
    index += i % extents[leaf] * strides[leaf];
    i /= extents[leaf];
  }
  return leaves > 0 ? index + i * strides[leaves - 1] : 0;
}

template <class... Rest>
KILN_HD constexpr Index Layout::operator()(Index first, Index second, Rest... rest) const {
  return crd2idx(make_coord(first, second, rest...), *this);
}

// ---- construction --------------------------------------------------------------------------

// The bare layout extent:stride; invalid when the extent is below 1.
[[nodiscard]] KILN_HD constexpr Layout make_layout(Index extent, Index stride) {
  if (extent < 1) return {};
  detail::LayoutBuilder out;
  out.leaf(extent, stride);
  return out.done();
}

// The layout whose modes are the given layouts: make_layout(4:1, (2,3):(4,8)) is
// (4,(2,3)):(1,(4,8)).
template <class... Layouts>
[[nodiscard]] KILN_HD constexpr Layout make_layout(const Layout& first, const Layouts&... rest) {
  constexpr int kCount = 1 + static_cast<int>(sizeof...(Layouts));
  const Layout modes[kCount] = {first, rest...};
  detail::LayoutBuilder out;
  for (int i = 0; i < kCount; ++i) out.append(modes[i]);
  return out.done_tuple();
}

// A layout of this shape with compact strides: first mode fastest, no gaps.
[[nodiscard]] KILN_HD constexpr Layout compact(Layout layout) {
  Index stride = 1;
  for (int i = 0; i < layout.leaves; ++i) {
    layout.strides[i] = stride;
    stride *= layout.extents[i];
  }
  return layout;
}

}  // namespace kiln
