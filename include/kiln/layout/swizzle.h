// Swizzles, layouts with a swizzle behind them, and the indices of both at compile time.
//
//   constexpr Swizzled s = composition(Swizzle{3, 4, 3}, "(8,128):(128,1)"_layout);   // bytes
//   s(5, 32)  ==  5 * 128 + (32 ^ 5 * 16)  ==  752     // chunk 2 of row 5 lies where chunk 7 would
//   index_at<s>(row, byte)                             // equal to s(row, byte), for device code
//
// Include kiln/layout.h, which has the whole algebra.
#pragma once

#include "kiln/layout/algebra.h"
#include "kiln/layout/value.h"

namespace kiln {

// A permutation of indices: the `bits` bits that start `shift` above `base` are xored into the
// `bits` bits that start at `base`. Swizzle{3, 4, 3} on byte addresses spreads eight rows of 128
// bytes over all banks: 16-byte chunk c of row r goes to chunk c ^ (r % 8). Its own inverse. With a
// negative shift the lower bits, at `base`, are xored into those -shift above.
struct Swizzle {
  int bits = 0;
  int base = 0;
  int shift = 0;  // at least `bits` in magnitude, so that source and target do not overlap

  [[nodiscard]] KILN_HD constexpr Index operator()(Index index) const {
    const Index mask = ((Index{1} << bits) - 1) << base;
    return shift < 0 ? index ^ ((index & mask) << -shift) : index ^ ((index >> shift) & mask);
  }

  friend KILN_HD constexpr bool operator==(const Swizzle&, const Swizzle&) = default;
};

// The number of indices after which the swizzle repeats.
[[nodiscard]] KILN_HD constexpr Index period(const Swizzle& swizzle) {
  const int reach = swizzle.shift < 0 ? -swizzle.shift : swizzle.shift;
  return swizzle.bits == 0 ? 1 : Index{1} << (swizzle.base + reach + swizzle.bits);
}

// A layout whose indices go through a swizzle: coordinate -> layout -> swizzle -> index.
// Structural, so it may be a template argument; a plain layout converts to it, with the swizzle
// that does nothing.
struct Swizzled {
  Swizzle swizzle;
  Layout layout;

  constexpr Swizzled() = default;
  KILN_HD constexpr Swizzled(const Layout& plain) : layout(plain) {}  // NOLINT: implicit
  KILN_HD constexpr Swizzled(const Swizzle& s, const Layout& l) : swizzle(s), layout(l) {}

  [[nodiscard]] KILN_HD constexpr bool valid() const { return layout.valid(); }

  [[nodiscard]] KILN_HD constexpr Index operator()(Index i) const { return swizzle(layout(i)); }
  template <class... Rest>
  [[nodiscard]] KILN_HD constexpr Index operator()(Index first, Index second, Rest... rest) const {
    return swizzle(layout(first, second, rest...));
  }

  friend KILN_HD constexpr bool operator==(const Swizzled&, const Swizzled&) = default;
};

// Swizzle o layout: what the layout reaches, permuted.
[[nodiscard]] KILN_HD constexpr Swizzled composition(const Swizzle& swizzle, const Layout& layout) {
  return {swizzle, layout};
}

// (swizzle o a) o b == swizzle o (a o b).
[[nodiscard]] KILN_HD constexpr Swizzled composition(const Swizzled& a, const Layout& b) {
  return {a.swizzle, composition(a.layout, b)};
}

[[nodiscard]] KILN_HD constexpr int rank(const Swizzled& s) { return rank(s.layout); }
[[nodiscard]] KILN_HD constexpr int depth(const Swizzled& s) { return depth(s.layout); }
[[nodiscard]] KILN_HD constexpr Index size(const Swizzled& s) { return size(s.layout); }
[[nodiscard]] KILN_HD constexpr Index size(const Swizzled& s, int i) { return size(s.layout, i); }

// Room for every index: the layout's own cosize while that reaches no bit the swizzle reads, else
// rounded up to the blocks that it permutes. cosize(Swizzle{3,4,3} o (9,16):(128,1)) == 1040, that
// of the layout, rounded up to 128, is 1152.
[[nodiscard]] KILN_HD constexpr Index cosize(const Swizzled& s) {
  const Index plain = cosize(s.layout);
  const int read = s.swizzle.base + (s.swizzle.shift > 0 ? s.swizzle.shift : 0);
  if (s.swizzle.bits == 0 || plain <= Index{1} << read) return plain;
  const int written = s.swizzle.base + (s.swizzle.shift < 0 ? -s.swizzle.shift : 0);
  const Index block = Index{1} << (written + s.swizzle.bits);
  return detail::ceil_div(plain, block) * block;
}

namespace detail {

// The part of an index that leaves [kLeaf, kEnd) contribute for the linear coordinate `i` of them.
template <Layout L, int kLeaf, int kEnd, class Int>
KILN_HD constexpr Int index_from_leaves(Int i) {
  if constexpr (kLeaf == kEnd - 1) {
    return i * static_cast<Int>(L.strides[kLeaf]);
  } else if constexpr (kLeaf == kEnd - 2) {  // one function fewer for each of the many pairs
    return i % static_cast<Int>(L.extents[kLeaf]) * static_cast<Int>(L.strides[kLeaf]) +
           i / static_cast<Int>(L.extents[kLeaf]) * static_cast<Int>(L.strides[kEnd - 1]);
  } else {
    return i % static_cast<Int>(L.extents[kLeaf]) * static_cast<Int>(L.strides[kLeaf]) +
           index_from_leaves<L, kLeaf + 1, kEnd>(i / static_cast<Int>(L.extents[kLeaf]));
  }
}

// The modes from leaf kFirst on take one number each.
template <Layout L, int kFirst, class Int, class... Rest>
KILN_HD constexpr Int index_from_modes(Int first, Rest... rest) {
  constexpr int kEnd = mode_end(L, kFirst);
  const Int here = index_from_leaves<L, kFirst, kEnd>(first);
  if constexpr (sizeof...(Rest) == 0) {
    return here;
  } else {
    return here + index_from_modes<L, kEnd>(rest...);
  }
}

template <Swizzle S, class Int>
KILN_HD constexpr Int swizzled(Int index) {
  constexpr auto kMask = static_cast<Int>(((Index{1} << S.bits) - 1) << S.base);
  if constexpr (S.bits == 0) {
    return index;
  } else if constexpr (S.shift < 0) {
    return index ^ ((index & kMask) << -S.shift);
  } else {
    return index ^ ((index >> S.shift) & kMask);
  }
}

KILN_HD constexpr Swizzle swizzle_of(const Layout&) { return {}; }
KILN_HD constexpr Swizzle swizzle_of(const Swizzled& s) { return s.swizzle; }
KILN_HD constexpr const Layout& layout_of(const Layout& layout) { return layout; }
KILN_HD constexpr const Layout& layout_of(const Swizzled& s) { return s.layout; }

}  // namespace detail

// L(i) and L(i, j, ...) for a Layout or Swizzled known at compile time, in the arithmetic of the
// argument's own type and without a loop. What device code should call: compilers there do not
// unroll Layout::operator() and would keep the layout in local memory.
template <auto L, class Int>
[[nodiscard]] KILN_HD constexpr Int index_at(Int i) {
  static_assert(L.valid());
  constexpr Layout kLayout = detail::layout_of(L);
  return detail::swizzled<detail::swizzle_of(L)>(
      detail::index_from_leaves<kLayout, 0, kLayout.leaves>(i));
}
template <auto L, class Int, class... Rest>
[[nodiscard]] KILN_HD constexpr Int index_at(Int first, Int second, Rest... rest) {
  static_assert(rank(L) == 2 + static_cast<int>(sizeof...(Rest)));
  return detail::swizzled<detail::swizzle_of(L)>(
      detail::index_from_modes<detail::layout_of(L), 0>(first, second, static_cast<Int>(rest)...));
}

}  // namespace kiln
