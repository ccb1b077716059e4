// 32 x 32 elements moved at a time, over a tile of 40 columns.
// ERROR: extent_is_not_a_multiple_of_the_tile<40, 32>
#include <kiln/device/mma.cuh>

using namespace kiln;

#ifdef GOOD
constexpr Layout kTile = "(128,64):(64,1)"_layout;
#else
constexpr Layout kTile = "(128,40):(40,1)"_layout;
#endif

__global__ void kernel(float* out) {
  __shared__ __align__(16) f16 memory[128 * 64];
  auto tiled = make_tiled_copy<atom::cp_async_16, "(32,4):(4,1)"_layout, "(1,8)"_layout>();
  auto mine = tiled.get_thread_slice(static_cast<int>(threadIdx.x));
  auto part = mine.partition_D(make_tensor<kTile>(make_smem_ptr(memory)));
  out[0] = part(0);
}
