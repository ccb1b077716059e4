// Threads are laid over rows and columns, and this layout has three modes.
// ERROR: rank_of_the_tensor_is_not_the_rank_wanted<3, 2>
#include <kiln/device/mma.cuh>

using namespace kiln;

#ifdef GOOD
constexpr Layout kThreads = "(32,4):(4,1)"_layout;
#else
constexpr Layout kThreads = "(32,2,2):(4,2,1)"_layout;
#endif

__global__ void kernel(float* out) {
  __shared__ __align__(16) f16 memory[32 * 32];
  auto tiled = make_tiled_copy<vectors<16>, kThreads, "(1,8)"_layout>();
  auto mine = tiled.get_thread_slice(static_cast<int>(threadIdx.x));
  out[0] = mine.partition_D(make_tensor<"(32,32):(32,1)"_layout>(make_smem_ptr(memory)))(0);
}
