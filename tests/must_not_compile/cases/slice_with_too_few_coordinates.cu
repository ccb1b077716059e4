// A tensor of three modes sliced with two coordinates.
// ERROR: rank_of_the_tensor_is_not_the_rank_wanted<3, 2>
#include <kiln/device/tensor.cuh>

__global__ void kernel(float* data) {
  using kiln::Int;
  auto whole =
      kiln::make_tensor(kiln::make_gmem_ptr(data), kiln::make_shape(Int<64>{}, Int<64>{}, Int<4>{}),
                        kiln::make_stride(Int<64>{}, Int<1>{}, Int<4096>{}));
#ifdef GOOD
  whole(kiln::_, 2, 3)(0) = 0;
#else
  whole(kiln::_, 2)(0) = 0;
#endif
}
