// Must compile with nvcc: a layout as template argument of device functions.
#include "kiln/layout.h"

using namespace kiln;

template <Layout L>
__device__ int offset(int lane, int value) {
  return index_at<L>(lane, value);
}

__global__ void fill(int* out) {
  constexpr Layout kMap = "((4,8),(2,2)):((32,1),(16,8))"_layout;
  constexpr Layout kTwice = composition("(16,16):(1,32)"_layout, kMap);
  const int lane = static_cast<int>(threadIdx.x);
  out[lane] = offset<kMap>(lane, 1) + offset<kTwice>(lane, 3);
}
