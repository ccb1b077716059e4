// 16-byte vectors of 8 halves into shared memory whose swizzle keeps only 4 in a row.
// ERROR: copy_moves_more_elements_at_once_than_are_contiguous<8, 4>
#include <kiln/device/mma.cuh>

using namespace kiln;

#ifdef GOOD
constexpr Swizzled kTile = composition(Swizzle{3, 3, 3}, "(32,64):(64,1)"_layout);
#else
constexpr Swizzled kTile = composition(Swizzle{3, 2, 3}, "(32,64):(64,1)"_layout);
#endif

__global__ void kernel(const f16* from, f16* to) {
  __shared__ __align__(16) f16 memory[32 * 64];
  const int row = static_cast<int>(threadIdx.x);
  auto tile = make_tensor<kTile>(make_smem_ptr(memory));
  auto source = make_tensor<"(32,64):(64,1)"_layout>(make_gmem_ptr(from));
  copy(vectors<16>{}, source(row, _), tile(row, _));
  to[row] = tile(row, 3);
}
