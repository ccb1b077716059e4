// A tile of 32 columns cut from a tensor of 100.
// ERROR: extent_is_not_a_multiple_of_the_tile<100, 32>
#include <kiln/device/tensor.cuh>

#ifdef GOOD
constexpr int kColumns = 96;
#else
constexpr int kColumns = 100;
#endif

__global__ void kernel(float* data) {
  using kiln::Int;
  auto whole =
      kiln::make_tensor(kiln::make_gmem_ptr(data), kiln::make_shape(Int<64>{}, Int<kColumns>{}),
                        kiln::make_stride(Int<kColumns>{}, Int<1>{}));
  auto tile = kiln::local_tile<16, 32>(whole, static_cast<int>(blockIdx.x), 0);
  tile(static_cast<int>(threadIdx.x) % 16, 0) = 0;
}
