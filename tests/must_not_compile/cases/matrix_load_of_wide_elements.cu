// ldmatrix moves elements of 2 bytes, and these have 4.
// ERROR: bytes_of_an_element_are_not_those_the_atom_takes<4, 2>
#include <kiln/device/mma.cuh>

using namespace kiln;

#ifdef GOOD
using Element = f16;
#else
using Element = f32;
#endif

__global__ void kernel(float* out) {
  __shared__ __align__(16) Element memory[64 * 32];
  auto sA = make_tensor<"(64,32):(32,1)"_layout>(make_smem_ptr(memory));
  auto mma = make_tiled_mma<atom::m16n8k16_f32_f16, "(2,2)"_layout>();
  auto load = make_tiled_copy_A<atom::ldmatrix_x4>(mma);
  auto rows = load.get_thread_slice(static_cast<int>(threadIdx.x)).partition_S(sA);
  out[0] = rows(0);
}
