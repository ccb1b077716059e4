// A was cut for m16n8k8 and m16n8k16 runs.
// ERROR: fragment_belongs_to_another_atom_than_the_one_that_runs<kiln::atom::m16n8k8_f32_f16,
// kiln::atom::m16n8k16_f32_f16>
#include <kiln/device/mma.cuh>

using namespace kiln;

#ifdef GOOD
using AtomOfA = atom::m16n8k16_f32_f16;
#else
using AtomOfA = atom::m16n8k8_f32_f16;
#endif

__global__ void kernel(float* out) {
  __shared__ __align__(16) f16 memory[128 * 64];
  auto sA = make_tensor<"(64,32):(32,1)"_layout>(make_smem_ptr(memory));
  auto sB = make_tensor<"(64,32):(32,1)"_layout>(make_smem_ptr(memory + 64 * 32));
  auto gC = make_tensor<"(64,64):(64,1)"_layout>(make_gmem_ptr(out));
  auto mma = make_tiled_mma<atom::m16n8k16_f32_f16, "(2,2)"_layout>();
  auto mine = mma.get_thread_slice(static_cast<int>(threadIdx.x));
  auto tCrB = mine.partition_fragment_B(sB);
  auto accumulators = mine.partition_fragment_C(gC);
  clear(tCrB);
  clear(accumulators);
  auto other = make_tiled_mma<AtomOfA, "(2,2)"_layout>();
  auto tCrA = other.get_thread_slice(static_cast<int>(threadIdx.x)).partition_fragment_A(sA);
  clear(tCrA);
  gemm(mma, tCrA, tCrB, accumulators);
  copy(accumulators, mine.partition_C(gC));
}
