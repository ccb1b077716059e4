// A tile of two extents cut from a tensor of three modes.
// ERROR: rank_of_the_tensor_is_not_the_rank_wanted<3, 2>
#include <kiln/device/tensor.cuh>

__global__ void kernel(float* data) {
  using kiln::Int;
  auto whole =
      kiln::make_tensor(kiln::make_gmem_ptr(data), kiln::make_shape(Int<64>{}, Int<64>{}, Int<4>{}),
                        kiln::make_stride(Int<64>{}, Int<1>{}, Int<4096>{}));
#ifdef GOOD
  auto tile = kiln::local_tile<16, 32>(whole(kiln::_, kiln::_, 3), 1, 0);
#else
  auto tile = kiln::local_tile<16, 32>(whole, 1, 0);
#endif
  tile(0) = 0;
}
