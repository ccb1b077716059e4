// ldmatrix reads rows of 8 neighbours along K, and this A has M fastest.
// ERROR: stride_of_the_k_mode_is_not_the_one_the_atom_takes<64, 1>
#include <kiln/device/mma.cuh>

using namespace kiln;

#ifdef GOOD
constexpr Layout kTile = "(64,32):(32,1)"_layout;
#else
constexpr Layout kTile = "(64,32):(1,64)"_layout;
#endif

__global__ void kernel(float* out) {
  __shared__ __align__(16) f16 memory[128 * 64];
  auto mma = make_tiled_mma<atom::m16n8k16_f32_f16, "(2,2)"_layout>();
  auto load = make_tiled_copy_A<atom::ldmatrix_x4>(mma);
  auto sA = make_tensor<kTile>(make_smem_ptr(memory));
  const int thread = static_cast<int>(threadIdx.x);
  auto tCrA = mma.get_thread_slice(thread).partition_fragment_A(sA);
  copy(load, load.get_thread_slice(thread).partition_S(sA), tCrA);
  out[0] = tCrA(0);
}
