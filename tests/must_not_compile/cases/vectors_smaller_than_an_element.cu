// 2-byte vectors of f32.
// ERROR: bytes_of_the_copy_are_not_a_multiple_of_the_element<2, 4>
#include <kiln/device/algorithm.cuh>

#ifdef GOOD
constexpr int kBytes = 4;
#else
constexpr int kBytes = 2;
#endif

__global__ void kernel(const float* from, float* to) {
  using kiln::Int;
  auto source = kiln::make_tensor(kiln::make_gmem_ptr(from), kiln::make_shape(Int<8>{}),
                                  kiln::make_stride(Int<1>{}));
  auto destination = kiln::make_tensor(kiln::make_gmem_ptr(to), kiln::make_shape(Int<8>{}),
                                       kiln::make_stride(Int<1>{}));
  kiln::copy(kiln::vectors<kBytes>{}, source, destination);
}
