// A tile copied by many threads together: which thread moves which elements.
//
//   auto tiled = make_tiled_copy<atom::cp_async_16, "(32,4):(4,1)"_layout, "(1,8)"_layout>();
//   auto mine  = tiled.get_thread_slice(threadIdx.x);
//   copy(tiled, mine.partition_S(gA)(_, _, _, k), mine.partition_D(sA));
//
// `Threads` lays threads over rows and columns of the tile, (row, column) -> thread; `Values` lays
// the elements of one thread, (row, column) -> its number. Each thread's elements lie together, so
// the above covers 32 rows and 4 * 8 columns at a time and repeats over the rest of the tile. What
// partition_S and partition_D give has the modes (values, row repeats, column repeats, the tensor's
// further modes).
#pragma once

#include "kiln/device/algorithm.cuh"
#include "kiln/device/atoms.cuh"
#include "kiln/device/tensor.cuh"

namespace kiln {

namespace detail {

// The tile in front of a tensor (its first two modes), as a layout of rows x columns.
KILN_HD constexpr Layout tile_layout(const Layout& layout) {
  return make_layout(mode(layout, 0), mode(layout, 1));
}

// `own`, the modes of a thread's part of the tile, and the modes of `layout` past the tile.
KILN_HD constexpr Layout with_further_modes(const Layout& own, const Layout& layout) {
  const int modes = rank(layout);
  if (modes == 2 || !own.valid()) return own;
  LayoutBuilder out;
  out.append(own);
  --out.layout.closes[own.leaves - 1];
  for (int i = 2; i < modes; ++i) out.append(mode(layout, i), 0, i == modes - 1 ? 1 : 0);
  return out.done();
}

// The elements of `tensor` that `thread` owns by two maps into its tile: of threads and of values.
template <Layout ThreadMap, Layout ValueMap, class Role, class E, Swizzled S, class R>
KILN_DEVICE auto partition(const Tensor<E, S, R>& tensor, int thread) {
  constexpr Layout kTile = tile_layout(S.layout);
  constexpr Layout kThreads = composition(kTile, ThreadMap);
  constexpr Layout kValues = with_further_modes(composition(kTile, ValueMap), S.layout);
  static_assert(kThreads.valid() && kValues.valid(),
                "the tensor's layout does not fall into whole pieces for these threads");
  auto moved = tensor.elements.template moved<kThreads>(thread);
  return Tensor<decltype(moved), Swizzled{S.swizzle, kValues}, Role>{moved, tensor.extents};
}

// One atom's worth of elements: asynchronous atoms start, vectors move at once.
template <class Atom, Memory To, class T, class U>
KILN_DEVICE void move_atom(T* to, U* from, int valid) {
  if constexpr (requires { Atom::start(to, from, 0); }) {
    static_assert(require<To == Memory::kShared,
                          misuse::memory_is_not_the_one_the_atom_takes<To, Memory::kShared>>);
    Atom::start(to, from, valid * static_cast<int>(sizeof(T)));
  } else {
    move_valid<Atom::kBytes / static_cast<int>(sizeof(T)), To>(to, from, valid);
  }
}

// Registers need every index constant; between memories eight vectors in flight are enough.
template <class Source, class Destination>
KILN_HD constexpr int copy_unroll() {
  const bool registers =
      Source::memory() == Memory::kRegisters || Destination::memory() == Memory::kRegisters;
  return registers ? static_cast<int>(size(Source::layout().layout)) : 8;
}

template <class T>
KILN_HD constexpr int rows_of() {
  return static_cast<int>(size(T::layout().layout, 0));
}
template <class T>
KILN_HD constexpr int cols_of() {
  return static_cast<int>(size(T::layout().layout, 1));
}

}  // namespace detail

template <class Atom_, Layout Threads, Layout Values>
struct TiledCopy {
  using Atom = Atom_;
  static_assert(require<rank(Threads) == 2,
                        misuse::rank_of_the_tensor_is_not_the_rank_wanted<rank(Threads), 2>>);
  static_assert(require<rank(Values) == 2,
                        misuse::rank_of_the_tensor_is_not_the_rank_wanted<rank(Values), 2>>);
  enum : int {
    kThreads = static_cast<int>(size(Threads)),
    kRows = static_cast<int>(size(Threads, 0) * size(Values, 0)),
    kCols = static_cast<int>(size(Threads, 1) * size(Values, 1))
  };

  struct Slice {
    int thread;

    // This thread's elements of a source (or destination) tile of static extents.
    template <class T>
    KILN_DEVICE auto partition_S(const T& tensor) const {
      return cut(tensor);
    }
    template <class T>
    KILN_DEVICE auto partition_D(const T& tensor) const {
      return cut(tensor);
    }

   private:
    template <class T>
    KILN_DEVICE auto cut(const T& tensor) const {
      constexpr int kTileRows = detail::rows_of<T>();
      constexpr int kTileCols = detail::cols_of<T>();
      static_assert(require<kTileRows % kRows == 0,
                            misuse::extent_is_not_a_multiple_of_the_tile<kTileRows, kRows>>);
      static_assert(require<kTileCols % kCols == 0,
                            misuse::extent_is_not_a_multiple_of_the_tile<kTileCols, kCols>>);
      return detail::partition<kThreadMap<kTileRows>, kValueMap<kTileRows, kTileCols>, TiledCopy>(
          tensor, thread);
    }
  };

  KILN_DEVICE Slice get_thread_slice(int thread) const { return {thread}; }
  KILN_DEVICE Slice get_slice(int thread) const { return {thread}; }

 private:
  // thread -> row + rows * column of its first element.
  KILN_HD static constexpr Layout thread_map(Index rows) {
    const Layout places = make_layout(make_layout(size(Threads, 0), size(Values, 0)),
                                      make_layout(size(Threads, 1), size(Values, 1) * rows));
    return composition(places, right_inverse(Threads));
  }
  // (value, row repeat, column repeat) -> steps from the first element.
  KILN_HD static constexpr Layout value_map(Index rows, Index cols) {
    const Layout places =
        make_layout(make_layout(size(Values, 0), 1), make_layout(size(Values, 1), rows));
    return make_layout(composition(places, right_inverse(Values)), make_layout(rows / kRows, kRows),
                       make_layout(cols / kCols, kCols * rows));
  }

  // Computed once for all tensors with tiles of that shape.
  template <int Rows>
  static constexpr Layout kThreadMap = thread_map(Rows);
  template <int Rows, int Cols>
  static constexpr Layout kValueMap = value_map(Rows, Cols);
};

template <class Atom, Layout Threads, Layout Values>
KILN_DEVICE constexpr TiledCopy<Atom, Threads, Values> make_tiled_copy() {
  return {};
}

// Starts (atoms that are asynchronous) or does the copy of this thread's elements.
template <class Atom, Layout Threads, Layout Values, class Source, class Destination>
KILN_DEVICE void copy(const TiledCopy<Atom, Threads, Values>&, const Source& from,
                      Destination&& to) {
  using To = detail::plain<Destination>;
  detail::check_sizes<Source, To>();
  constexpr int kRun = detail::checked_run<Atom::kBytes, Source, To>();
  constexpr int kUnroll = detail::copy_unroll<Source, To>();
#pragma unroll kUnroll
  for (int i = 0; i < size(from); i += kRun) {
    detail::move_atom<Atom, To::memory()>(to.address(i), from.address(i), kRun);
  }
}

// Starts or does the copy of those of this thread's elements that are in bounds; the others become
// zero, or stay as they are in global memory.
template <class Atom, Layout Threads, Layout Values, class Limited, class Source, class Destination>
KILN_DEVICE void copy_if(const TiledCopy<Atom, Threads, Values>&, const Bounds<Limited>& bounds,
                         const Source& from, Destination&& to) {
  using To = detail::plain<Destination>;
  detail::check_sizes<Source, To>();
  constexpr int kRun = detail::checked_run<Atom::kBytes, Source, To>();
#pragma unroll detail::kGuardedUnroll
  for (int i = 0; i < size(from); i += kRun) {
    detail::move_atom<Atom, To::memory()>(to.address(i), from.address(i),
                                          bounds.template valid<kRun>(i));
  }
}

// ---- cp.async groups -------------------------------------------------------------------------

// Closes the group of asynchronous copies this thread started since the last fence.
KILN_DEVICE void cp_async_fence() { cp_async_commit(); }

}  // namespace kiln
