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
// Where vectors of 16 bytes suit the tile, rows of global memory that begin anywhere still move by
// them: a vector is cut out of the two aligned ones that it straddles. One that arrives is cut out
// of global memory (gather), one that leaves out of the tile (spread):
//
//   global   ..|....abcd|efghijkl|mnop....|..     a row that begins 4 elements past a multiple
//   gather      tile vector 0 = abcdefgh = the end of one load, the start of the next
//   spread      store efghijkl = the end of tile vector 0, the start of 1; abcd, mnop one by one
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
  static constexpr int kCount = 1 + static_cast<int>(sizeof...(Rest));
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
    if (valid >= W / static_cast<int>(sizeof(T))) {  // not `==`: see Place
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
    if (valid >= kElements) {
      move_vector<W>(global, shared);
    } else {
#pragma unroll
      for (int e = 0; e < kElements; ++e) {
        if (e < valid) global[e] = shared[e];
      }
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

// A vector of a tile: its two places, and how many of its elements lie inside the window. `valid`
// is clamped to [0, its length] and must never be compared with `==` or `!=`: of a clamp and a test
// for its upper end ptxas makes, before CUDA 13.5 and for sm_90a, one VIMNMX.RELU whose two
// predicates share a register, so that a thread that has nothing to store stores.
template <class Element, class T>
struct Place {
  Element* shared;
  T* global;
  int valid;
  int col;
};
template <class Element, class T>
Place(Element*, T*, int, int) -> Place<Element, T>;

// How many of `Length` elements from column `col` on lie inside the window.
template <class Shape, unsigned Guard, int Length, class T, int R>
__device__ inline int valid_of(const Window<T, R>& window, int col) {
  if constexpr ((Guard >> (Shape::kRank - 1) & 1u) == 0) {
    return Length;
  } else {
    const int left = window.left[R - 1] - col;
    return left < 0 ? 0 : left < Length ? left : Length;
  }
}

// How many vectors of W bytes make a row of the tile.
template <class Shape, int W, class T>
__device__ constexpr int vectors_of_row() {
  constexpr int kElements = W / static_cast<int>(sizeof(T));
  constexpr int kCols = Shape::template extent<Shape::kRank - 1>();
  static_assert(kCols % kElements == 0, "a vector must not cross the rows of the tile");
  return kCols / kElements;
}

template <class Shape, unsigned Guard, int W, class Tile, class T, int R>
__device__ inline auto place_of(const Tile& tile, const Window<T, R>& window, int vector) {
  constexpr int kElements = W / static_cast<int>(sizeof(T));
  constexpr int kOfRow = vectors_of_row<Shape, W, T>();
  const int row = vector / kOfRow;
  const int col = vector % kOfRow * kElements;
  long long offset = col;
  bool inside = true;
  locate_row<Shape, Guard, Shape::kRank - 2>(window, row, offset, inside);
  const int valid = valid_of<Shape, Guard, kElements>(window, col);
  return Place{&tile.at(row, col), window.first + offset, inside ? valid : 0, col};
}

// A row of the tile in global memory: `count` of its elements lie inside the window, and after
// `head` elements it passes a multiple of 16 bytes.
template <class T>
struct RowPlace {
  T* global;
  int index;
  int count;
  int head;
};

template <class Shape, unsigned Guard, class T, int R>
__device__ inline RowPlace<T> row_of(const Window<T, R>& window, int row) {
  constexpr int kCols = Shape::template extent<Shape::kRank - 1>();
  long long offset = 0;
  bool inside = true;
  locate_row<Shape, Guard, Shape::kRank - 2>(window, row, offset, inside);
  T* global = window.first + offset;
  int count = kCols;
  if constexpr ((Guard >> (Shape::kRank - 1) & 1u) != 0) {
    count = window.left[R - 1] < kCols ? window.left[R - 1] : kCols;
  }
  const unsigned past = 0u - static_cast<unsigned>(reinterpret_cast<unsigned long long>(global));
  const int head = static_cast<int>(past % 16u / sizeof(T));
  return {global, row, inside ? count : 0, head};
}

template <class Mover, class Shape, unsigned Guard, int W, class Tile, class T, int R>
__device__ inline void move_one(const Tile& tile, const Window<T, R>& window, int vector) {
  const auto place = place_of<Shape, Guard, W>(tile, window, vector);
  Mover::template move<W>(place.shared, place.global, place.valid);
}

// As many steps as a thread unrolls: narrow vectors are the exception, their loops stay small.
template <int W, int Steps>
__device__ constexpr int unrolled() {
  return W < 16 ? 1 : Steps <= 8 ? Steps : 4;
}

// The threads make whole rows of a matrix, so that each stays in its column: what it moves next
// lies the same distance further on, and little is computed for each vector. What is kept for that
// takes registers: narrower vectors than 16 bytes do without.
template <class Mover, int Threads, class Shape, unsigned Guard, int W, class Tile, class T, int R>
__device__ inline void move_columns(const Tile& tile, const Window<T, R>& window, int thread) {
  constexpr int kElements = W / static_cast<int>(sizeof(T));
  constexpr int kOfRow = vectors_of_row<Shape, W, T>();
  constexpr int kRows = Shape::template extent<0>();
  constexpr int kRowsOfStep = Threads / kOfRow;
  constexpr int kSteps = (kRows + kRowsOfStep - 1) / kRowsOfStep;
  [[maybe_unused]] constexpr int kUnroll = unrolled<W, kSteps>();  // GCC has no such pragma
  const int col = static_cast<int>(static_cast<unsigned>(thread) % kOfRow) * kElements;
  const int first = static_cast<int>(static_cast<unsigned>(thread) / kOfRow);
  const int valid = valid_of<Shape, Guard, kElements>(window, col);
  T* global = window.first + first * window.stride[R - 2] + col;
  auto* const shared = &tile.at(first, col);
#pragma unroll kUnroll
  for (int step = 0; step < kSteps; ++step) {
    const int row = first + step * kRowsOfStep;
    if (kRows % kRowsOfStep != 0 && row >= kRows) break;
    const bool inside = (Guard & 1u) == 0 || row < window.left[R - 2];
    auto* place = shared + step * (kRowsOfStep * Tile::kRowBytes / static_cast<int>(sizeof(T)));
    if constexpr (kRowsOfStep % Tile::kPeriod != 0) place = &tile.at(row, col);
    Mover::template move<W>(place, global, inside ? valid : 0);
    global += kRowsOfStep * window.stride[R - 2];
  }
}

template <class Mover, int Threads, class Shape, unsigned Guard, int W, class Tile, class T, int R>
__device__ inline void move_all(const Tile& tile, const Window<T, R>& window, int thread) {
  constexpr int kVectors = Shape::kSize / (W / static_cast<int>(sizeof(T)));
  if constexpr (Threads == 0) {
    for (int i = thread; i < kVectors; i += static_cast<int>(blockDim.x)) {
      move_one<Mover, Shape, Guard, W>(tile, window, i);
    }
  } else if constexpr (W == 16 && Shape::kRank == 2 && Threads < kVectors &&
                       Threads % vectors_of_row<Shape, W, T>() == 0) {
    move_columns<Mover, Threads, Shape, Guard, W>(tile, window, thread);
  } else {
    constexpr int kSteps = (kVectors + Threads - 1) / Threads;
    [[maybe_unused]] constexpr int kUnroll = unrolled<W, kSteps>();
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
__device__ inline unsigned past_16(const void* pointer) {
  return static_cast<unsigned>(reinterpret_cast<unsigned long long>(pointer) & 15u);
}

__device__ inline const uint4* vector_before(const void* pointer) {
  return reinterpret_cast<const uint4*>(static_cast<const char*>(pointer) - past_16(pointer));
}

// The first `bytes` of 16; zeros behind.
__device__ inline uint4 first_bytes(const uint4& vector, int bytes) {
  u32 words[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int dropped = 32 * (i + 1) - 8 * bytes;  // bits; shifts by more than 32 leave nothing
    words[i] &= __funnelshift_rc(~0u, 0u, static_cast<unsigned>(dropped < 0 ? 0 : dropped));
  }
  return {words[0], words[1], words[2], words[3]};
}

// One past the last element that the window's limits leave.
template <class T, int R>
__device__ inline const T* end_of(const Window<T, R>& window) {
  const T* last = window.first;
#pragma unroll
  for (int d = 0; d < R; ++d) last += (window.left[d] - 1) * window.stride[d];
  return last + 1;
}

// The aligned vectors of which a vector of the tile is cut, and whether the array has all of them.
struct Around {
  const uint4* low;
  bool takes_low;
  bool takes_high;
  bool readable;
};

template <class Element, class T>
__device__ inline Around around(const Place<Element, T>& place, const void* begin,
                                const void* end) {
  const int bytes = place.valid * static_cast<int>(sizeof(T));
  const uint4* low = vector_before(place.global);
  const bool takes_high = past_16(place.global) + static_cast<unsigned>(bytes) > 16u;
  const bool readable = static_cast<const void*>(low) >= begin &&
                        static_cast<const void*>(low + (takes_high ? 2 : 1)) <= end;
  return {low, bytes > 0 && readable, takes_high && bytes > 0 && readable, readable};
}

// The tile's last element that the window's limits leave.
template <class Shape, int Dim, class T, int R>
__device__ inline const T* last_of(const Window<T, R>& window) {
  if constexpr (Dim == Shape::kRank) {
    return window.first;
  } else {
    constexpr int kDim = R - Shape::kRank + Dim;
    constexpr int kExtent = Shape::template extent<Dim>();
    const int count = window.left[kDim] < kExtent ? window.left[kDim] : kExtent;
    return last_of<Shape, Dim + 1>(window) + (count - 1) * window.stride[kDim];
  }
}

// Rows that begin anywhere, to shared memory; where it divides them, `Batch` vectors of a thread
// are on their way together.
template <int Threads, class Shape, unsigned Guard, int Batch, class Tile, class T, int R>
__device__ inline void gather(const Tile& tile, const Window<T, R>& window, int thread) {
  using Element = typename Tile::Element;
  constexpr int kBytes = static_cast<int>(sizeof(T));
  constexpr int kVectors = Shape::kSize * kBytes / 16;
  constexpr int kBatch = Threads > 0 && kVectors % (Batch * Threads) == 0 ? Batch : 1;
  const int threads = Threads == 0 ? static_cast<int>(blockDim.x) : Threads;
  const void* begin = window.array;
  const void* end = end_of(window);
#pragma unroll 1
  for (int i = thread; i < kVectors; i += kBatch * threads) {
    uint4 low[kBatch];
    uint4 high[kBatch];
    Element* to[kBatch];
    unsigned past[kBatch];
    int bytes[kBatch];
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const auto place = place_of<Shape, Guard, 16>(tile, window, i + b * threads);
      const Around from = around(place, begin, end);
      low[b] = high[b] = uint4{0, 0, 0, 0};
      if (from.takes_low) low[b] = from.low[0];
      if (from.takes_high) high[b] = from.low[1];
      to[b] = place.shared;
      past[b] = past_16(place.global);
      bytes[b] = place.valid * kBytes;
    }
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      *reinterpret_cast<uint4*>(to[b]) = first_bytes(cut(low[b], high[b], past[b]), bytes[b]);
    }
    if (kVectors == kBatch * Threads) break;
  }
  // The array's own first and last vectors.
  const void* behind = vector_before(last_of<Shape, 0>(window)) + 1;
  if (vector_before(window.first) >= begin && behind <= end) return;
#pragma unroll 1
  for (int i = thread; i < kVectors; i += threads) {
    const auto place = place_of<Shape, Guard, 16>(tile, window, i);
    if (around(place, begin, end).readable) continue;
    VectorIn::elements<16>(place.shared, place.global, place.valid);
  }
}

// To rows of global memory that begin anywhere: whole aligned vectors, then what is left of a row
// at its head and at its tail.
template <int Threads, class Shape, unsigned Guard, class Tile, class T, int R>
__device__ inline void spread(const Tile& tile, const Window<T, R>& window, int thread) {
  constexpr int kElements = 16 / static_cast<int>(sizeof(T));
  constexpr int kCols = Shape::template extent<Shape::kRank - 1>();
  constexpr int kRows = Shape::kSize / kCols;
  const int threads = Threads == 0 ? static_cast<int>(blockDim.x) : Threads;
#pragma unroll 1
  for (int i = thread; i < Shape::kSize / kElements; i += threads) {
    const RowPlace<T> row = row_of<Shape, Guard>(window, i / (kCols / kElements));
    const int col = i % (kCols / kElements) * kElements;
    if (col + row.head + kElements > row.count) continue;
    const auto* from = reinterpret_cast<const uint4*>(&tile.at(row.index, col));
    uint4 vector = *from;
    if (row.head != 0) {
      const auto* next = reinterpret_cast<const uint4*>(&tile.at(row.index, col + kElements));
      vector = cut(vector, *next, static_cast<unsigned>(row.head) * sizeof(T));
    }
    *reinterpret_cast<uint4*>(row.global + row.head + col) = vector;
  }
#pragma unroll 1
  for (int i = thread; i < kRows * kElements; i += threads) {
    const RowPlace<T> row = row_of<Shape, Guard>(window, i / kElements);
    const int left = row.count - row.head;  // beside the head
    const int head = i % kElements;
    const int tail = row.count - (left > 0 ? left % kElements : 0) + head;
    if (head < row.head && head < row.count) row.global[head] = tile.at(row.index, head);
    if (left > 0 && tail < row.count) row.global[tail] = tile.at(row.index, tail);
  }
}

template <int Rank, class T, int R>
__device__ inline bool aligned(const Window<T, R>& window, int bytes) {
  unsigned long long all = reinterpret_cast<unsigned long long>(window.first);
#pragma unroll
  for (int d = R - Rank; d < R - 1; ++d) all |= window.stride[d] * sizeof(T);
  return (all & static_cast<unsigned>(bytes - 1)) == 0;
}

// How many vectors a thread gathers at once, 0 where rows that begin anywhere move otherwise. Two
// widths are those of a copy that is waited for at once: it has the registers.
template <class Bytes, class T>
__device__ constexpr int gathered() {
  if (Bytes::kWidest != 16 || sizeof(T) > 4) return 0;
  if (Bytes::kCount == 2) return 2;
  return sizeof(T) < 4 ? 1 : 0;
}

template <class Mover, int Threads, class Shape, unsigned Guard, int Batch, int W, int... Rest,
          class Tile, class T, int R>
__device__ inline void move_widest(Widths<W, Rest...>, const Tile& tile, const Window<T, R>& window,
                                   int thread) {
  constexpr bool kLast = sizeof...(Rest) == 0;
  if constexpr (!Mover::kInward && W == 16) {
    spread<Threads, Shape, Guard>(tile, window, thread);
  } else if constexpr (kLast && Mover::kInward && Batch > 0) {
    gather<Threads, Shape, Guard, Batch>(tile, window, thread);
  } else if constexpr (kLast) {
    move_all<Mover, Threads, Shape, Guard, W>(tile, window, thread);
  } else if (aligned<Shape::kRank>(window, W)) {
    move_all<Mover, Threads, Shape, Guard, W>(tile, window, thread);
  } else {
    move_widest<Mover, Threads, Shape, Guard, Batch>(Widths<Rest...>{}, tile, window, thread);
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
  detail::move_widest<detail::AsyncIn, Threads, Extents, Guard::kMask,
                      detail::gathered<Bytes, T>()>(Bytes{}, to, from, thread);
  cp_async_commit();
}

// Global to shared through registers.
template <int Threads, class Guard, class Bytes, class Shape = void, class Tile, class T, int R>
__device__ inline void copy_in(const Tile& to, const Window<T, R>& from, int thread) {
  using Extents = typename detail::Default<Shape, Tile>::type;
  detail::move_widest<detail::VectorIn, Threads, Extents, Guard::kMask,
                      detail::gathered<Bytes, T>()>(Bytes{}, to, from, thread);
}

// Shared to global.
template <int Threads, class Guard, class Bytes, class Shape = void, class Tile, class T, int R>
__device__ inline void copy_out(const Window<T, R>& to, const Tile& from, int thread) {
  using Extents = typename detail::Default<Shape, Tile>::type;
  detail::move_widest<detail::VectorOut, Threads, Extents, Guard::kMask,
                      detail::gathered<Bytes, T>()>(Bytes{}, from, to, thread);
}

}  // namespace kiln
