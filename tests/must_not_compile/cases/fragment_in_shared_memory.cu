// gemm takes its operands from registers, and this A is still in shared memory.
// ERROR: memory_is_not_the_one_the_atom_takes<kiln::Memory::kShared, kiln::Memory::kRegisters>
#include <kiln/device/mma.cuh>

using namespace kiln;

#ifdef GOOD
constexpr bool kLoad = true;
#else
constexpr bool kLoad = false;
#endif

template <bool Load, class T>
__device__ auto operand(const T& part) {
  if constexpr (Load) {
    auto registers = make_fragment_like(part);
    copy(part, registers);
    return registers;
  } else {
    return part;
  }
}

__global__ void kernel(float* out) {
  __shared__ __align__(16) f16 memory[128 * 32];
  auto sA = make_tensor<"(64,32):(32,1)"_layout>(make_smem_ptr(memory));
  auto sB = make_tensor<"(64,32):(32,1)"_layout>(make_smem_ptr(memory + 64 * 32));
  auto gC = make_tensor<"(64,64):(64,1)"_layout>(make_gmem_ptr(out));
  auto mma = make_tiled_mma<atom::m16n8k16_f32_f16, "(2,2)"_layout>();
  auto mine = mma.get_thread_slice(static_cast<int>(threadIdx.x));
  auto accumulators = mine.partition_fragment_C(gC);
  clear(accumulators);
  gemm(mma, operand<kLoad>(mine.partition_A(sA)), operand<true>(mine.partition_B(sB)),
       accumulators);
  copy(accumulators, mine.partition_C(gC));
}
