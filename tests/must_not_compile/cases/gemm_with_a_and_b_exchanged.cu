// The fragment of B stands where that of A is expected.
// ERROR: fragment_is_of_another_operand_than_the_one_it_stands_for<kiln::Operand::kB,
// kiln::Operand::kA>
#include <kiln/device/mma.cuh>

using namespace kiln;

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
#ifdef GOOD
  auto tCrA = mine.partition_fragment_A(sA);
#else
  auto tCrA = mine.partition_fragment_B(sA);
#endif
  clear(tCrA);
  gemm(mma, tCrA, tCrB, accumulators);
  copy(accumulators, mine.partition_C(gC));
}
