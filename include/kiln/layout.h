// Layouts as values: a tree of (extent, stride) leaves that sends a coordinate to an index.
//
//   constexpr Layout c = "((4,8),(2,2)):((32,1),(16,8))"_layout;   // lane x register -> element
//   c(5, 1)  ==  32 + 1 + 16  ==  49                               // lane 5 = (1,1), register 1
//   size(c) == 128,  cosize(c) == 128,  is_bijective(c)
//
// The words and the meaning of every operation are those of CuTe's documents: the *shape* is the
// tree of extents, a *mode* is a child of the root, coordinates count colexicographically (the
// first mode runs fastest), `size` is the number of coordinates and `cosize` one past the largest
// index. Unlike CuTe's, a layout here is one small value of one type: the compiler computes with it
// at run time, tables prove themselves with it in static_assert, and device code takes it as a
// template argument. An operation with no answer (strides that do not divide, more than kLeavesMax
// leaves) gives a layout with `valid() == false`, which every further operation passes on.
//
// Usable by the host compiler, nvcc and NVRTC: no headers but <cstdint>, no allocation.
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

// Mode `i` as a layout of its own; invalid when there is no such mode.
[[nodiscard]] KILN_HD constexpr Layout mode(const Layout& layout, int i) {
  int first = 0;
  for (; i > 0 && first < layout.leaves; --i) first = detail::mode_end(layout, first);
  if (i != 0 || first >= layout.leaves) return {};
  const int end = detail::mode_end(layout, first);
  detail::LayoutBuilder out;
  for (int leaf = first; leaf < end; ++leaf) {
    out.leaf(layout.extents[leaf], layout.strides[leaf], layout.opens[leaf], layout.closes[leaf]);
  }
  if (detail::is_tuple(layout)) {
    if (first == 0) --out.layout.opens[0];
    if (end == layout.leaves) --out.layout.closes[end - first - 1];
  }
  return out.done();
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
  const Coord coord{{first, second, static_cast<Index>(rest)...},
                    2 + static_cast<int>(sizeof...(Rest))};
  return crd2idx(coord, *this);
}

namespace detail {

template <Layout L, int kLeaf, class Int>
KILN_HD constexpr Int index_from_leaf(Int i) {
  constexpr auto kStride = static_cast<Int>(L.strides[kLeaf]);
  if constexpr (kLeaf == L.leaves - 1) {
    return i * kStride;
  } else {
    constexpr auto kExtent = static_cast<Int>(L.extents[kLeaf]);
    return i % kExtent * kStride + index_from_leaf<L, kLeaf + 1>(i / kExtent);
  }
}

template <Layout L, int kMode, class Int, class... Rest>
KILN_HD constexpr Int index_from_mode(Int first, Rest... rest) {
  const Int here = index_from_leaf<mode(L, kMode), 0>(first);
  if constexpr (sizeof...(Rest) == 0) {
    return here;
  } else {
    return here + index_from_mode<L, kMode + 1>(static_cast<Int>(rest)...);
  }
}

}  // namespace detail

// L(i) and L(i, j, ...) for a layout known at compile time, in the arithmetic of the argument's own
// type and without a loop. What device code should call: compilers there do not unroll
// Layout::operator() and would keep the layout in local memory.
template <Layout L, class Int>
[[nodiscard]] KILN_HD constexpr Int index_at(Int i) {
  static_assert(L.valid());
  return detail::index_from_leaf<L, 0>(i);
}
template <Layout L, class Int, class... Rest>
[[nodiscard]] KILN_HD constexpr Int index_at(Int first, Int second, Rest... rest) {
  static_assert(rank(L) == 2 + static_cast<int>(sizeof...(Rest)));
  return detail::index_from_mode<L, 0>(first, second, static_cast<Int>(rest)...);
}

// ---- construction --------------------------------------------------------------------------

// The bare layout extent:stride.
[[nodiscard]] KILN_HD constexpr Layout make_layout(Index extent, Index stride) {
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
  for (int i = 0; i < kCount; ++i) {
    out.append(modes[i], i == 0 ? 1 : 0, i == kCount - 1 ? 1 : 0);
  }
  return out.done();
}

// The same shape with compact strides: first mode fastest, no gaps.
[[nodiscard]] KILN_HD constexpr Layout compact(Layout layout) {
  Index stride = 1;
  for (int i = 0; i < layout.leaves; ++i) {
    layout.strides[i] = stride;
    stride *= layout.extents[i];
  }
  return layout;
}

// ---- text ----------------------------------------------------------------------------------

// What parse_layout_text found. `error` is null on success, else a short sentence about the
// character at `position`.
struct LayoutText {
  Layout layout;
  const char* error = nullptr;
  int position = 0;
};

namespace detail {

// Reads one tree of numbers ("((4,8),2)") from text[position...] up to ':' or the end.
struct TreeReader {
  static constexpr Index kNumberMax = Index{1} << 48;
  static constexpr int kDepthMax = 8;

  const char* text;
  int length;
  int position = 0;
  const char* error = nullptr;

  KILN_HD constexpr bool at_end() const { return position >= length; }
  KILN_HD constexpr char peek() const { return at_end() ? '\0' : text[position]; }
  KILN_HD constexpr void skip_spaces() {
    while (peek() == ' ') ++position;
  }

  KILN_HD constexpr Index number() {
    const bool negative = peek() == '-';
    if (negative) ++position;
    if (peek() < '0' || peek() > '9') {
      error = "expected a number";
      return 0;
    }
    Index value = 0;
    for (; peek() >= '0' && peek() <= '9'; ++position) {
      value = value * 10 + (peek() - '0');
      if (value > kNumberMax) {
        error = "a number above 2^48";
        return 0;
      }
    }
    return negative ? -value : value;
  }

  // Numbers land in `extents`; the brackets in `opens` and `closes`.
  KILN_HD constexpr Layout tree() {
    Layout out;
    int now = 0;
    int opens = 0;
    while (error == nullptr) {
      skip_spaces();
      if (peek() == '(') {
        ++position;
        ++opens;
        if (now + opens > kDepthMax) error = "brackets nested more than 8 deep";
        continue;
      }
      if (out.leaves == Layout::kLeavesMax) {
        error = "more than 16 leaves";
        break;
      }
      out.extents[out.leaves] = number();
      out.opens[out.leaves++] = static_cast<LeafDepth>(opens);
      now += opens;
      opens = 0;
      if (!after_leaf(out, now)) break;
    }
    return error == nullptr ? out : Layout{};
  }

 private:
  // Closing brackets and the comma after a leaf; true when another leaf must follow.
  KILN_HD constexpr bool after_leaf(Layout& out, int& now) {
    if (error != nullptr) return false;
    for (skip_spaces(); peek() == ')' && now > 0; skip_spaces()) {
      ++position;
      --now;
      ++out.closes[out.leaves - 1];
    }
    if (now == 0) return false;
    if (peek() != ',') {
      error = "expected `,` or `)`";
      return false;
    }
    ++position;
    return true;
  }
};

}  // namespace detail

// Reads "shape:stride", as in "((4,8),2):((32,1),16)", or "shape" alone for compact strides.
// Extents are at least 1, strides may be negative, and both must nest alike.
[[nodiscard]] KILN_HD constexpr LayoutText parse_layout_text(const char* text, int length) {
  detail::TreeReader reader{text, length};
  Layout layout = reader.tree();
  for (int i = 0; i < layout.leaves && reader.error == nullptr; ++i) {
    if (layout.extents[i] < 1) reader.error = "an extent below 1";
  }
  if (reader.error != nullptr) return {{}, reader.error, reader.position};
  if (reader.at_end()) return {compact(layout), nullptr, reader.position};
  if (reader.peek() != ':') return {{}, "expected `:`", reader.position};
  ++reader.position;
  const Layout strides = reader.tree();
  if (reader.error != nullptr) return {{}, reader.error, reader.position};
  if (!reader.at_end()) return {{}, "text after the strides", reader.position};
  if (!congruent(layout, strides)) return {{}, "shape and strides nest differently", 0};
  for (int i = 0; i < layout.leaves; ++i) layout.strides[i] = strides.extents[i];
  return {layout, nullptr, reader.position};
}

namespace detail {
// Not constexpr: reaching it while a constant is computed is the compile error.
KILN_HD inline void layout_literal_does_not_parse() {}
}  // namespace detail

// "((4,8),2):((32,1),16)"_layout: a layout constant; text that does not parse does not compile.
KILN_HD consteval Layout operator""_layout(const char* text, decltype(sizeof(0)) length) {
  const LayoutText parsed = parse_layout_text(text, static_cast<int>(length));
  if (parsed.error != nullptr) detail::layout_literal_does_not_parse();
  return parsed.layout;
}

// ---- algebra -------------------------------------------------------------------------------

// The same function of a linear coordinate in the fewest leaves: extents of 1 dropped, neighbours
// that count on merged. coalesce((2,(1,6)):(1,(6,2))) == 12:1. Nothing left gives 1:0.
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

namespace detail {

// Composes a flat, coalesced A with the leaves of B, one by one. Written in the digits of A's
// leaves, B's leaves must add up without a carry, or no layout of B's nesting is the composition:
// `used[i]` is the largest digit i reached so far.
struct Composer {
  Layout a;
  Index used[Layout::kLeavesMax] = {};

  // Takes `extent` steps of `stride` in leaf i; false when they carry out of it.
  KILN_HD constexpr bool take(LayoutBuilder& out, int i, Index extent, Index stride) {
    used[i] += (extent - 1) * stride;
    out.leaf(extent, stride * a.strides[i]);
    return i == a.leaves - 1 || used[i] < a.extents[i];
  }

  // A o (extent:stride): walks A's leaves, using up the stride first and then the extent. Invalid
  // when the progression does not fall on whole pieces of A's leaves.
  KILN_HD constexpr Layout leaf(Index extent, Index stride) {
    if (stride == 0) return make_layout(extent, 0);
    if (a.leaves == 1) return make_layout(extent, stride * a.strides[0]);
    if (stride < 0) return {};
    LayoutBuilder out;
    for (int i = 0; i < a.leaves - 1; ++i) {
      const Index room = a.extents[i];
      const bool inside = (extent - 1) * stride < room;
      if (!inside && room % stride != 0 && stride % room != 0) return {};
      const Index taken = inside ? extent : smaller(ceil_div(room, stride), extent);
      if (extent % taken != 0) return {};
      if (taken > 1 && !take(out, i, taken, stride)) return {};
      extent /= taken;
      stride = ceil_div(stride, room);
    }
    if (extent > 1 || out.layout.leaves == 0) take(out, a.leaves - 1, extent, stride);
    return out.done_flat();
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
    const Layout part = composer.leaf(b.extents[i], b.strides[i]);
    out.append(part, b.opens[i], b.closes[i]);
  }
  return out.done();
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
// Strides of 0 are ignored; overlapping or ill-dividing leaves have no complement.
[[nodiscard]] KILN_HD constexpr Layout complement(const Layout& layout, Index target) {
  if (!layout.valid()) return {};
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

// L with L(layout(i)) == i for i < size(layout). Needs an injective layout with a complement.
[[nodiscard]] KILN_HD constexpr Layout left_inverse(const Layout& layout) {
  for (int i = 0; i < layout.leaves; ++i) {
    if (layout.extents[i] > 1 && layout.strides[i] == 0) return {};
  }
  return right_inverse(make_layout(layout, complement(layout)));
}

// Mode 0 is the tile that `tiler` picks out of `layout`, mode 1 runs over the tiles.
[[nodiscard]] KILN_HD constexpr Layout logical_divide(const Layout& layout, const Layout& tiler) {
  return composition(layout, make_layout(tiler, complement(tiler, size(layout))));
}

// Mode 0 is `layout`, mode 1 repeats it, disjointly, in the arrangement of `tiler`.
[[nodiscard]] KILN_HD constexpr Layout logical_product(const Layout& layout, const Layout& tiler) {
  const Layout rest = complement(layout, size(layout) * cosize(tiler));
  return make_layout(layout, composition(rest, tiler));
}

// ---- swizzles ------------------------------------------------------------------------------

// A permutation of indices: the `bits` bits that start `shift` above `base` are xored into the
// `bits` bits that start at `base`. Swizzle{3, 4, 3} on byte addresses spreads eight rows of 128
// bytes over all banks: 16-byte chunk c of row r goes to chunk c ^ (r % 8). Its own inverse.
struct Swizzle {
  int bits = 0;
  int base = 0;
  int shift = 0;  // >= bits, so that source and target do not overlap

  [[nodiscard]] KILN_HD constexpr Index operator()(Index index) const {
    const Index mask = ((Index{1} << bits) - 1) << (base + shift);
    return index ^ ((index & mask) >> shift);
  }

  friend KILN_HD constexpr bool operator==(const Swizzle&, const Swizzle&) = default;
};

// The number of indices after which the swizzle repeats.
[[nodiscard]] KILN_HD constexpr Index period(const Swizzle& swizzle) {
  return swizzle.bits == 0 ? 1 : Index{1} << (swizzle.base + swizzle.shift + swizzle.bits);
}

}  // namespace kiln
