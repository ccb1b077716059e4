// 64 elements copied to a tensor of 32.
// ERROR: source_and_destination_differ_in_size<64, 32>
#include <kiln/device/algorithm.cuh>

#ifdef GOOD
constexpr int kDestination = 64;
#else
constexpr int kDestination = 32;
#endif

__global__ void kernel(const float* from, float* to) {
  using kiln::Int;
  auto source = kiln::make_tensor(kiln::make_gmem_ptr(from), kiln::make_shape(Int<64>{}),
                                  kiln::make_stride(Int<1>{}));
  auto destination = kiln::make_tensor(
      kiln::make_gmem_ptr(to), kiln::make_shape(Int<kDestination>{}), kiln::make_stride(Int<1>{}));
  kiln::copy(source, destination);
}
