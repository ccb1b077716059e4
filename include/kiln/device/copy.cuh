// Copies between a window of a global array and a tile of shared memory, by many threads together.
//
//   kiln::copy_async<32, kiln::Guarded<0, 1>, kiln::Widths<16, 8, 4, 2>>(
//       tile, kiln::window(lhs, {M, K}, {16 * block_m, 16 * k}), thread);
//
// The tile is cut into vectors of one width, row by row; vector i is moved by thread i % Threads.
// The width is the first of the list to which the window's first address and all its pitches are
// aligned; the last one is always taken. In a guarded dimension, elements past the window's limit
// are read as zero and not written; other dimensions must lie inside.
//
// Rows of 1- and 2-byte elements that begin anywhere still arrive in vectors of 16 bytes: each is
// cut out of the two aligned ones around it, which lie in the same row but at its ends.
#pragma once

#include "kiln/device/memory.cuh"
#include "kiln/device/window.cuh"

namespace kiln {

template <int... Dims>
struct Guarded {
  static constexpr unsigned kMask = (0u | ... | (1u << Dims));
};

template <int... Bytes>
struct Widths {};
template <int First, int... Rest>
struct Widths<First, Rest...> {
  static constexpr int kWidest = First;
};

// The extents of a copied tile; all but the last are flattened into the rows of shared memory.
template <int... Extents>
struct Shape {
  static constexpr int kRank = static_cast<int>(sizeof...(Extents));
  static constexpr int kSize = (1 * ... * Extents);
  template <int Dim>
  __device__ static constexpr int extent() {
    constexpr int kExtents[] = {Extents...};
    return kExtents[Dim];
  }
};

namespace detail {

// How one vector of W bytes moves; `valid` of its elements lie inside the window.
struct VectorIn {
  static constexpr bool kInward = true;
  template <int W, class T>
  __device__ static void move(T* shared, const T* global, int valid) {
    if (valid == W / static_cast<int>(sizeof(T))) {
      move_vector<W>(shared, global);
    } else {
      elements<W>(shared, global, valid);
    }
  }
  template <int W, class T>
  __device__ static void elements(T* shared, const T* global, int valid) {
    constexpr int kElements = W / static_cast<int>(sizeof(T));
#pragma unroll 1
    for (int e = 0; e < kElements; ++e) shared[e] = e < valid ? global[e] : zero<T>();
  }
};

// cp.async moves 4 bytes at least.
struct AsyncIn {
  static constexpr bool kInward = true;
  template <int W, class T>
  __device__ static void move(T* shared, const T* global, int valid) {
    if constexpr (W >= 4) {
      cp_async<W>(shared, global, valid * static_cast<int>(sizeof(T)));
    } else {
      VectorIn::move<W>(shared, global, valid);
    }
  }
};

struct VectorOut {
  static constexpr bool kInward = false;
  template <int W, class T>
  __device__ static void move(T* shared, T* global, int valid) {
    constexpr int kElements = W / static_cast<int>(sizeof(T));
    if (valid == kElements) {
      move_vector<W>(global, shared);
    } else {
#pragma unroll 1
      for (int e = 0; e < valid; ++e) global[e] = shared[e];
    }
  }
};

// Adds the place of row `row` of the tile, counted over its dimensions 0 to Dim, to `offset`.
template <class Shape, unsigned Guard, int Dim, class T, int R>
__device__ inline void locate_row(const Window<T, R>& window, int row, long long& offset,
                                  bool& inside) {
  if constexpr (Dim >= 0) {
    constexpr int kDim = R - Shape::kRank + Dim;
    constexpr int kExtent = Shape::template extent<Dim>();
    const int i = Dim == 0 ? row : row % kExtent;
    offset += i * window.stride[kDim];
    if constexpr ((Guard >> Dim & 1u) != 0) inside = inside && i < window.left[kDim];
    locate_row<Shape, Guard, Dim - 1>(window, row / kExtent, offset, inside);
  }
}

// A vector of a tile: its two places, and how many of its elements lie inside the window.
template <class Element, class T>
struct Place {
  Element* shared;
  T* global;
  int valid;
  int col;
};
template <class Element, class T>
Place(Element*, T*, int, int) -> Place<Element, T>;

template <class Shape, unsigned Guard, int W, class Tile, class T, int R>
__device__ inline auto place_of(const Tile& tile, const Window<T, R>& window, int vector) {
  constexpr int kElements = W / static_cast<int>(sizeof(T));
  constexpr int kCols = Shape::template extent<Shape::kRank - 1>();
  static_assert(kCols % kElements == 0, "a vector must not cross the rows of the tile");
  const int row = vector / (kCols / kElements);
  const int col = vector % (kCols / kElements) * kElements;
  long long offset = col;
  bool inside = true;
  locate_row<Shape, Guard, Shape::kRank - 2>(window, row, offset, inside);
  int valid = kElements;
  if constexpr ((Guard >> (Shape::kRank - 1) & 1u) != 0) {
    const int left = window.left[R - 1] - col;
    valid = left < 0 ? 0 : left < kElements ? left : kElements;
  }
  return Place{&tile.at(row, col), window.first + offset, inside ? valid : 0, col};
}

template <class Mover, class Shape, unsigned Guard, int W, class Tile, class T, int R>
__device__ inline void move_one(const Tile& tile, const Window<T, R>& window, int vector) {
  const auto place = place_of<Shape, Guard, W>(tile, window, vector);
  Mover::template move<W>(place.shared, place.global, place.valid);
}

template <class Mover, int Threads, class Shape, unsigned Guard, int W, class Tile, class T, int R>
__device__ inline void move_all(const Tile& tile, const Window<T, R>& window, int thread) {
  constexpr int kVectors = Shape::kSize / (W / static_cast<int>(sizeof(T)));
  if constexpr (Threads == 0) {
    for (int i = thread; i < kVectors; i += static_cast<int>(blockDim.x)) {
      move_one<Mover, Shape, Guard, W>(tile, window, i);
    }
  } else {
    constexpr int kSteps = (kVectors + Threads - 1) / Threads;
    constexpr int kUnroll = W < 4 ? 1 : kSteps <= 8 ? kSteps : 4;
#pragma unroll kUnroll
    for (int step = 0; step < kSteps; ++step) {
      const int i = step * Threads + thread;
      if (kVectors % Threads != 0 && i >= kVectors) break;
      move_one<Mover, Shape, Guard, W>(tile, window, i);
    }
  }
}

// The 16 bytes from byte `first` of 32 on; 0 <= first < 16.
__device__ inline uint4 cut(const uint4& low, const uint4& high, unsigned first) {
  u32 words[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
  for (int i = 0; i < 6; ++i) words[i] = (first & 8u) != 0 ? words[i + 2] : words[i];
#pragma unroll
  for (int i = 0; i < 5; ++i) words[i] = (first & 4u) != 0 ? words[i + 1] : words[i];
  const unsigned bits = first % 4 * 8;
  return {__funnelshift_r(words[0], words[1], bits), __funnelshift_r(words[1], words[2], bits),
          __funnelshift_r(words[2], words[3], bits), __funnelshift_r(words[3], words[4], bits)};
}

// Bytes from the multiple of 16 before it.
template <class T>
__device__ inline unsigned past_16(const T* pointer) {
  return static_cast<unsigned>(reinterpret_cast<unsigned long long>(pointer) & 15u);
}

// Whether the vector lies in its row with all that the aligned ones around it have.
template <class Place, class T, int R>
__device__ inline bool surrounded(const Place& place, const Window<T, R>& window) {
  constexpr int kBytes = static_cast<int>(sizeof(T));
  const int before = (window.before + place.col) * kBytes;
  const int after = (window.left[R - 1] - place.col) * kBytes;
  return place.valid == 16 / kBytes && before >= 15 && after >= 32;
}

// Whether all vectors of the tile do.
template <class Shape, int Dim, class T, int R>
__device__ inline bool deep_inside(const Window<T, R>& window) {
  constexpr int kDim = R - Shape::kRank + Dim;
  constexpr int kExtent = Shape::template extent<Dim>();
  if constexpr (Dim == Shape::kRank - 1) {
    constexpr int kBytes = static_cast<int>(sizeof(T));
    return window.before * kBytes >= 15 && (window.left[kDim] - kExtent) * kBytes >= 16;
  } else {
    return window.left[kDim] >= kExtent && deep_inside<Shape, Dim + 1>(window);
  }
}

// Rows that begin anywhere, to shared memory.
template <int Threads, class Shape, unsigned Guard, class Tile, class T, int R>
__device__ inline void gather(const Tile& tile, const Window<T, R>& window, int thread) {
  constexpr int kVectors = Shape::kSize * static_cast<int>(sizeof(T)) / 16;
  // So many are on their way together; more would cost registers where rows are aligned, too.
  constexpr int kBatch = 1;
  const int threads = Threads == 0 ? static_cast<int>(blockDim.x) : Threads;
#pragma unroll 1
  for (int i = thread; i < kVectors; i += kBatch * threads) {
    uint4 low[kBatch];
    uint4 high[kBatch];
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const auto place = place_of<Shape, Guard, 16>(tile, window, i + b * threads);
      if (i + b * threads >= kVectors || !surrounded(place, window)) continue;
      const auto* around = reinterpret_cast<const uint4*>(
          reinterpret_cast<unsigned long long>(place.global) & ~15ull);
      low[b] = around[0];
      high[b] = around[1];
    }
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const auto place = place_of<Shape, Guard, 16>(tile, window, i + b * threads);
      if (i + b * threads >= kVectors || !surrounded(place, window)) continue;
      *reinterpret_cast<uint4*>(place.shared) = cut(low[b], high[b], past_16(place.global));
    }
  }
  if (deep_inside<Shape, 0>(window)) return;
#pragma unroll 1
  for (int i = thread; i < kVectors; i += threads) {
    const auto place = place_of<Shape, Guard, 16>(tile, window, i);
    if (!surrounded(place, window)) VectorIn::elements<16>(place.shared, place.global, place.valid);
  }
}

// Single elements, to global memory.
template <int Threads, class Shape, unsigned Guard, class Tile, class T, int R>
__device__ inline void scatter(const Tile& tile, const Window<T, R>& window, int thread) {
  constexpr int kBatch = 4;
  const int threads = Threads == 0 ? static_cast<int>(blockDim.x) : Threads;
#pragma unroll 1
  for (int i = thread; i < Shape::kSize; i += kBatch * threads) {
    T values[kBatch];
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const auto place = place_of<Shape, Guard, sizeof(T)>(tile, window, i + b * threads);
      if (i + b * threads < Shape::kSize) values[b] = *place.shared;
    }
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const auto place = place_of<Shape, Guard, sizeof(T)>(tile, window, i + b * threads);
      if (i + b * threads < Shape::kSize && place.valid > 0) *place.global = values[b];
    }
  }
}

template <int Rank, class T, int R>
__device__ inline bool aligned(const Window<T, R>& window, int bytes) {
  unsigned long long all = reinterpret_cast<unsigned long long>(window.first);
#pragma unroll
  for (int d = R - Rank; d < R - 1; ++d) all |= window.stride[d] * sizeof(T);
  return (all & static_cast<unsigned>(bytes - 1)) == 0;
}

template <class Mover, int Threads, class Shape, unsigned Guard, int Widest, int W, int... Rest,
          class Tile, class T, int R>
__device__ inline void move_widest(Widths<W, Rest...>, const Tile& tile, const Window<T, R>& window,
                                   int thread) {
  constexpr bool kElements = W == sizeof(T) && W < 4;
  if constexpr (sizeof...(Rest) == 0 && kElements && Mover::kInward && Widest == 16) {
    gather<Threads, Shape, Guard>(tile, window, thread);
  } else if constexpr (sizeof...(Rest) == 0 && kElements && !Mover::kInward) {
    scatter<Threads, Shape, Guard>(tile, window, thread);
  } else if constexpr (sizeof...(Rest) == 0) {
    move_all<Mover, Threads, Shape, Guard, W>(tile, window, thread);
  } else if (aligned<Shape::kRank>(window, W)) {
    move_all<Mover, Threads, Shape, Guard, W>(tile, window, thread);
  } else {
    move_widest<Mover, Threads, Shape, Guard, Widest>(Widths<Rest...>{}, tile, window, thread);
  }
}

// A copy's extents: those given, else those of the tile.
template <class Given, class Tile>
struct Default {
  using type = Given;
};
template <class Tile>
struct Default<void, Tile> {
  using type = Shape<Tile::kRows, Tile::kCols>;
};

}  // namespace detail

// Global to shared by cp.async; one group of this thread's copies is committed. `Threads` 0 stands
// for the block's, whatever their number.
template <int Threads, class Guard, class Bytes, class Shape = void, class Tile, class T, int R>
__device__ inline void copy_async(const Tile& to, const Window<T, R>& from, int thread) {
  using Extents = typename detail::Default<Shape, Tile>::type;
  detail::move_widest<detail::AsyncIn, Threads, Extents, Guard::kMask, Bytes::kWidest>(
      Bytes{}, to, from, thread);
  cp_async_commit();
}

// Global to shared through registers.
template <int Threads, class Guard, class Bytes, class Shape = void, class Tile, class T, int R>
__device__ inline void copy_in(const Tile& to, const Window<T, R>& from, int thread) {
  using Extents = typename detail::Default<Shape, Tile>::type;
  detail::move_widest<detail::VectorIn, Threads, Extents, Guard::kMask, Bytes::kWidest>(
      Bytes{}, to, from, thread);
}

// Shared to global.
template <int Threads, class Guard, class Bytes, class Shape = void, class Tile, class T, int R>
__device__ inline void copy_out(const Window<T, R>& to, const Tile& from, int thread) {
  using Extents = typename detail::Default<Shape, Tile>::type;
  detail::move_widest<detail::VectorOut, Threads, Extents, Guard::kMask, Bytes::kWidest>(
      Bytes{}, from, to, thread);
}

}  // namespace kiln
