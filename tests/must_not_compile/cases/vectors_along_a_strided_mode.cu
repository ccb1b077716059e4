// 16-byte vectors of f32 along the mode whose stride is 64.
// ERROR: copy_moves_more_elements_at_once_than_are_contiguous<4, 1>
#include <kiln/device/algorithm.cuh>

#ifdef GOOD
constexpr int kStride = 1;
#else
constexpr int kStride = 64;
#endif

__global__ void kernel(const float* from, float* to) {
  using kiln::Int;
  auto source = kiln::make_tensor(kiln::make_gmem_ptr(from), kiln::make_shape(Int<8>{}),
                                  kiln::make_stride(Int<kStride>{}));
  auto destination = kiln::make_tensor(kiln::make_gmem_ptr(to), kiln::make_shape(Int<8>{}),
                                       kiln::make_stride(Int<1>{}));
  kiln::copy(kiln::vectors<16>{}, source, destination);
}
