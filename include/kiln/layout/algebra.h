// The algebra proper: coalesce, composition, complement and the inverses.
//
//   composition(20:2, (5,4):(4,1))  ==  (5,4):(8,2)     // first the right one, then the left
//   complement(4:2, 24)             ==  (2,3):(1,8)     // what 4:2 leaves out of [0, 24)
//   right_inverse((4,8):(8,1))      ==  (8,4):(4,1)     // from an index back to its coordinate
//
// Include kiln/layout.h, which has the whole algebra.
#pragma once

#include "kiln/layout/value.h"

namespace kiln {

// `layout` as a function of a linear coordinate, in the fewest leaves: extents of 1 dropped,
// neighbours that count on merged. coalesce((2,(1,6)):(1,(6,2))) == 12:1. Nothing left gives 1:0.
[[nodiscard]] KILN_HD constexpr Layout coalesce(const Layout& layout) {
  if (!layout.valid()) return {};
  detail::LayoutBuilder out;
  for (int i = 0; i < layout.leaves; ++i) {
    if (layout.extents[i] == 1) continue;
    const int last = out.layout.leaves - 1;
    if (last >= 0 && out.layout.extents[last] * out.layout.strides[last] == layout.strides[i]) {
      out.layout.extents[last] *= layout.extents[i];
    } else {
      out.leaf(layout.extents[i], layout.strides[i]);
    }
  }
  if (out.layout.leaves == 0) out.leaf(1, 0);
  return out.done_flat();
}

// Mode by mode where `profile` is a tuple (only its nesting counts), as deep as it nests; modes
// that it lacks stay as they are: coalesce((2,(1,6)):(1,(6,2)), (1,1)) == (2,6):(1,2).
[[nodiscard]] KILN_HD constexpr Layout coalesce(const Layout& layout, const Layout& profile) {
  if (!detail::is_tuple(profile)) return profile.valid() ? coalesce(layout) : Layout{};
  const int modes = rank(layout);
  if (rank(profile) > modes) return {};
  detail::LayoutBuilder out;
  for (int i = 0; i < modes; ++i) {
    const Layout whole = mode(layout, i);
    out.append(i < rank(profile) ? coalesce(whole, mode(profile, i)) : whole);
  }
  return out.done_tuple();
}

// What remains when the leaves of stride 0 (and of extent 1) are dropped, coalesced: the same set
// of indices, each as often as those leaves do not repeat it. filter((4,2,3):(1,0,4)) == 12:1.
[[nodiscard]] KILN_HD constexpr Layout filter(Layout layout) {
  for (int i = 0; i < layout.leaves; ++i) {
    if (layout.strides[i] == 0) layout.extents[i] = 1;
  }
  return coalesce(layout);
}

// All leaves side by side, none merged: flatten((4,(2,3)):(6,(1,2))) == (4,2,3):(6,1,2). A bare
// leaf stays bare.
[[nodiscard]] KILN_HD constexpr Layout flatten(Layout layout) {
  if (!detail::is_tuple(layout)) return layout;
  for (int i = 0; i < layout.leaves; ++i) {
    layout.opens[i] = i == 0 ? 1 : 0;
    layout.closes[i] = i == layout.leaves - 1 ? 1 : 0;
  }
  return layout;
}

// Modes [begin, end) as one mode, the others as they are: group((2,3,5):(1,2,6), 0, 2) is
// ((2,3),5):((1,2),6). Needs 0 <= begin < end <= rank(layout).
[[nodiscard]] KILN_HD constexpr Layout group(const Layout& layout, int begin, int end) {
  const int modes = rank(layout);
  if (begin < 0 || begin >= end || end > modes) return {};
  detail::LayoutBuilder out;
  for (int i = 0; i < modes; ++i) {
    out.append(mode(layout, i), i == begin ? 1 : 0, i == end - 1 ? 1 : 0);
  }
  return out.done_tuple();
}

namespace detail {

// Composes a flat, coalesced A with the leaves of B, one by one, in the digits that A's leaves give
// to an index. Where digits add up without a carry A is linear, so a leaf of B is cut where its
// steps would carry; `low` and `high` are the sums of digits that all leaves together reach.
struct Composer {
  Layout a;
  Index low[Layout::kLeavesMax] = {};
  Index high[Layout::kLeavesMax] = {};

  // How many of `extent` steps of `stride` > 0 are taken before a digit carries.
  [[nodiscard]] KILN_HD constexpr Index steps_without_carry(Index extent, Index stride) const {
    for (int i = 0; i < a.leaves - 1; ++i) {
      const Index digit = stride % a.extents[i];
      if (digit > 0) extent = smaller(extent, ceil_div(a.extents[i], digit));
      stride /= a.extents[i];
    }
    return extent;
  }

  // Adds the digits of `last`, the last index of a leaf, to the sums of its sign.
  KILN_HD constexpr void reach(Index last, bool negative) {
    for (int i = 0; i < a.leaves; ++i) {
      const bool top = i == a.leaves - 1;
      (negative ? low : high)[i] += top ? last : last % a.extents[i];
      last /= a.extents[i];
    }
  }

  // A o (extent:stride); invalid when the steps do not divide where they carry.
  KILN_HD constexpr Layout leaf(Index extent, Index stride) {
    if (stride == 0 || a.leaves == 1) return make_layout(extent, stride * a.strides[0]);
    const bool negative = stride < 0;
    stride = magnitude(stride);
    LayoutBuilder out;
    do {
      const Index steps = steps_without_carry(extent, stride);
      if (extent % steps != 0) return {};
      out.leaf(steps, negative ? -a(stride) : a(stride));
      reach((steps - 1) * stride, negative);
      extent /= steps;
      stride *= steps;
    } while (extent > 1);
    return out.done_flat();
  }

  // Whether the leaves taken so far add up without a carry or a borrow.
  [[nodiscard]] KILN_HD constexpr bool additive() const {
    int rising = 0;
    int falling = 0;
    bool same_digit = true;
    for (int i = 0; i < a.leaves; ++i) {
      if (i < a.leaves - 1 && (low[i] >= a.extents[i] || high[i] >= a.extents[i])) return false;
      rising += high[i] > 0 ? 1 : 0;
      falling += low[i] > 0 ? 1 : 0;
      same_digit = same_digit && (high[i] > 0) == (low[i] > 0);
    }
    return rising == 0 || falling == 0 || (same_digit && rising == 1);
  }
};

}  // namespace detail

// A o B: composition(a, b)(c) == a(b(c)) wherever b(c) < size(a). The result nests as B does, each
// leaf of B refined as needed: (10,2):(16,4) o (5,4):(1,5) == (5,(2,2)):(16,(80,4)).
[[nodiscard]] KILN_HD constexpr Layout composition(const Layout& a, const Layout& b) {
  if (!a.valid() || !b.valid()) return {};
  detail::Composer composer{coalesce(a)};
  detail::LayoutBuilder out;
  for (int i = 0; i < b.leaves; ++i) {
    out.append(composer.leaf(b.extents[i], b.strides[i]), b.opens[i], b.closes[i]);
  }
  return composer.additive() ? out.done() : Layout{};
}

namespace detail {

// The leaves of `layout` with an extent above 1, in ascending order of stride; `position[i]` is the
// stride leaf i has in the compact layout of the same shape.
struct SortedLeaves {
  Index extents[Layout::kLeavesMax] = {};
  Index strides[Layout::kLeavesMax] = {};
  Index positions[Layout::kLeavesMax] = {};
  int count = 0;
};

KILN_HD constexpr SortedLeaves sorted_leaves(const Layout& layout) {
  SortedLeaves out;
  Index position = 1;
  for (int i = 0; i < layout.leaves; ++i) {
    const Index extent = layout.extents[i];
    const Index here = position;
    position *= extent;
    if (extent == 1) continue;
    int at = out.count++;
    for (; at > 0 && out.strides[at - 1] > layout.strides[i]; --at) {
      out.extents[at] = out.extents[at - 1];
      out.strides[at] = out.strides[at - 1];
      out.positions[at] = out.positions[at - 1];
    }
    out.extents[at] = extent;
    out.strides[at] = layout.strides[i];
    out.positions[at] = here;
  }
  return out;
}

}  // namespace detail

// Whether the layout reaches each index of [0, size) exactly once.
[[nodiscard]] KILN_HD constexpr bool is_bijective(const Layout& layout) {
  if (!layout.valid()) return false;
  const detail::SortedLeaves sorted = detail::sorted_leaves(layout);
  Index next = 1;
  for (int i = 0; i < sorted.count; ++i) {
    if (sorted.strides[i] != next) return false;
    next *= sorted.extents[i];
  }
  return true;
}

// The layout of what `layout` leaves out: disjoint from it except at 0, ascending, and together
// with it covering [0, target) (rounded up to whole periods). complement(4:2, 24) == (2,3):(1,8).
// Strides of 0 are ignored; overlapping or ill-dividing leaves have no complement. Needs target >
// 0.
[[nodiscard]] KILN_HD constexpr Layout complement(const Layout& layout, Index target) {
  if (!layout.valid() || target < 1) return {};
  const detail::SortedLeaves sorted = detail::sorted_leaves(layout);
  detail::LayoutBuilder out;
  Index covered = 1;
  for (int i = 0; i < sorted.count; ++i) {
    const Index stride = sorted.strides[i];
    if (stride == 0) continue;
    if (stride < 0 || stride % covered != 0) return {};
    out.leaf(stride / covered, covered);
    covered = stride * sorted.extents[i];
  }
  out.leaf(detail::ceil_div(target, covered), covered);
  return coalesce(out.done());
}

// The complement up to the layout's own cosize: the gaps alone.
[[nodiscard]] KILN_HD constexpr Layout complement(const Layout& layout) {
  return complement(layout, cosize(layout));
}

// R with layout(R(i)) == i for i < size(R), as large as whole leaves allow.
[[nodiscard]] KILN_HD constexpr Layout right_inverse(const Layout& layout) {
  if (!layout.valid()) return {};
  const detail::SortedLeaves sorted = detail::sorted_leaves(layout);
  detail::LayoutBuilder out;
  Index next = 1;
  for (int i = 0; i < sorted.count; ++i) {
    if (sorted.strides[i] < next) continue;
    if (sorted.strides[i] != next) break;
    out.leaf(sorted.extents[i], sorted.positions[i]);
    next *= sorted.extents[i];
  }
  if (out.layout.leaves == 0) out.leaf(1, 0);
  return coalesce(out.done());
}

// L with L(layout(i)) == i for i < size(layout), for an injective layout that has a complement.
// Leaves of stride 0 are given coordinate 0, and then only layout(L(layout(i))) == layout(i) holds.
[[nodiscard]] KILN_HD constexpr Layout left_inverse(const Layout& layout) {
  return right_inverse(make_layout(layout, complement(layout)));
}

// ---- two layouts of the same thing ---------------------------------------------------------

// The longest run of indices that lies in the same order in both layouts: R with a(R(i)) == i and
// b(R(i)) == i for i < size(R). What a copy from one to the other may move in one piece.
// max_common_layout((4,8):(1,4), (4,8):(1,8)) == 4:1, as columns of 4 are contiguous in both.
[[nodiscard]] KILN_HD constexpr Layout max_common_layout(const Layout& a, const Layout& b) {
  const Layout from_a = right_inverse(a);
  const Layout from_b = right_inverse(b);
  if (!from_a.valid() || !from_b.valid()) return {};
  detail::LayoutBuilder out;
  for (int i = 0; i < from_a.leaves && i < from_b.leaves; ++i) {
    if (from_a.strides[i] != from_b.strides[i]) break;
    const Index extent = detail::smaller(from_a.extents[i], from_b.extents[i]);
    out.leaf(extent, from_a.strides[i]);
    if (from_a.extents[i] != from_b.extents[i]) break;
  }
  if (out.layout.leaves == 0) out.leaf(1, 0);
  return out.done_flat();
}

// The length of that run, at least 1.
[[nodiscard]] KILN_HD constexpr Index max_common_vector(const Layout& a, const Layout& b) {
  return size(max_common_layout(a, b));
}

}  // namespace kiln
