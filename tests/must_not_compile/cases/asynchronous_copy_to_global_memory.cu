// cp.async writes shared memory, and this destination is global.
// ERROR: memory_is_not_the_one_the_atom_takes<kiln::Memory::kGlobal, kiln::Memory::kShared>
#include <kiln/device/mma.cuh>

using namespace kiln;

#ifdef GOOD
using Move = vectors<16>;
#else
using Move = atom::cp_async_16;
#endif

__global__ void kernel(const f16* from, f16* to) {
  constexpr Layout kTile = "(32,32):(32,1)"_layout;
  auto tiled = make_tiled_copy<Move, "(32,4):(4,1)"_layout, "(1,8)"_layout>();
  auto mine = tiled.get_thread_slice(static_cast<int>(threadIdx.x));
  copy(tiled, mine.partition_S(make_tensor<kTile>(make_gmem_ptr(from))),
       mine.partition_D(make_tensor<kTile>(make_gmem_ptr(to))));
}
