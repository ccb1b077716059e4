// Two rows of warps cover 32 rows of A, and A has 120.
// ERROR: extent_is_not_a_multiple_of_the_tile<120, 32>
#include <kiln/device/mma.cuh>

using namespace kiln;

#ifdef GOOD
constexpr Layout kTile = "(128,32):(32,1)"_layout;
#else
constexpr Layout kTile = "(120,32):(32,1)"_layout;
#endif

__global__ void kernel(float* out) {
  __shared__ __align__(16) f16 memory[128 * 64];
  auto mma = make_tiled_mma<atom::m16n8k16_f32_f16, "(2,2)"_layout>();
  auto mine = mma.get_thread_slice(static_cast<int>(threadIdx.x));
  auto part = mine.partition_A(make_tensor<kTile>(make_smem_ptr(memory)));
  out[0] = part(0);
}
