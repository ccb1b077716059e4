// Where a tensor's elements lie (global memory, shared memory, registers, nowhere) and how an index
// becomes an address there.
//
//   SharedElements<f16> sA{base, 0};
//   sA.at<Swizzled{Swizzle{3, 3, 3}, "(128,32):(32,1)"_layout}>(3, 8)
//       is base[(3 * 32 + 8) ^ 8] = base[96], since 3 * 32 + 8 = 0b1'101'000 has a 1 in bits 6 to 8
//
// A layout is a compile-time value, also where strides are not known before run time: a run-time
// stride is written as a multiple of a *unit*, a number too large for any static stride (2^32,
// 2^48), whose value the elements carry. Strides only ever get multiplied by static numbers and
// added, so the algebra of kiln/layout.h works on such layouts unchanged: in a 128x32 tile of a
// row-major matrix rows lie 1 unit apart, columns 1. Static strides must be below 2^32,
// coefficients of the units below 2^15. An extent not known before run time is written -1, -2 or -3
// (number 0, 1 or 2 of the tensor's own).
#pragma once

#include "kiln/device/tuple.cuh"
#include "kiln/layout/text.h"

namespace kiln {

#define KILN_DEVICE __device__ __forceinline__

namespace detail {

// The units of run-time strides, counted from 1; component 0 is the static part.
KILN_HD constexpr Index unit(int i) { return Index{1} << (i == 1 ? 32 : 48); }
KILN_HD constexpr Index component(Index stride, int i) {
  return i == 0 ? stride & 0xffffffff : i == 1 ? (stride >> 32) & 0xffff : stride >> 48;
}
KILN_HD constexpr Layout component(Layout layout, int i) {
  for (int leaf = 0; leaf < layout.leaves; ++leaf) {
    layout.strides[leaf] = component(layout.strides[leaf], i);
  }
  return layout;
}
KILN_HD constexpr bool has_component(const Layout& layout, int i) {
  for (int leaf = 0; leaf < layout.leaves; ++leaf) {
    if (component(layout.strides[leaf], i) != 0) return true;
  }
  return false;
}

// Component C of L(i...), in the type of the arguments: unsigned where they are not negative and
// not constant, which makes quotients by powers of two single shifts.
template <Layout L, int C, class... Is>
KILN_DEVICE constexpr auto component_at(Is... is) {
  if constexpr (!has_component(L, C)) {
    return 0;
  } else {
    constexpr Layout kPart = component(L, C);
    return index_at<kPart>(is...);
  }
}

// One past the last number of run-time extents.
KILN_HD constexpr int run_time_extents(const Layout& layout) {
  Index least = 0;
  for (int leaf = 0; leaf < layout.leaves; ++leaf) least = smaller(least, layout.extents[leaf]);
  return static_cast<int>(-least);
}
KILN_HD constexpr bool is_static(const Layout& layout) { return run_time_extents(layout) == 0; }

template <int N>
struct Extents {
  int at[N];
};
template <>
struct Extents<0> {};

// A mask of the bits that may be set in L(i), 0 <= i < size(L). Bits are exact when no two leaves
// can carry into each other, else everything above the lowest.
KILN_HD constexpr Index bits_below(Index value) {
  Index mask = 0;
  while (mask < value) mask = mask * 2 + 1;
  return mask;
}
KILN_HD constexpr Index join_bits(Index a, Index b) {
  const Index low = (a | b) & -(a | b);
  return (a & b) == 0 ? a | b : 0xffffffff & -low;
}
KILN_HD constexpr Index reach(const Layout& layout) {
  Index mask = 0;
  for (int leaf = 0; leaf < layout.leaves; ++leaf) {
    const Index stride = layout.strides[leaf];
    const Index low = stride & -stride;
    if (layout.extents[leaf] == 1 || stride == 0) continue;
    mask = join_bits(mask, bits_below((layout.extents[leaf] - 1) * stride) & -low);
  }
  return mask;
}

}  // namespace detail

// ---- where elements lie ----------------------------------------------------------------------

enum class Memory { kGlobal, kShared, kRegisters, kCoordinates };

// Elements behind any pointer; strides in static steps and in units.
template <class T>
struct GlobalElements {
  using Element = T;
  KILN_HD static constexpr Memory memory() { return Memory::kGlobal; }

  T* data;
  long long units[2];

  template <Layout L>
  KILN_DEVICE GlobalElements moved(unsigned i) const {
    const unsigned long long wide = i;
    const long long offset = static_cast<long long>(detail::component_at<L, 0>(wide)) +
                             static_cast<long long>(detail::component_at<L, 1>(i)) * units[0] +
                             static_cast<long long>(detail::component_at<L, 2>(i)) * units[1];
    return {data + offset, {units[0], units[1]}};
  }
  template <Swizzled S, class... Is>
  KILN_DEVICE T* address(Is... is) const {
    static_assert(S.swizzle.bits == 0, "only shared memory is swizzled");
    const long long offset = detail::component_at<S.layout, 0>(is...) +
                             detail::component_at<S.layout, 1>(is...) * units[0] +
                             detail::component_at<S.layout, 2>(is...) * units[1];
    return data + offset;
  }
  template <Swizzled S, class... Is>
  KILN_DEVICE T& at(Is... is) const {
    return *address<S>(is...);
  }
};

// Elements of shared memory, from a base on that the swizzle counts from. `Bits` are those that may
// be set in `offset`. While they are apart from those of the layout, the swizzle of the sum is the
// XOR of two swizzles: one computed once a thread, one at compile time.
template <class T, Index Bits = 0>
struct SharedElements {
  using Element = T;
  KILN_HD static constexpr Memory memory() { return Memory::kShared; }
  KILN_HD static constexpr Index bits() { return Bits; }

  T* base;
  int offset;

  template <Layout L>
  KILN_DEVICE auto moved(unsigned i) const {
    constexpr Index kJoined = detail::join_bits(Bits, detail::reach(L));
    return SharedElements<T, kJoined>{base, offset + static_cast<int>(index_at<L>(i))};
  }
  template <Swizzled S, class... Is>
  KILN_DEVICE T* address(Is... is) const {
    const int step = index_at<S.layout>(is...);
    if constexpr (S.swizzle.bits == 0) {
      return base + (offset + step);
    } else if constexpr ((detail::reach(S.layout) & Bits) == 0) {
      constexpr int kTouched =
          (((1 << S.swizzle.bits) - 1) << S.swizzle.base) * (1 + (1 << S.swizzle.shift));
      const int low = swizzled<S.swizzle>(offset) ^ swizzled<S.swizzle>(step & kTouched);
      return base + (low + (step & ~kTouched));
    } else {
      return base + swizzled<S.swizzle>(offset + step);
    }
  }
  template <Swizzled S, class... Is>
  KILN_DEVICE T& at(Is... is) const {
    return *address<S>(is...);
  }

 private:
  template <Swizzle S>
  KILN_DEVICE static int swizzled(int index) {
    constexpr int kMask = ((1 << S.bits) - 1) << (S.base + S.shift);
    return index ^ ((index & kMask) >> S.shift);
  }
};

// A thread's own elements. Indices are meant to be constants once loops are unrolled.
template <class T, int N>
struct RegisterElements {
  using Element = T;
  KILN_HD static constexpr Memory memory() { return Memory::kRegisters; }

  alignas(16) T data[N];

  template <Swizzled S, class... Is>
  KILN_DEVICE T* address(Is... is) {
    return data + index_at<S.layout>(is...);
  }
  template <Swizzled S, class... Is>
  KILN_DEVICE const T* address(Is... is) const {
    return data + index_at<S.layout>(is...);
  }
  template <Swizzled S, class... Is>
  KILN_DEVICE T& at(Is... is) {
    return *address<S>(is...);
  }
  template <Swizzled S, class... Is>
  KILN_DEVICE const T& at(Is... is) const {
    return *address<S>(is...);
  }
};

// A part of another tensor's registers.
template <class T>
struct RegisterView {
  using Element = T;
  KILN_HD static constexpr Memory memory() { return Memory::kRegisters; }

  T* data;

  template <Layout L>
  KILN_DEVICE RegisterView moved(int i) const {
    return {data + index_at<L>(i)};
  }
  template <Swizzled S, class... Is>
  KILN_DEVICE T* address(Is... is) const {
    return data + index_at<S.layout>(is...);
  }
  template <Swizzled S, class... Is>
  KILN_DEVICE T& at(Is... is) const {
    return *address<S>(is...);
  }
};

// A place in up to three dimensions.
struct Place {
  int at[3];
};

// No memory: the element at a coordinate is the coordinate.
struct CoordinateElements {
  using Element = Place;
  KILN_HD static constexpr Memory memory() { return Memory::kCoordinates; }

  Place first;

  template <Layout L>
  KILN_DEVICE CoordinateElements moved(unsigned i) const {
    return {at<Swizzled{L}>(i)};
  }
  template <Swizzled S, class... Is>
  KILN_DEVICE Place at(Is... is) const {
    return {{first.at[0] + static_cast<int>(detail::component_at<S.layout, 0>(is...)),
             first.at[1] + static_cast<int>(detail::component_at<S.layout, 1>(is...)),
             first.at[2] + static_cast<int>(detail::component_at<S.layout, 2>(is...))}};
  }
};

}  // namespace kiln
