// A tile of shared memory: Rows x Cols elements over bytes, with or without a swizzle.
//
//   kiln::Tile<kiln::f16, 64, 64, 128> a(smem);
//   a.at(9, 0)   lies at byte 9 * 128 + (9 % 8) * 16 = 1168
//
// Without a swizzle rows are dense. With one of 32, 64 or 128 bytes a row is cut into panels of
// that many bytes, each panel stored whole (all rows) before the next; inside it the number of a
// 16-byte chunk is XORed with address bits 7 and up. Panels of 16 bytes have nothing to XOR. The
// base must then be a multiple of 1024 bytes.
#pragma once

namespace kiln {

template <class T, int Rows, int Cols, int Swizzle = 0>
struct Tile {
  using Element = T;
  static constexpr int kRows = Rows;
  static constexpr int kCols = Cols;
  static constexpr int kSwizzle = Swizzle;
  static_assert(Swizzle == 0 || Swizzle == 16 || Swizzle == 32 || Swizzle == 64 || Swizzle == 128,
                "no such swizzle");
  static constexpr int kRowBytes = Swizzle == 0 ? Cols * static_cast<int>(sizeof(T)) : Swizzle;
  // After so many rows the pattern is the same again: elements lie kPeriod * kRowBytes apart.
  static constexpr int kPeriod = Swizzle <= 16 ? 1 : 1024 / Swizzle;

  unsigned char* base;

  __device__ explicit Tile(unsigned char* bytes) : base(bytes) {}

  // Bytes from the base to where an element would be without the XOR.
  __device__ static int plain_offset(int row, int col) {
    constexpr int kSize = static_cast<int>(sizeof(T));
    if constexpr (Swizzle == 0) {
      return (row * Cols + col) * kSize;
    } else {
      const int byte = col * kSize;
      return byte / Swizzle * (Rows * Swizzle) + row * Swizzle + byte % Swizzle;
    }
  }
  // Bytes from the base to an element.
  __device__ static int offset(int row, int col) {
    const int plain = plain_offset(row, col);
    if constexpr (Swizzle == 0) {
      return plain;
    } else {
      return plain ^ (((plain >> 7) & (Swizzle / 16 - 1)) << 4);
    }
  }
  __device__ T& at(int row, int col) const {
    return *reinterpret_cast<T*>(base + offset(row, col));
  }
};

// Rows x Cols elements of a tile, from (row, col) on.
template <class Root, int Rows, int Cols>
struct TilePart {
  using Element = typename Root::Element;
  static constexpr int kRows = Rows;
  static constexpr int kCols = Cols;
  static constexpr int kRowBytes = Root::kRowBytes;
  static constexpr int kPeriod = Root::kPeriod;

  Root root;
  int row;
  int col;

  __device__ Element& at(int i, int j) const { return root.at(row + i, col + j); }
};

template <int Rows, int Cols, class Root>
__device__ inline TilePart<Root, Rows, Cols> part(const Root& root, int row, int col) {
  return {root, row, col};
}

}  // namespace kiln
