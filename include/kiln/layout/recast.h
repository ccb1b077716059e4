// Layouts that count the same bytes as elements of another width.
//
//   upcast((4,8):(1,4), 2)        ==  (2,8):(1,2)     // pairs of elements become one
//   downcast((2,8):(1,2), 2)      ==  (4,8):(1,4)     // and back
//   recast<16, 128>((64,8):(1,64))  ==  (8,8):(1,8)   // f16 seen as 16-byte chunks
//
// Include kiln/layout.h, which has the whole algebra.
#pragma once

#include "kiln/layout/swizzle.h"
#include "kiln/layout/value.h"

namespace kiln {

// Every `n` neighbouring elements become one: index i of `layout` lies in element i / n of the
// result. A leaf of stride below n shrinks. Invalid when an element of the result would begin
// between multiples of n, as for 4:3 with n = 2, or (2,2):(1,1), or a negative odd stride.
[[nodiscard]] KILN_HD constexpr Layout upcast(Layout layout, Index n) {
  if (n < 1) return {};
  Index inside = 0;  // the largest sum of what the leaves reach inside an element
  for (int i = 0; i < layout.leaves; ++i) {
    const Index stride = layout.strides[i];
    if (stride % n == 0) {
      layout.strides[i] = stride / n;
    } else if (stride > 0 && n % stride == 0) {
      const Index merged = n / stride;
      inside += (detail::smaller(layout.extents[i], merged) - 1) * stride;
      layout.extents[i] = detail::ceil_div(layout.extents[i], merged);
      layout.strides[i] = 1;
    } else if (layout.extents[i] > 1) {
      return {};
    }
  }
  return inside < n ? layout : Layout{};
}

// Every element becomes `n`: the leaf of stride 1 counts to n times its extent. Invalid without
// such a leaf, or with two of them.
[[nodiscard]] KILN_HD constexpr Layout downcast(Layout layout, Index n) {
  int unit = -1;
  for (int i = 0; i < layout.leaves; ++i) {
    if (layout.strides[i] != 1) continue;
    if (unit >= 0 && layout.extents[unit] > 1 && layout.extents[i] > 1) return {};
    if (unit < 0 || layout.extents[i] > 1) unit = i;
  }
  if (n < 1 || unit < 0) return {};
  for (int i = 0; i < layout.leaves; ++i) {
    if (i != unit) layout.strides[i] *= n;
  }
  layout.extents[unit] *= n;
  return layout;
}

// From elements of `from_bits` to elements of `to_bits`.
[[nodiscard]] KILN_HD constexpr Layout recast(const Layout& layout, Index from_bits,
                                              Index to_bits) {
  if (from_bits < 1 || to_bits < 1) return {};
  Index common = from_bits;
  for (Index rest = to_bits; rest != 0;) {
    const Index next = common % rest;
    common = rest;
    rest = next;
  }
  const Layout wide = upcast(layout, to_bits / common);
  return from_bits == common ? wide : downcast(wide, from_bits / common);
}

// Below a swizzle: its base moves with the width, which has to change by a power of two and must
// not grow past the chunks that the swizzle keeps together.
[[nodiscard]] KILN_HD constexpr Swizzled recast(const Swizzled& s, Index from_bits, Index to_bits) {
  Swizzle swizzle = s.swizzle;
  for (Index bits = from_bits; bits < to_bits; bits *= 2) --swizzle.base;
  for (Index bits = to_bits; bits > 0 && bits < from_bits; bits *= 2) ++swizzle.base;
  const Index narrow = detail::smaller(from_bits, to_bits);
  const int moved = swizzle.base - s.swizzle.base;
  const bool exact = narrow << (moved < 0 ? -moved : moved) == from_bits + to_bits - narrow;
  if (!exact || (swizzle.base < 0 && swizzle.bits > 0)) return {};
  if (swizzle.bits == 0) swizzle = Swizzle{};
  return {swizzle, recast(s.layout, from_bits, to_bits)};
}

template <Index kFromBits, Index kToBits, class AnyLayout>
[[nodiscard]] KILN_HD constexpr AnyLayout recast(const AnyLayout& layout) {
  return recast(layout, kFromBits, kToBits);
}

}  // namespace kiln
