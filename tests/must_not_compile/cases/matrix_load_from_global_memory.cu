// ldmatrix reads shared memory, and this A is in global memory.
// ERROR: memory_is_not_the_one_the_atom_takes<kiln::Memory::kGlobal, kiln::Memory::kShared>
#include <kiln/device/mma.cuh>

using namespace kiln;

#ifdef GOOD
constexpr bool kShared = true;
#else
constexpr bool kShared = false;
#endif

template <bool Shared>
__device__ auto tile_of(f16* data) {
  constexpr Layout kTile = "(64,32):(32,1)"_layout;
  if constexpr (Shared) {
    return make_tensor<kTile>(make_smem_ptr(data));
  } else {
    return make_tensor<kTile>(make_gmem_ptr(data));
  }
}

__global__ void kernel(f16* from, float* out) {
  __shared__ __align__(16) f16 memory[64 * 32];
  auto sA = tile_of<kShared>(kShared ? memory : from);
  auto mma = make_tiled_mma<atom::m16n8k16_f32_f16, "(2,2)"_layout>();
  auto load = make_tiled_copy_A<atom::ldmatrix_x4>(mma);
  const int thread = static_cast<int>(threadIdx.x);
  auto tCrA = mma.get_thread_slice(thread).partition_fragment_A(sA);
  copy(load, load.get_thread_slice(thread).partition_S(sA), tCrA);
  out[0] = tCrA(0);
}
