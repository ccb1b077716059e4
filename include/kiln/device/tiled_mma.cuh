// A tile multiplied by many warps together: which thread holds which elements of A, B and C.
//
//   auto mma  = make_tiled_mma<atom::m16n8k16_f32_f16, "(2,2)"_layout>();   // 2 x 2 warps
//   auto mine = mma.get_thread_slice(threadIdx.x);
//   auto tCrA = mine.partition_fragment_A(sA);           // registers: (atom values, M, K repeats)
//   auto accumulators = mine.partition_fragment_C(gC);
//   gemm(mma, tCrA, tCrB, accumulators);                 // C += A * B^T
//
// A is (M, K), B is (N, K), C is (M, N). The atom's maps come from kiln's table of instructions
// (atoms.cuh is generated from it), so `kiln map` draws exactly what partition_C does here. `Warps`
// lays the block's warps over M and N (and K), (m, n) -> warp; the tile they cover together repeats
// over the tensors. There is no permutation of the tile: a warp's next atom lies one covered tile
// further on, and the matrix loads below follow it wherever it is.
#pragma once

#include "kiln/device/algorithm.cuh"
#include "kiln/device/atoms.cuh"
#include "kiln/device/tensor.cuh"
#include "kiln/device/tiled_copy.cuh"

struct __half;
struct __nv_bfloat16;

namespace kiln {

enum class Operand { kA, kB, kC };

namespace detail {

// The largest power of two of elements, up to 8, that lie in a row wherever such a row may begin.
KILN_HD constexpr int aligned_run(const Swizzled& s) {
  Index run = 8;
  for (int leaf = 0; leaf < s.layout.leaves; ++leaf) {
    const Index extent = s.layout.extents[leaf];
    const Index stride = s.layout.strides[leaf];
    if (extent == 1) continue;
    const Index room = stride == 1 ? extent : stride;
    while (room % run != 0) run /= 2;
  }
  if (s.swizzle.bits != 0) run = smaller(run, Index{1} << s.swizzle.base);
  return static_cast<int>(run);
}

}  // namespace detail

// The role of a fragment: it holds this operand of this atom.
template <class Atom, Operand O>
struct FragmentOf {};

namespace detail {

// The element type an atom means by T: CUDA's own 16-bit types are the same bits as kiln's.
template <class T>
struct KilnType {
  using type = plain<T>;
};
template <>
struct KilnType<__half> {
  using type = f16;
};
template <>
struct KilnType<__nv_bfloat16> {
  using type = bf16;
};

template <class Atom, Operand O>
KILN_HD constexpr Layout atom_map() {
  return O == Operand::kA ? Atom::map_a() : O == Operand::kB ? Atom::map_b() : Atom::map_c();
}
template <class Atom, Operand O>
struct AtomElement {
  using type = typename Atom::C;
};
template <class Atom>
struct AtomElement<Atom, Operand::kA> {
  using type = typename Atom::A;
};
template <class Atom>
struct AtomElement<Atom, Operand::kB> {
  using type = typename Atom::B;
};

// Mode i of the warps' layout, 1 where it has none.
KILN_HD constexpr Index warps_along(const Layout& warps, int i) {
  return i < rank(warps) ? size(warps, i) : 1;
}

// warp -> its place, where warps step by `row_step` along one mode of `warps` and by `col_step`
// along another.
KILN_HD constexpr Layout warp_map(const Layout& warps, int row_mode, Index row_step, int col_mode,
                                  Index col_step) {
  Index step[3] = {0, 0, 0};
  step[row_mode] = row_step;
  step[col_mode] = col_step;
  const Layout places = make_layout(make_layout(warps_along(warps, 0), step[0]),
                                    make_layout(warps_along(warps, 1), step[1]),
                                    make_layout(warps_along(warps, 2), step[2]));
  return composition(places, right_inverse(warps));
}

// One operand of a tiled MMA: the tile that all warps cover together, and its maps into a larger
// tile of `tile_rows` rows.
template <class Atom, Layout Warps, Operand O>
struct TiledOperand {
  enum : int {
    kRowMode = O == Operand::kB ? 1 : 0,
    kColMode = O == Operand::kC ? 1 : 2,
    kAtomRows = O == Operand::kB ? Atom::kN : Atom::kM,
    kAtomCols = O == Operand::kC ? Atom::kN : Atom::kK,
    kRows = static_cast<int>(kAtomRows * warps_along(Warps, kRowMode)),
    kCols = static_cast<int>(kAtomCols * warps_along(Warps, kColMode))
  };

  // Maps into a tile of `Rows` rows, each to row + Rows * column and computed once for all tensors
  // with such tiles. Of the atom: (lane, value).
  template <int Rows>
  static constexpr Layout kAtomMap = composition(make_layout(make_layout(kAtomRows, 1),
                                                             make_layout(kAtomCols, Rows)),
                                                 atom_map<Atom, O>());
  // Of the block: thread, counted lane + lanes * warp.
  template <int Rows>
  static constexpr Layout kThreadMap = make_layout(mode(kAtomMap<Rows>, 0),
                                                   warp_map(Warps, kRowMode, kAtomRows, kColMode,
                                                            kAtomCols* Rows));
  // Of one thread: (atom's values, row repeats, column repeats).
  template <int Rows, int Cols>
  static constexpr Layout kValueMap = make_layout(mode(kAtomMap<Rows>, 1),
                                                  make_layout(Rows / kRows, kRows),
                                                  make_layout(Cols / kCols, kCols* Rows));
};

// A tensor's tile must be a whole number of what the warps cover.
template <class Covered, class T>
KILN_HD constexpr void check_tile() {
  constexpr int kRows = rows_of<T>();
  constexpr int kCols = cols_of<T>();
  static_assert(require<kRows % Covered::kRows == 0,
                        misuse::extent_is_not_a_multiple_of_the_tile<kRows, Covered::kRows>>);
  static_assert(require<kCols % Covered::kCols == 0,
                        misuse::extent_is_not_a_multiple_of_the_tile<kCols, Covered::kCols>>);
}

}  // namespace detail

template <class Atom_, Layout Warps = "(1,1,1)"_layout>
struct TiledMma {
  using Atom = Atom_;
  enum : int { kThreads = static_cast<int>(Atom::kLanes * size(Warps)) };
  template <Operand O>
  using Covered = detail::TiledOperand<Atom, Warps, O>;

  struct Slice {
    int thread;

    // This thread's elements of a tensor, where they lie: (atom's values, repeats, repeats, further
    // modes of the tensor).
    template <class T>
    KILN_DEVICE auto partition_A(const T& tensor) const {
      return cut<Operand::kA>(tensor);
    }
    template <class T>
    KILN_DEVICE auto partition_B(const T& tensor) const {
      return cut<Operand::kB>(tensor);
    }
    template <class T>
    KILN_DEVICE auto partition_C(const T& tensor) const {
      return cut<Operand::kC>(tensor);
    }

    // Registers for them, in the atom's element type.
    template <class T>
    KILN_DEVICE auto partition_fragment_A(const T&) const {
      return fragment<Operand::kA, T>();
    }
    template <class T>
    KILN_DEVICE auto partition_fragment_B(const T&) const {
      return fragment<Operand::kB, T>();
    }
    template <class T>
    KILN_DEVICE auto partition_fragment_C(const T&) const {
      return fragment<Operand::kC, T>();
    }

   private:
    template <Operand O, class T>
    KILN_DEVICE static auto fragment() {
      using Tile = Covered<O>;
      detail::check_tile<Tile, T>();
      constexpr Layout kModes = detail::with_further_modes(
          Tile::template kValueMap<detail::rows_of<T>(), detail::cols_of<T>()>, T::layout().layout);
      return detail::Registers<typename detail::AtomElement<Atom, O>::type,
                               detail::register_layout(kModes), FragmentOf<Atom, O>>{};
    }
    template <Operand O, class T>
    KILN_DEVICE auto cut(const T& tensor) const {
      using Tile = Covered<O>;
      detail::check_tile<Tile, T>();
      constexpr int kTileRows = detail::rows_of<T>();
      constexpr int kTileCols = detail::cols_of<T>();
      return detail::partition<Tile::template kThreadMap<kTileRows>,
                               Tile::template kValueMap<kTileRows, kTileCols>, FragmentOf<Atom, O>>(
          tensor, thread);
    }
  };

  KILN_DEVICE Slice get_thread_slice(int thread) const { return {thread}; }
  KILN_DEVICE Slice get_slice(int thread) const { return {thread}; }
};

template <class Atom, Layout Warps = "(1,1,1)"_layout>
KILN_DEVICE constexpr TiledMma<Atom, Warps> make_tiled_mma() {
  return {};
}

// ---- multiplying -----------------------------------------------------------------------------

namespace detail {

// What the role of a fragment says: the atom, and which operand of it.
template <class Role>
struct FragmentRole {
  using Atom = void;
};
template <class Atom_, Operand O>
struct FragmentRole<FragmentOf<Atom_, O>> {
  using Atom = Atom_;
  static constexpr Operand kOperand = O;
};

// Whether the fragment is that operand of that atom; an error where it is not.
template <class Atom, Operand O, class Fragment>
KILN_HD constexpr bool check_fragment() {
  using Role = FragmentRole<typename Fragment::Role>;
  using Element = typename AtomElement<Atom, O>::type;
  using Given = typename KilnType<plain<typename Fragment::Element>>::type;
  static_assert(require_same<misuse::fragment_belongs_to_another_atom_than_the_one_that_runs,
                             typename Role::Atom, Atom>);
  if constexpr (kSame<typename Role::Atom, Atom>) {
    static_assert(
        require<
            Role::kOperand == O,
            misuse::fragment_is_of_another_operand_than_the_one_it_stands_for<Role::kOperand, O>>);
    static_assert(require_same<misuse::element_type_is_not_the_one_the_atom_takes, Given, Element>);
  }
  static_assert(
      require<
          Fragment::memory() == Memory::kRegisters,
          misuse::memory_is_not_the_one_the_atom_takes<Fragment::memory(), Memory::kRegisters>>);
  return kSame<typename Fragment::Role, FragmentOf<Atom, O>> && kSame<Given, Element> &&
         Fragment::memory() == Memory::kRegisters;
}

}  // namespace detail

// C += A * B^T over all repeats of the fragments: A (values, m, k), B (values, n, k),
// C (values, m, n); or A (values, m) and B (values, n) for one step of k.
template <class Atom, Layout Warps, class FragmentA, class FragmentB, class FragmentC>
KILN_DEVICE void gemm(const TiledMma<Atom, Warps>& mma, const FragmentA& a, const FragmentB& b,
                      FragmentC&& c) {
  using C = detail::plain<FragmentC>;
  constexpr bool kFit = detail::check_fragment<Atom, Operand::kA, FragmentA>() &&
                        detail::check_fragment<Atom, Operand::kB, FragmentB>() &&
                        detail::check_fragment<Atom, Operand::kC, C>();
  if constexpr (!kFit) {
    // Refused above: their extents would only be a second complaint.
  } else if constexpr (FragmentA::kRank == 3) {
    constexpr int kK = static_cast<int>(size(FragmentA::layout().layout, 2));
    constexpr int kKOfB = static_cast<int>(size(FragmentB::layout().layout, 2));
    static_assert(require<kK == kKOfB, misuse::a_and_b_differ_in_k<kK, kKOfB>>);
#pragma unroll
    for (int k = 0; k < kK; ++k) gemm(mma, a(_, _, k), b(_, _, k), c);
  } else {
    constexpr int kM = static_cast<int>(size(FragmentA::layout().layout, 1));
    constexpr int kN = static_cast<int>(size(FragmentB::layout().layout, 1));
    constexpr int kMOfC = static_cast<int>(size(C::layout().layout, 1));
    constexpr int kNOfC = static_cast<int>(size(C::layout().layout, 2));
    static_assert(require<kM == kMOfC, misuse::a_and_c_differ_in_m<kM, kMOfC>>);
    static_assert(require<kN == kNOfC, misuse::b_and_c_differ_in_n<kN, kNOfC>>);
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int i = 0; i < kN; ++i) {
        const int n = m % 2 == 0 ? i : kN - 1 - i;  // back and forth: B's registers stay warm
        Atom::mma(reinterpret_cast<typename Atom::RegisterC*>(&c(0, m, n)),
                  reinterpret_cast<const typename Atom::RegisterA*>(&a(0, m)),
                  reinterpret_cast<const typename Atom::RegisterB*>(&b(0, n)));
      }
    }
  }
}

// ---- matrix loads ----------------------------------------------------------------------------

// ldmatrix for the fragments of a tiled MMA: each lane gives the address of one row of 8 elements,
// and what arrives is what the atom wants.
//
//   auto load = make_tiled_copy_A<atom::ldmatrix_x4>(mma);
//   copy(load, load.get_thread_slice(threadIdx.x).partition_S(sA)(_, _, k), tCrA(_, _, k));
template <class Load_, class Mma, Operand O>
struct TiledMatrixLoad {
  using Load = Load_;
  using Covered = typename Mma::template Covered<O>;
  using Role = FragmentOf<typename Mma::Atom, O>;
  // Elements a lane receives from one instruction.
  enum : int { kElements = 2 * Load::kMatrices };

  struct Slice {
    int thread;

    // The rows this thread names, in the shape of its fragment.
    template <class T>
    KILN_DEVICE auto partition_S(const T& tensor) const {
      constexpr int kBytes = static_cast<int>(sizeof(typename T::Element));
      static_assert(
          require<T::memory() == Memory::kShared,
                  misuse::memory_is_not_the_one_the_atom_takes<T::memory(), Memory::kShared>>);
      static_assert(require<kBytes == 2,
                            misuse::bytes_of_an_element_are_not_those_the_atom_takes<kBytes, 2>>);
      detail::check_tile<Covered, T>();
      constexpr int kRows = detail::rows_of<T>();
      constexpr int kCols = detail::cols_of<T>();
      check_rows<T>();
      return detail::partition<kRowMap<kRows, kCols>, Covered::template kValueMap<kRows, kCols>,
                               Role>(tensor, thread);
    }
    // The fragment itself; its registers are in the load's order already.
    template <class F>
    KILN_DEVICE F& retile_D(F& fragment) const {
      return fragment;
    }
  };

  KILN_DEVICE Slice get_thread_slice(int thread) const { return {thread}; }
  KILN_DEVICE Slice get_slice(int thread) const { return {thread}; }

 private:
  // (lane, the first load's values) -> row + Rows * column
  template <int Rows, int Cols>
  static constexpr Layout kOwners = make_layout(mode(Covered::template kAtomMap<Rows>, 0),
                                                composition(Covered::template kValueMap<Rows, Cols>,
                                                            make_layout(kElements, 1)));
  // thread -> the row whose address it gives: row r of matrix i starts where its element (r, 0) is
  // held. Lanes past the last matrix repeat the first addresses.
  static constexpr Layout kHolders =
      composition(left_inverse(Load::result_map()),
                  make_layout(make_layout(8, 1), make_layout(Load::kMatrices, 64),
                              make_layout(4 / Load::kMatrices, 0)));
  template <int Rows, int Cols>
  static constexpr Layout kRowMap = make_layout(composition(kOwners<Rows, Cols>,
                                                            coalesce(kHolders)),
                                                mode(Covered::template kThreadMap<Rows>, 1));
  // The 8 elements of a row must be neighbours in memory, at a multiple of 16 bytes.
  template <class T>
  KILN_HD static constexpr void check_rows() {
    constexpr Layout kMemory = composition(detail::tile_layout(T::layout().layout),
                                           kOwners<detail::rows_of<T>(), detail::cols_of<T>()>);
    constexpr Layout kRow =
        composition(kMemory, composition(left_inverse(Load::result_map()), make_layout(8, 8)));
    constexpr int kStride = static_cast<int>(kRow(1));
    static_assert(require<kStride == 1,
                          misuse::stride_of_the_k_mode_is_not_the_one_the_atom_takes<kStride, 1>>);
    constexpr int kRun = detail::aligned_run(T::layout());
    static_assert(require < kStride != 1 || kRun >= 8,
                  misuse::copy_moves_more_elements_at_once_than_are_contiguous < 8, kRun >>);
  }
};

template <class Load, class Atom, Layout Warps>
KILN_DEVICE constexpr TiledMatrixLoad<Load, TiledMma<Atom, Warps>, Operand::kA> make_tiled_copy_A(
    const TiledMma<Atom, Warps>&) {
  return {};
}
template <class Load, class Atom, Layout Warps>
KILN_DEVICE constexpr TiledMatrixLoad<Load, TiledMma<Atom, Warps>, Operand::kB> make_tiled_copy_B(
    const TiledMma<Atom, Warps>&) {
  return {};
}

template <class Load, class Mma, Operand O, class Source, class Destination>
KILN_DEVICE void copy(const TiledMatrixLoad<Load, Mma, O>&, const Source& from, Destination&& to) {
  using To = detail::plain<Destination>;
  using Tiled = TiledMatrixLoad<Load, Mma, O>;
  detail::check_sizes<Source, To>();
  detail::check_fragment<typename Mma::Atom, O, To>();
  constexpr int kSize = static_cast<int>(size(Source::layout().layout));
  static_assert(require<kSize % Tiled::kElements == 0,
                        misuse::extent_is_not_a_multiple_of_the_tile<kSize, Tiled::kElements>>);
#pragma unroll
  for (int i = 0; i < kSize; i += Tiled::kElements) {
    Load::load(reinterpret_cast<unsigned*>(to.address(i)), from.address(i));
  }
}

}  // namespace kiln
