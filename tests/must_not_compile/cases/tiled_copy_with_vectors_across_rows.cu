// Each thread moves 16 bytes along M, where K is the contiguous mode.
// ERROR: copy_moves_more_elements_at_once_than_are_contiguous<8, 1>
#include <kiln/device/mma.cuh>

using namespace kiln;

#ifdef GOOD
constexpr Layout kValues = "(1,8)"_layout;
#else
constexpr Layout kValues = "(8,1)"_layout;
#endif

__global__ void kernel(const f16* from, float* out) {
  __shared__ __align__(16) f16 memory[256 * 32];
  constexpr Layout kTile = "(256,32):(32,1)"_layout;
  auto sA = make_tensor<kTile>(make_smem_ptr(memory));
  auto tiled = make_tiled_copy<vectors<16>, "(32,4):(4,1)"_layout, kValues>();
  auto mine = tiled.get_thread_slice(static_cast<int>(threadIdx.x));
  copy(tiled, mine.partition_S(make_tensor<kTile>(make_gmem_ptr(from))), mine.partition_D(sA));
  out[0] = sA(0, 0);
}
