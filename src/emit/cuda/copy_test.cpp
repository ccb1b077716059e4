// Vectors between global memory and tiles, compiled for the host: thread by thread, what gather and
// spread move of rows that begin anywhere, and move_all of aligned ones, is what a loop over
// elements moves. Arrays end where their
// allocation does, so that a build with AddressSanitizer sees a vector that reads past them.
#define __host__
#define __device__
#include "kiln/device/types.cuh"

namespace kiln {
struct uint2 {
  u32 x, y;
};
struct alignas(16) uint4 {
  u32 x, y, z, w;
};
struct Dim {
  unsigned x;
};
constexpr Dim blockDim = {32};
inline u32 __funnelshift_r(u32 low, u32 high, unsigned bits) {
  return static_cast<u32>(((u64{high} << 32U) | low) >> bits);
}
inline u32 __funnelshift_rc(u32 low, u32 high, unsigned bits) {
  return bits >= 32U ? high : __funnelshift_r(low, high, bits);
}
inline unsigned long long __cvta_generic_to_shared(const void*) { return 0; }
inline unsigned long long __cvta_generic_to_global(const void*) { return 0; }
}  // namespace kiln

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "kiln/device/copy.cuh"
#include "kiln/device/tile.cuh"

namespace kiln {
namespace {

constexpr int kRows = 8;
constexpr int kRowBytes = 64;
constexpr int kThreads = 32;

// An array of rows `pitch` apart that begins `past` elements behind a multiple of 16 bytes, and the
// window of it that begins at (row, col).
struct Where {
  int past;
  int rows;
  int cols;
  int pitch;
  int row;
  int col;
};

template <class T>
class Array {
 public:
  explicit Array(const Where& where) : where_(where) {
    const int elements = where.past + (where.rows - 1) * where.pitch + where.cols;
    bytes_.reset(new (std::align_val_t{16}) u8[static_cast<std::size_t>(elements) * sizeof(T)]);
    for (int i = 0; i < elements; ++i) first()[i - where.past] = value(i);
  }

  static T value(int i) { return static_cast<T>(i * 37 + 11); }
  T* first() const { return reinterpret_cast<T*>(bytes_.get()) + where_.past; }
  T& at(int row, int col) const { return first()[row * where_.pitch + col]; }
  [[nodiscard]] Window<T, 2> window() const {
    return kiln::window(first(), {where_.rows, where_.pitch}, {where_.row, where_.col},
                        {where_.rows, where_.cols});
  }

 private:
  struct Delete {
    void operator()(u8* bytes) const { operator delete[](bytes, std::align_val_t{16}); }
  };
  Where where_;
  std::unique_ptr<u8[], Delete> bytes_;
};

template <class T>
constexpr int kCols = kRowBytes / static_cast<int>(sizeof(T));
template <class T>
using Shared = Tile<T, kRows, kCols<T>, 64>;
template <class T>
using Extents = Shape<kRows, kCols<T>>;

// Every beginning in a vector, rows of a few lengths, windows at both ends of the array.
template <class T>
std::vector<Where> places() {
  constexpr int kVector = 16 / static_cast<int>(sizeof(T));
  std::vector<Where> out;
  for (int past = 0; past < kVector; ++past) {
    for (const int cols :
         {1, kVector - 1, kCols<T> - 1, kCols<T>, kCols<T> + 3, 3 * kCols<T> - 2}) {
      if (cols < 1) continue;
      for (const int gap : {0, 1, kVector}) {
        for (const int row : {0, kRows}) {
          for (int col = 0; col < cols; col += kCols<T>) {
            out.push_back({past, kRows + 3, cols, cols + gap, row, col});
          }
        }
      }
    }
  }
  return out;
}

std::string text(const Where& w) {
  return "past " + std::to_string(w.past) + ", " + std::to_string(w.rows) + " x " +
         std::to_string(w.cols) + " of pitch " + std::to_string(w.pitch) + " from (" +
         std::to_string(w.row) + ", " + std::to_string(w.col) + ")";
}

template <class T, int Batch>
void expect_gathered(const Where& where) {
  const Array<T> array(where);
  alignas(1024) u8 bytes[kRows * kRowBytes];
  std::memset(bytes, 0xee, sizeof bytes);
  const Shared<T> tile(bytes);
  for (int thread = 0; thread < kThreads; ++thread) {
    detail::gather<kThreads, Extents<T>, 3U, Batch>(tile, array.window(), thread);
  }
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kCols<T>; ++j) {
      const bool inside = where.row + i < where.rows && where.col + j < where.cols;
      const T wanted = inside ? array.at(where.row + i, where.col + j) : T{0};
      ASSERT_EQ(tile.at(i, j), wanted) << text(where) << " at " << i << ", " << j;
    }
  }
}

template <class T>
void expect_spread(const Where& where) {
  const Array<T> array(where);
  const Array<T> before(where);
  alignas(1024) u8 bytes[kRows * kRowBytes];
  const Shared<T> tile(bytes);
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kCols<T>; ++j) tile.at(i, j) = static_cast<T>(i * 101 + j * 3 + 5);
  }
  for (int thread = 0; thread < kThreads; ++thread) {
    detail::spread<kThreads, Extents<T>, 3U>(tile, array.window(), thread);
  }
  for (int row = 0; row < where.rows; ++row) {
    for (int col = 0; col < (row + 1 < where.rows ? where.pitch : where.cols); ++col) {
      const int i = row - where.row;
      const int j = col - where.col;
      const bool moved = i >= 0 && i < kRows && j >= 0 && j < kCols<T> && col < where.cols;
      ASSERT_EQ(array.at(row, col), moved ? tile.at(i, j) : before.at(row, col))
          << text(where) << " at " << row << ", " << col;
    }
  }
}

template <class T>
void expect_both() {
  for (const Where& where : places<T>()) {
    expect_gathered<T, 1>(where);
    expect_gathered<T, 2>(where);
    expect_spread<T>(where);
  }
}

TEST(DeviceCopies, MoveRowsThatBeginAnywhere) {
  expect_both<u8>();
  expect_both<u16>();
  expect_both<u32>();
}

// 40 rows by 64 elements, from row 8 of 56 on where the tile is a part of a larger one.
template <int Threads, int Width, unsigned Guard, class Of>
void expect_aligned(const Of& tile, const char* what) {
  constexpr int kTall = 40;
  constexpr int kWide = 64;
  using Whole = Shape<kTall, kWide>;
  for (const auto& [rows, cols] : {std::pair{48, 80}, std::pair{46, 70}, std::pair{8, 16}}) {
    if (Guard == 0 && (rows < 48 || cols < 80)) continue;
    const Where where{.past = 0, .rows = rows, .cols = cols, .pitch = 80, .row = 8, .col = 16};
    const Array<u16> from(where);
    Array<u16> to(where);
    for (int i = 0; i < kTall; ++i) {
      for (int j = 0; j < kWide; ++j) tile.at(i, j) = 0xeeee;
    }
    for (int thread = 0; thread < Threads; ++thread) {
      detail::move_all<detail::VectorIn, Threads, Whole, Guard, Width>(tile, from.window(), thread);
    }
    for (int i = 0; i < kTall; ++i) {
      for (int j = 0; j < kWide; ++j) {
        const bool inside = 8 + i < rows && 16 + j < cols;
        ASSERT_EQ(tile.at(i, j), inside ? from.at(8 + i, 16 + j) : 0)
            << what << ", " << Threads << " threads, " << text(where) << " at " << i << ", " << j;
        tile.at(i, j) = static_cast<u16>(i * 101 + j * 3 + 5);
      }
    }
    for (int thread = 0; thread < Threads; ++thread) {
      detail::move_all<detail::VectorOut, Threads, Whole, Guard, Width>(tile, to.window(), thread);
    }
    for (int row = 0; row < rows; ++row) {
      for (int col = 0; col < cols; ++col) {
        const bool moved = row >= 8 && row < 48 && col >= 16 && col < 80;
        ASSERT_EQ(to.at(row, col), moved ? tile.at(row - 8, col - 16) : from.at(row, col))
            << what << ", " << Threads << " threads, " << text(where) << " at " << row << ", "
            << col;
      }
    }
  }
}

template <int Swizzle>
void expect_all_aligned(const char* what) {
  alignas(1024) u8 bytes[56 * 64 * sizeof(u16)];
  const Tile<u16, 40, 64, Swizzle> whole(bytes);
  expect_aligned<32, 16, 3U>(whole, what);
  expect_aligned<64, 16, 3U>(whole, what);
  expect_aligned<96, 16, 3U>(whole, what);
  expect_aligned<128, 16, 3U>(whole, what);
  expect_aligned<384, 16, 3U>(whole, what);
  expect_aligned<20, 16, 3U>(whole, what);
  expect_aligned<128, 16, 0U>(whole, what);
  expect_aligned<128, 8, 3U>(whole, what);
  expect_aligned<64, 2, 3U>(whole, what);
  const Tile<u16, 56, 64, Swizzle> larger(bytes);
  const auto lower = part<40, 64>(larger, 8, 0);
  expect_aligned<128, 16, 3U>(lower, what);
  expect_aligned<32, 16, 3U>(lower, what);
  const auto anywhere = part<40, 64>(larger, 5, 0);
  expect_aligned<128, 16, 3U>(anywhere, what);
}

TEST(DeviceCopies, MoveAlignedRowsInWhateverNumberOfThreads) {
  expect_all_aligned<0>("no swizzle");
  expect_all_aligned<16>("swizzle 16");
  expect_all_aligned<32>("swizzle 32");
  expect_all_aligned<64>("swizzle 64");
  expect_all_aligned<128>("swizzle 128");
}

}  // namespace
}  // namespace kiln
