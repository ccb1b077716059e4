// Tensors: where elements lie (global, shared, registers) and the layout that finds them.
//
//   auto mA = kiln::make_tensor(kiln::make_gmem_ptr(A), make_shape(M, K), make_stride(K, Int<1>{}));
//   auto gA = kiln::local_tile<128, 32>(mA, blockIdx.x, kiln::_);       // (128, 32, ceil(K / 32))
//   auto sA = kiln::make_tensor<kSharedA>(kiln::make_smem_ptr(memory));
//   gA(3, 4, k)      the element
//   gA(_, _, k)      the tile, as a tensor of its own
//
// Strides and extents may be known at compile time or at run time, each on its own (elements.cuh
// says how). Modes of run-time extent can be tiled and sliced, nothing else.
//
// In an identity tensor the elements are the coordinates themselves. Cut like the data, it says
// where each element came from, which is how ragged edges are guarded (in_bounds, copy_if).
#pragma once

#include "kiln/device/elements.cuh"
#include "kiln/device/require.cuh"
#include "kiln/device/tuple.cuh"
#include "kiln/layout/text.h"

namespace kiln {

// ---- tensors ---------------------------------------------------------------------------------

namespace detail {

// The modes whose bit is set in `keep`, as a tuple.
KILN_HD constexpr Layout kept_modes(const Layout& layout, unsigned keep) {
  LayoutBuilder out;
  int last = 0;
  for (int i = 0; i < rank(layout); ++i) last = (keep >> i & 1u) != 0 ? i : last;
  bool first = true;
  for (int i = 0; i < rank(layout); ++i) {
    if ((keep >> i & 1u) == 0) continue;
    out.append(mode(layout, i), first ? 1 : 0, i == last ? 1 : 0);
    first = false;
  }
  return out.done();
}

template <class... Ts>
KILN_HD constexpr unsigned all_mask() {
  unsigned mask = 0;
  int i = 0;
  ((mask |= (kIsAll<Ts> ? 1u : 0u) << i++), ...);
  return mask;
}

}  // namespace detail

// `Role` says which operand of which instruction the elements are, where that is known.
template <class Elements_, Swizzled S, class Role_ = void>
struct Tensor {
  using Elements = Elements_;
  using Element = typename Elements::Element;
  using Role = Role_;
  // Enumerators and functions rather than static members, which NVRTC would keep in the cubin.
  enum : int { kRank = rank(S.layout), kRunTimeExtents = detail::run_time_extents(S.layout) };
  KILN_HD static constexpr const Swizzled& layout() { return S; }
  KILN_HD static constexpr Memory memory() { return Elements::memory(); }

  Elements elements;
  detail::Extents<kRunTimeExtents> extents;

  // tensor(i): element of the linear coordinate; tensor(i, j, ...): one coordinate a mode; with
  // `_` among them: the tensor of the modes so marked.
  template <class... Is>
  KILN_DEVICE decltype(auto) operator()(Is... is) const {
    if constexpr ((detail::kIsAll<Is> || ...)) {
      return slice(*this, is...);
    } else {
      return elements.template at<S>(is...);
    }
  }
  template <class... Is>
  KILN_DEVICE decltype(auto) operator()(Is... is) {
    if constexpr ((detail::kIsAll<Is> || ...)) {
      return slice(*this, is...);
    } else {
      return elements.template at<S>(is...);
    }
  }

  template <class Int>
  KILN_DEVICE decltype(auto) operator[](Int i) {
    return (*this)(i);
  }
  // The address of the element at a linear coordinate.
  KILN_DEVICE auto address(int i) { return elements.template address<S>(i); }
  KILN_DEVICE auto address(int i) const { return elements.template address<S>(i); }

  // The size of one mode.
  template <int I>
  KILN_DEVICE constexpr int extent() const {
    static_assert(I < kRank, "the tensor has fewer modes");
    constexpr Layout kMode = mode(S.layout, I);
    if constexpr (detail::is_static(kMode)) {
      return static_cast<int>(kiln::size(kMode));
    } else {
      return extents.at[-1 - kMode.extents[0]];
    }
  }

 private:
  template <class Self, class... Is>
  KILN_DEVICE static auto slice(Self& self, Is... is) {
    constexpr int kGiven = static_cast<int>(sizeof...(Is));
    static_assert(
        require<kGiven == kRank, misuse::rank_of_the_tensor_is_not_the_rank_wanted<kRank, kGiven>>);
    constexpr Layout kKept = detail::kept_modes(S.layout, detail::all_mask<Is...>());
    auto moved = move<0>(view(self.elements), is...);
    Tensor<decltype(moved), Swizzled{S.swizzle, kKept}, Role> out{moved, {}};
    if constexpr (out.kRunTimeExtents > 0) {
      for (int i = 0; i < out.kRunTimeExtents; ++i) out.extents.at[i] = self.extents.at[i];
    }
    return out;
  }
  template <int I, class E, class First, class... Rest>
  KILN_DEVICE static auto move(E elements, First first, Rest... rest) {
    if constexpr (detail::kIsAll<First>) {
      return move<I + 1>(elements, rest...);
    } else {
      return move<I + 1>(elements.template moved<mode(S.layout, I)>(first), rest...);
    }
  }
  template <int I, class E>
  KILN_DEVICE static E move(E elements) {
    return elements;
  }
  template <class T>
  KILN_DEVICE static RegisterView<T> register_view(T* first) {
    return {first};
  }
  template <class E>
  KILN_DEVICE static auto view(E& elements) {
    if constexpr (memory() == Memory::kRegisters) {
      return register_view(elements.template address<S>(0));
    } else {
      return elements;
    }
  }
};

// The number of elements; of mode I. Constants where the extents are static.
template <class E, Swizzled S, class R>
KILN_DEVICE constexpr int size(const Tensor<E, S, R>&) {
  static_assert(detail::is_static(S.layout), "the tensor's extents are known at run time only");
  return static_cast<int>(size(S.layout));
}
template <int I, class E, Swizzled S, class R>
KILN_DEVICE constexpr int size(const Tensor<E, S, R>& tensor) {
  return tensor.template extent<I>();
}

// ---- making tensors --------------------------------------------------------------------------

// A pointer that says where it points to.
template <class T>
struct GlobalPointer {
  T* data;
};
template <class T>
struct SharedPointer {
  T* data;
};
template <class T>
KILN_DEVICE GlobalPointer<T> make_gmem_ptr(T* data) {
  return {data};
}
// The tensors made from it take its 16-byte alignment for granted when they move vectors.
template <class T>
KILN_DEVICE SharedPointer<T> make_smem_ptr(T* data) {
  return {data};
}

namespace detail {

// The leaves of a tuple's type: static numbers, or `run_time - slot` and up.
struct FlatTuple {
  Layout leaves;  // numbers in `extents`
  bool is_run_time[Layout::kLeavesMax] = {};
  int run_time = 0;
};

template <class T>
struct Flatten {
  KILN_HD static constexpr void into(FlatTuple& out, int opens, int closes) {
    const int i = out.leaves.leaves++;
    out.leaves.opens[i] = static_cast<LeafDepth>(opens);
    out.leaves.closes[i] = static_cast<LeafDepth>(closes);
    out.is_run_time[i] = true;
    out.leaves.extents[i] = ++out.run_time;
  }
};
template <int N>
struct Flatten<Int<N>> {
  KILN_HD static constexpr void into(FlatTuple& out, int opens, int closes) {
    const int i = out.leaves.leaves++;
    out.leaves.opens[i] = static_cast<LeafDepth>(opens);
    out.leaves.closes[i] = static_cast<LeafDepth>(closes);
    out.leaves.extents[i] = N;
  }
};
template <class... Ts>
struct Flatten<Tuple<Ts...>> {
  KILN_HD static constexpr void into(FlatTuple& out, int opens, int closes) {
    constexpr int kLast = static_cast<int>(sizeof...(Ts)) - 1;
    int i = 0;
    ((Flatten<Ts>::into(out, i == 0 ? opens + 1 : 0, i == kLast ? closes + 1 : 0), ++i), ...);
  }
};

template <class T>
KILN_HD constexpr FlatTuple flatten_tuple() {
  FlatTuple out;
  Flatten<T>::into(out, 0, 0);
  return out;
}

// The layout of a shape and a stride tuple, run-time numbers as elements.cuh writes them.
template <class Shape, class Stride>
KILN_HD constexpr Layout layout_from_tuples() {
  const FlatTuple shape = flatten_tuple<Shape>();
  const FlatTuple stride = flatten_tuple<Stride>();
  Layout out = shape.leaves;
  if (!congruent(shape.leaves, stride.leaves)) return {};
  for (int i = 0; i < out.leaves; ++i) {
    if (shape.is_run_time[i]) out.extents[i] = -shape.leaves.extents[i];
    const Index number = stride.leaves.extents[i];
    out.strides[i] = stride.is_run_time[i] ? unit(static_cast<int>(number)) : number;
  }
  return out;
}

// One unit of its own for each mode; extents as given.
KILN_HD constexpr Layout coordinate_layout(const FlatTuple& shape) {
  Layout out = shape.leaves;
  for (int i = 0; i < out.leaves; ++i) {
    if (shape.is_run_time[i]) out.extents[i] = -out.extents[i];
    out.strides[i] = i == 0 ? 1 : unit(i);
  }
  return out;
}

// The run-time numbers of a tuple, in order.
template <class To, class T>
KILN_DEVICE void collect(T item, To* to, int& count) {
  to[count++] = static_cast<To>(item);
}
template <class To, int N>
KILN_DEVICE void collect(Int<N>, To*, int&) {}
template <class To>
KILN_DEVICE void collect(Tuple<>, To*, int&) {}
template <class To, class Head, class... Tail>
KILN_DEVICE void collect(const Tuple<Head, Tail...>& tuple, To* to, int& count) {
  collect(tuple.head, to, count);
  collect(tuple.tail, to, count);
}

}  // namespace detail

// A layout some of whose numbers come at run time: what make_layout makes of tuples.
template <Swizzled S, int Units = 0>
struct TensorLayout {
  KILN_HD static constexpr const Swizzled& layout() { return S; }
  detail::Extents<detail::run_time_extents(S.layout)> extents;
  detail::Extents<Units> units;
};

// make_layout(make_shape(M, Int<32>{}), make_stride(K, Int<1>{})). At most three extents and two
// strides may be run-time numbers. Without strides: compact, first mode fastest; all static.
template <class... Shapes, class... Strides>
KILN_DEVICE constexpr auto make_layout(const Tuple<Shapes...>& shape,
                                       const Tuple<Strides...>& stride) {
  constexpr Layout kLayout = detail::layout_from_tuples<Tuple<Shapes...>, Tuple<Strides...>>();
  constexpr int kUnits = detail::flatten_tuple<Tuple<Strides...>>().run_time;
  static_assert(kLayout.valid(), "shape and stride nest differently");
  static_assert(kUnits <= 2, "at most two strides may be run-time numbers");
  static_assert(detail::run_time_extents(kLayout) <= 3, "at most three run-time extents");
  TensorLayout<Swizzled{kLayout}, kUnits> out{};
  int count = 0;
  if constexpr (detail::run_time_extents(kLayout) > 0) {
    detail::collect(shape, out.extents.at, count);
  }
  count = 0;
  if constexpr (kUnits > 0) detail::collect(stride, out.units.at, count);
  return out;
}
template <class... Shapes>
KILN_DEVICE constexpr auto make_layout(const Tuple<Shapes...>&) {
  constexpr detail::FlatTuple kShape = detail::flatten_tuple<Tuple<Shapes...>>();
  static_assert(kShape.run_time == 0, "run-time extents need strides");
  return TensorLayout<Swizzled{compact(kShape.leaves)}>{};
}

template <class T, Swizzled S, int Units>
KILN_DEVICE auto make_tensor(GlobalPointer<T> pointer, const TensorLayout<S, Units>& layout) {
  Tensor<GlobalElements<T>, S> out{{pointer.data, {0, 0}}, layout.extents};
  for (int i = 0; i < Units; ++i) {
    if constexpr (Units > 0) out.elements.units[i] = layout.units.at[i];
  }
  return out;
}
template <class T, Swizzled S>
KILN_DEVICE auto make_tensor(SharedPointer<T> pointer, const TensorLayout<S>&) {
  static_assert(detail::is_static(S.layout), "shared tensors have static extents");
  return Tensor<SharedElements<T>, S>{{pointer.data, 0}, {}};
}
template <class Pointer, class... Shapes, class... Strides>
KILN_DEVICE auto make_tensor(Pointer pointer, const Tuple<Shapes...>& shape,
                             const Tuple<Strides...>& stride) {
  return make_tensor(pointer, make_layout(shape, stride));
}
// make_tensor<kLayout>(pointer), with a layout that is a constant.
template <Swizzled S, class Pointer>
KILN_DEVICE auto make_tensor(Pointer pointer) {
  return make_tensor(pointer, TensorLayout<S>{});
}

// The tensor of that shape whose elements are their own coordinates; up to three modes.
template <class... Shapes>
KILN_DEVICE auto make_identity_tensor(const Tuple<Shapes...>& shape) {
  constexpr detail::FlatTuple kShape = detail::flatten_tuple<Tuple<Shapes...>>();
  constexpr Layout kLayout = detail::coordinate_layout(kShape);
  static_assert(kLayout.leaves <= 3, "at most three coordinates");
  Tensor<CoordinateElements, Swizzled{kLayout}> out{};
  int count = 0;
  if constexpr (out.kRunTimeExtents > 0) detail::collect(shape, out.extents.at, count);
  return out;
}

// ---- cutting ---------------------------------------------------------------------------------

namespace detail {

// Mode `part` cut into pieces of `tile`: the first piece, and the steps from piece to piece.
KILN_HD constexpr Layout tile_of(const Layout& part, int tile) {
  if (part.extents[0] < 0) return make_layout(tile, part.strides[0]);
  return composition(part, make_layout(tile, 1));
}
KILN_HD constexpr Layout rest_of(Layout part, int tile) {
  if (part.extents[0] < 0) {
    part.strides[0] *= tile;
    return part;
  }
  return composition(part, make_layout(size(part) / tile, tile));
}
KILN_HD constexpr bool divides(const Layout& part, int tile) {
  return part.extents[0] < 0 || size(part) % tile == 0;
}

// One mode for each tile extent, then one for each mode marked in `keep`.
KILN_HD constexpr Layout cut(const Layout& layout, const int* tiles, unsigned keep) {
  LayoutBuilder out;
  const int modes = rank(layout);
  int last = -1;
  for (int i = 0; i < modes; ++i) last = (keep >> i & 1u) != 0 ? i : last;
  for (int i = 0; i < modes; ++i) {
    out.append(tile_of(mode(layout, i), tiles[i]), i == 0 ? 1 : 0,
               i == modes - 1 && last < 0 ? 1 : 0);
  }
  for (int i = 0; i < modes; ++i) {
    if ((keep >> i & 1u) != 0) out.append(rest_of(mode(layout, i), tiles[i]), 0, i == last ? 1 : 0);
  }
  return out.done();
}

// Extents of a cut tensor count tiles.
template <Layout L, int I, int Tile, int... Tiles>
KILN_DEVICE void count_tiles(int* extents) {
  constexpr Layout kMode = mode(L, I);
  if constexpr (kMode.extents[0] < 0) {
    constexpr int kSlot = static_cast<int>(-1 - kMode.extents[0]);
    extents[kSlot] = (extents[kSlot] + Tile - 1) / Tile;
  }
  if constexpr (sizeof...(Tiles) > 0) count_tiles<L, I + 1, Tiles...>(extents);
}

template <Layout L, int I, class E>
KILN_DEVICE E move_to_tile(E elements) {
  return elements;
}
template <Layout L, int I, int Tile, int... Tiles, class E, class First, class... Rest>
KILN_DEVICE auto move_to_tile(E elements, First first, Rest... rest) {
  constexpr Layout kMode = mode(L, I);
  static_assert(
      require<divides(kMode, Tile),
              misuse::extent_is_not_a_multiple_of_the_tile<static_cast<int>(size(kMode)), Tile>>);
  if constexpr (kIsAll<First>) {
    return move_to_tile<L, I + 1, Tiles...>(elements, rest...);
  } else {
    constexpr Layout kRest = rest_of(kMode, Tile);
    return move_to_tile<L, I + 1, Tiles...>(elements.template moved<kRest>(first), rest...);
  }
}

}  // namespace detail

// The tile of static extents at a coordinate counted in tiles; `_` keeps all tiles of that mode, as
// a further mode at the end. A static extent must be a multiple of its tile's; a run-time extent
// that is not ends in a ragged tile, whose elements past the end the caller guards (in_bounds).
//   local_tile<128, 32>(mA, blockIdx.x, _)    (128, 32, ceil(K / 32))
template <int... Tiles, class E, Swizzled S, class Role, class... Is>
KILN_DEVICE auto local_tile(const Tensor<E, S, Role>& tensor, Is... is) {
  constexpr int kTiles[] = {Tiles...};
  constexpr int kGiven = static_cast<int>(sizeof...(Tiles));
  static_assert(require<rank(S.layout) == kGiven,
                        misuse::rank_of_the_tensor_is_not_the_rank_wanted<rank(S.layout), kGiven>>);
  static_assert(sizeof...(Is) == kGiven, "one coordinate for each extent of the tile");
  if constexpr (rank(S.layout) != kGiven || sizeof...(Is) != kGiven) {
    return tensor;  // refused above
  } else {
    constexpr Layout kCut = detail::cut(S.layout, kTiles, detail::all_mask<Is...>());
    auto moved = detail::move_to_tile<S.layout, 0, Tiles...>(tensor.elements, is...);
    Tensor<decltype(moved), Swizzled{S.swizzle, kCut}, Role> out{moved, {}};
    if constexpr (out.kRunTimeExtents > 0) {
      for (int i = 0; i < out.kRunTimeExtents; ++i) out.extents.at[i] = tensor.extents.at[i];
      detail::count_tiles<S.layout, 0, Tiles...>(out.extents.at);
    }
    return out;
  }
}

namespace detail {

// T, or without one the tensor's own element type less its const.
template <class T, class Own>
struct ElementFor {
  using type = T;
};
template <class Own>
struct ElementFor<void, Own> {
  using type = Own;
};
template <class Own>
struct ElementFor<void, const Own> {
  using type = Own;
};

}  // namespace detail

namespace detail {

// The sizes of the modes, compact: what registers are laid out by.
KILN_HD constexpr Layout register_layout(const Layout& layout) {
  LayoutBuilder out;
  const int modes = rank(layout);
  Index stride = 1;
  for (int i = 0; i < modes; ++i) {
    const Index extent = size(layout, i);
    out.leaf(extent, stride, i == 0 ? 1 : 0, i == modes - 1 ? 1 : 0);
    stride *= extent;
  }
  return out.done();
}

template <class T, Layout Modes, class Role>
using Registers = Tensor<RegisterElements<T, static_cast<int>(size(Modes))>, Swizzled{Modes}, Role>;

}  // namespace detail

// Registers for a tensor's elements: the same modes, compact.
template <class T = void, class E, Swizzled S, class Role>
KILN_DEVICE auto make_fragment_like(const Tensor<E, S, Role>&) {
  static_assert(detail::is_static(S.layout), "a fragment has static extents");
  using Element = typename detail::ElementFor<T, typename E::Element>::type;
  return detail::Registers<Element, detail::register_layout(S.layout), Role>{};
}

}  // namespace kiln
