// kiln's device library under CuTe's spelling, for programs written that way.
//
//   #include <kiln/device/cute.cuh>          instead of  #include <cute/...>
//   using namespace kiln::cute;              instead of  using namespace cute;
//
//   auto tile = make_layout(make_shape(Int<128>{}, Int<32>{}), make_stride(Int<32>{}, Int<1>{}));
//   auto sA_layout = composition(Swizzle<3, 3, 3>{}, tile);
//   auto mma = make_tiled_mma(MMA_Atom<SM80_16x8x16_F32F16F16F32_TN>{}, Layout<Shape<_2, _2, _1>>{});
//
// Here layouts are types whose objects are passed as arguments; behind them stand the same layout
// values as everywhere in kiln. What is missing: permutations of a tiled MMA's tile, atoms for
// other than the instructions that `kiln atoms` lists, run-time shapes of shared or register
// tensors.
#pragma once

#include "kiln/device/mma.cuh"

namespace kiln::cute {

using kiln::_;
using kiln::clear;
using kiln::copy;
using kiln::copy_if;
using kiln::cp_async_fence;
using kiln::cp_async_wait;
using kiln::fill;
using kiln::gemm;
using kiln::get;
using kiln::Int;
using kiln::make_fragment_like;
using kiln::make_gmem_ptr;
using kiln::make_identity_tensor;
using kiln::make_layout;
using kiln::make_shape;
using kiln::make_smem_ptr;
using kiln::make_stride;
using kiln::make_tensor;
using kiln::size;

using _0 = Int<0>;
using _1 = Int<1>;
using _2 = Int<2>;
using _3 = Int<3>;
using _4 = Int<4>;
using _8 = Int<8>;
using _16 = Int<16>;
using _32 = Int<32>;
using _64 = Int<64>;
using _128 = Int<128>;
using _256 = Int<256>;
using _512 = Int<512>;
using _1024 = Int<1024>;

template <class... Ts>
using Shape = Tuple<Ts...>;
template <class... Ts>
using Stride = Tuple<Ts...>;
template <class... Ts>
using Coord = Tuple<Ts...>;
template <class... Ts>
KILN_HD constexpr Tuple<Ts...> make_coord(Ts... coordinates) {
  return make_tuple(coordinates...);
}

struct alignas(16) uint128_t {
  unsigned long long low, high;
};

// ---- layouts ---------------------------------------------------------------------------------

namespace detail {

template <class Shape, class Stride>
struct LayoutType {
  using type = TensorLayout<Swizzled{kiln::detail::layout_from_tuples<Shape, Stride>()}>;
};
template <class Shape>
struct LayoutType<Shape, void> {
  using type = TensorLayout<Swizzled{compact(kiln::detail::flatten_tuple<Shape>().leaves)}>;
};

}  // namespace detail

// Layout<Shape<_128, _1>>{}: compact, first mode fastest; a static layout as an object.
template <class Shape, class Stride = void>
using Layout = typename detail::LayoutType<Shape, Stride>::type;

template <int Bits, int Base, int Shift>
struct Swizzle {};

// The layout, its indices swizzled.
template <int Bits, int Base, int Shift, Swizzled S>
KILN_DEVICE constexpr auto composition(Swizzle<Bits, Base, Shift>, TensorLayout<S>) {
  static_assert(S.swizzle.bits == 0, "the layout is swizzled already");
  return TensorLayout<Swizzled{kiln::Swizzle{Bits, Base, Shift}, S.layout}>{};
}

template <class L>
inline constexpr int cosize_v = static_cast<int>(cosize(L::layout()));
template <class L>
inline constexpr int size_v = static_cast<int>(kiln::size(L::layout().layout));
template <Swizzled S>
KILN_DEVICE constexpr int size(TensorLayout<S>) {
  return static_cast<int>(kiln::size(S.layout));
}
template <Swizzled S>
KILN_DEVICE constexpr int cosize(TensorLayout<S>) {
  return static_cast<int>(kiln::cosize(S));
}

// ---- tiles -----------------------------------------------------------------------------------

namespace detail {

template <int... Tiles, class T, class... Coords>
KILN_DEVICE auto local_tile_at(const T& tensor, const Tuple<Int<Tiles>...>&, const Tuple<>&,
                               Coords... coords) {
  return kiln::local_tile<Tiles...>(tensor, coords...);
}
template <int... Tiles, class T, class Head, class... Tail, class... Coords>
KILN_DEVICE auto local_tile_at(const T& tensor, const Tuple<Int<Tiles>...>& tile,
                               const Tuple<Head, Tail...>& rest, Coords... coords) {
  return local_tile_at(tensor, tile, rest.tail, coords..., rest.head);
}

}  // namespace detail

// The tile of that shape at a coordinate counted in tiles; `_` keeps all tiles of a mode.
template <int... Tiles, class E, Swizzled S, class Role, class... Coords>
KILN_DEVICE auto local_tile(const Tensor<E, S, Role>& tensor, const Tuple<Int<Tiles>...>& tile,
                            const Tuple<Coords...>& coord) {
  return detail::local_tile_at(tensor, tile, coord);
}

// ---- atoms -----------------------------------------------------------------------------------

// The names say: architecture, shape, types of D, A, B and C, and that A and B lie with K fastest.
using SM80_16x8x16_F32F16F16F32_TN = atom::m16n8k16_f32_f16;
using SM80_16x8x16_F16F16F16F16_TN = atom::m16n8k16_f16_f16;
using SM80_16x8x16_F32BF16BF16F32_TN = atom::m16n8k16_f32_bf16;
using SM80_16x8x8_F32F16F16F32_TN = atom::m16n8k8_f32_f16;
using SM80_16x8x8_F16F16F16F16_TN = atom::m16n8k8_f16_f16;
using SM80_16x8x8_F32BF16BF16F32_TN = atom::m16n8k8_f32_bf16;

using SM75_U32x1_LDSM_N = atom::ldmatrix_x1;
using SM75_U32x2_LDSM_N = atom::ldmatrix_x2;
using SM75_U32x4_LDSM_N = atom::ldmatrix_x4;
using SM75_U16x2_LDSM_T = atom::ldmatrix_x1_trans;
using SM75_U16x4_LDSM_T = atom::ldmatrix_x2_trans;
using SM75_U16x8_LDSM_T = atom::ldmatrix_x4_trans;

namespace detail {

template <int Bytes>
struct AsyncCopy;
template <>
struct AsyncCopy<4> {
  using type = atom::cp_async_4;
};
template <>
struct AsyncCopy<8> {
  using type = atom::cp_async_8;
};
template <>
struct AsyncCopy<16> {
  using type = atom::cp_async_16;
};

}  // namespace detail

// Which cache levels a copy fills follows from its width here (16 bytes: L2 alone), so both of
// CuTe's names mean the same.
template <class Vector>
using SM80_CP_ASYNC_CACHEALWAYS = typename detail::AsyncCopy<sizeof(Vector)>::type;
template <class Vector>
using SM80_CP_ASYNC_CACHEGLOBAL = typename detail::AsyncCopy<sizeof(Vector)>::type;
template <class Vector>
using UniversalCopy = vectors<static_cast<int>(sizeof(Vector))>;

template <class Operation>
struct MMA_Atom {};
template <class Operation, class Element>
struct Copy_Atom {};

// Warps of the block over (M, N, K).
template <class Operation, Swizzled Warps>
KILN_DEVICE constexpr auto make_tiled_mma(MMA_Atom<Operation>, TensorLayout<Warps>) {
  return TiledMma<Operation, Warps.layout>{};
}
template <class Operation>
KILN_DEVICE constexpr auto make_tiled_mma(MMA_Atom<Operation>) {
  return TiledMma<Operation>{};
}
template <class Operation, class Element, Swizzled Threads, Swizzled Values>
KILN_DEVICE constexpr auto make_tiled_copy(Copy_Atom<Operation, Element>, TensorLayout<Threads>,
                                           TensorLayout<Values>) {
  return TiledCopy<Operation, Threads.layout, Values.layout>{};
}
template <class Operation, class Element, class Mma>
KILN_DEVICE constexpr auto make_tiled_copy_A(Copy_Atom<Operation, Element>, const Mma& mma) {
  return kiln::make_tiled_copy_A<Operation>(mma);
}
template <class Operation, class Element, class Mma>
KILN_DEVICE constexpr auto make_tiled_copy_B(Copy_Atom<Operation, Element>, const Mma& mma) {
  return kiln::make_tiled_copy_B<Operation>(mma);
}

}  // namespace kiln::cute
