// What one thread does with tensors: clear, fill, copy, and copies that stop at the edge.
//
//   clear(accumulators);
//   copy(tCsA, tCrA);                                  // vectors as wide as both sides allow
//   copy_if(vectors<8>{}, in_bounds(tCcC, M, N), accumulators, tCgC);
//
// Both sides of a copy have the same number of elements; element i goes to element i, converted to
// the destination's type.
#pragma once

#include "kiln/device/memory.cuh"
#include "kiln/device/tensor.cuh"

namespace kiln {

// Sets every element.
template <class E, Swizzled S, class Role, class T>
KILN_DEVICE void fill(Tensor<E, S, Role>& tensor, T value) {
#pragma unroll
  for (int i = 0; i < size(tensor); ++i) tensor(i) = kiln::to<typename E::Element>(value);
}
template <class E, Swizzled S, class Role>
KILN_DEVICE void clear(Tensor<E, S, Role>& tensor) {
#pragma unroll
  for (int i = 0; i < size(tensor); ++i) tensor(i) = zero<typename E::Element>();
}

// Moves in vectors of that many bytes. Where global memory is involved the caller promises that
// each vector's address is a multiple of it; the layouts must allow it (checked).
template <int Bytes>
struct vectors {
  static constexpr int kBytes = Bytes;
};

namespace detail {

template <class T>
inline constexpr bool kIsTensor = false;
template <class E, Swizzled S, class Role>
inline constexpr bool kIsTensor<Tensor<E, S, Role>> = true;

template <class T>
struct Plain {
  using type = T;
};
template <class T>
struct Plain<const T> {
  using type = T;
};
template <class T>
struct Plain<T&> {
  using type = typename Plain<T>::type;
};
template <class T>
using plain = typename Plain<T>::type;

// The elements, a power of two, that lie in a row from every multiple of that many elements on.
KILN_HD constexpr int contiguous_run(const Layout& layout, const Swizzle& swizzle) {
  const Layout flat = coalesce(layout);
  if (flat.strides[0] != 1) return 1;
  Index run = flat.extents[0] & -flat.extents[0];
  for (int leaf = 1; leaf < flat.leaves; ++leaf) {
    const Index stride = flat.strides[leaf];
    if (stride != 0) run = smaller(run, stride & -stride);
  }
  if (swizzle.bits != 0) run = smaller(run, Index{1} << swizzle.base);
  return static_cast<int>(run);
}

// contiguous_run of a tensor; in shared memory no longer than its first element is aligned.
template <class T>
KILN_HD constexpr int run_of() {
  int run = contiguous_run(T::layout().layout, T::layout().swizzle);
  if constexpr (T::memory() == Memory::kShared) {
    while ((T::Elements::bits() & (run - 1)) != 0) run /= 2;
  }
  return run;
}

template <class Source, class Destination>
KILN_HD constexpr int common_run() {
  constexpr bool kOwn =
      Source::memory() != Memory::kGlobal && Destination::memory() != Memory::kGlobal;
  constexpr int kBytes = static_cast<int>(sizeof(typename Destination::Element));
  if (!kOwn || !kSame<plain<typename Source::Element>, typename Destination::Element>) return 1;
  const int most = 16 / kBytes;
  const int a = run_of<Source>();
  const int b = run_of<Destination>();
  const int run = a < b ? a : b;
  return run < most ? run : most;
}

template <class Source, class Destination>
KILN_DEVICE constexpr void check_sizes() {
  constexpr int kSource = static_cast<int>(size(Source::layout().layout));
  constexpr int kDestination = static_cast<int>(size(Destination::layout().layout));
  static_assert(require<kSource == kDestination,
                        misuse::source_and_destination_differ_in_size<kSource, kDestination>>);
}

// Elements that one vector holds, after checking that both sides lie that way.
template <int Bytes, class Source, class Destination>
KILN_HD constexpr int checked_run() {
  constexpr int kSize = static_cast<int>(sizeof(typename Destination::Element));
  constexpr int kElements = Bytes / kSize;
  static_assert(require<Bytes % kSize == 0,
                        misuse::bytes_of_the_copy_are_not_a_multiple_of_the_element<Bytes, kSize>>);
  constexpr int kFrom = run_of<Source>();
  constexpr int kTo = run_of<Destination>();
  static_assert(
      require<kElements <= kFrom,
              misuse::copy_moves_more_elements_at_once_than_are_contiguous<kElements, kFrom>>);
  static_assert(
      require<kElements <= kTo,
              misuse::copy_moves_more_elements_at_once_than_are_contiguous<kElements, kTo>>);
  return kElements;
}

}  // namespace detail

// Registers and shared memory in the widest vectors both sides allow; global memory, of whose
// alignment nothing is known, element by element (see vectors<>).
template <class Source, class Destination>
KILN_DEVICE void copy(const Source& from, Destination&& to) {
  using To = detail::plain<Destination>;
  detail::check_sizes<Source, To>();
  constexpr int kRun = detail::common_run<Source, To>();
#pragma unroll
  for (int i = 0; i < size(from); i += kRun) {
    if constexpr (kRun > 1) {
      move_vector<kRun* static_cast<int>(sizeof(typename To::Element))>(to.address(i),
                                                                        from.address(i));
    } else {
      to(i) = kiln::to<typename To::Element>(from(i));
    }
  }
}

template <int Bytes, class Source, class Destination>
KILN_DEVICE void copy(vectors<Bytes>, const Source& from, Destination&& to) {
  using To = detail::plain<Destination>;
  detail::check_sizes<Source, To>();
  constexpr int kRun = detail::checked_run<Bytes, Source, To>();
#pragma unroll
  for (int i = 0; i < size(from); i += kRun) move_vector<Bytes>(to.address(i), from.address(i));
}

// ---- edges -----------------------------------------------------------------------------------

namespace detail {

// How far a loop over guarded vectors is unrolled: each has a path for its last elements, and many
// copies of that would take longer to compile than they save.
inline constexpr int kGuardedUnroll = 4;

}  // namespace detail

// Which elements of a tensor lie inside limits, from the tensor of their coordinates.
template <class Coordinates>
struct Bounds {
  Coordinates coordinates;
  int limits[3];

  // How many of the `Run` elements from i on, which lie in a row, are inside.
  template <int Run>
  KILN_DEVICE int valid(int i) const {
    constexpr Layout kLayout = Coordinates::layout().layout;
    constexpr int kAlong = direction<Run>(kLayout);
    const Place place = coordinates(i);
    bool inside = true;
    int count = Run;
#pragma unroll
    for (int d = 0; d < 3; ++d) inside = inside && (d == kAlong || place.at[d] < limits[d]);
    if constexpr (kAlong < 3) {
      const int left = limits[kAlong] - place.at[kAlong];
      count = left < 0 ? 0 : left < Run ? left : Run;
    }
    return inside ? count : 0;
  }

 private:
  // The coordinate that the elements of a run differ in.
  template <int Run>
  KILN_HD static constexpr int direction(const Layout& layout) {
    for (int d = 0; d < 3 && Run > 1; ++d) {
      if (detail::component(layout, d)(1) == 1) return d;
    }
    return 3;
  }
};

// in_bounds(tAcA(_, _, _, k), M, K): elements whose coordinates are all below the limits.
template <class E, Swizzled S, class Role, class... Limits>
KILN_DEVICE auto in_bounds(const Tensor<E, S, Role>& coordinates, Limits... limits) {
  static_assert(E::memory() == Memory::kCoordinates, "in_bounds takes a tensor of coordinates");
  constexpr int kMost = 0x7fffffff;
  Bounds<Tensor<E, S, Role>> out{coordinates, {kMost, kMost, kMost}};
  int i = 0;
  ((out.limits[i++] = static_cast<int>(limits)), ...);
  return out;
}

namespace detail {

// `valid` of the Run elements of a vector; into memory of the block's own the others become zero,
// in global memory they stay.
template <int Run, Memory To, class T, class U>
KILN_DEVICE void move_valid(T* to, U* from, int valid) {
  if (valid == Run) {
    move_vector<Run* static_cast<int>(sizeof(T))>(to, from);
    return;
  }
#pragma unroll
  for (int e = 0; e < Run; ++e) {
    if (e < valid) {
      to[e] = from[e];
    } else if constexpr (To != Memory::kGlobal) {
      to[e] = zero<T>();
    }
  }
}

}  // namespace detail

// Copies the elements in bounds, by vectors. The others become zero, or stay as they are in global
// memory.
template <int Bytes, class Limited, class Source, class Destination>
KILN_DEVICE void copy_if(vectors<Bytes>, const Bounds<Limited>& bounds, const Source& from,
                         Destination&& to) {
  using To = detail::plain<Destination>;
  detail::check_sizes<Source, To>();
  constexpr int kRun = detail::checked_run<Bytes, Source, To>();
#pragma unroll detail::kGuardedUnroll
  for (int i = 0; i < size(from); i += kRun) {
    detail::move_valid<kRun, To::memory()>(to.address(i), from.address(i),
                                           bounds.template valid<kRun>(i));
  }
}
template <class Limited, class Source, class Destination>
KILN_DEVICE void copy_if(const Bounds<Limited>& bounds, const Source& from, Destination&& to) {
  copy_if(vectors<static_cast<int>(sizeof(typename detail::plain<Destination>::Element))>{}, bounds,
          from, to);
}

}  // namespace kiln
