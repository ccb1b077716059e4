// Must compile with nvcc: layouts, swizzled ones and tilers as template arguments of device
// functions, and the whole algebra in constant expressions and at run time.
#include "kiln/layout.h"

using namespace kiln;

template <Layout L>
__device__ int offset(int lane, int value) {
  return index_at<L>(lane, value);
}

template <Swizzled S>
__device__ int place(int row, int column) {
  return index_at<S>(row, column);
}

template <Tiler T>
__device__ int tile_begin(int tile) {
  constexpr Layout kZipped = zipped_divide("(128,64):(64,1)"_layout, T);
  return index_at<mode(kZipped, 1)>(tile);
}

__global__ void fill(int* out) {
  constexpr Layout kMap = "((4,8),(2,2)):((32,1),(16,8))"_layout;
  constexpr Layout kTwice = composition("(16,16):(1,32)"_layout, kMap);
  constexpr Swizzled kTile = composition(Swizzle{3, 3, 3}, "(8,64):(64,1)"_layout);
  constexpr Slice kPart =
      local_tile("(128,64):(64,1)"_layout, make_tiler(32, 16), make_coord(1, kAll));
  constexpr Layout kWide = recast<16, 128>(kPart.layout);
  static_assert(kWide == "(32,2,4):(8,1,2)"_layout && max_common_vector(kMap, kMap) == 128);
  static_assert(blocked_product("(2,2)"_layout, "(3,4)"_layout).valid());
  const int lane = static_cast<int>(threadIdx.x);
  out[lane] = offset<kMap>(lane, 1) + offset<kTwice>(lane, 3) + place<kTile>(lane % 8, lane) +
              place<kMap>(lane, 0) + tile_begin<make_tiler(32, 16)>(lane % 16);
}
