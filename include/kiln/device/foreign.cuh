// What CUDA in a program relies on without including it: integers of fixed width, which NVRTC does not
// have, and the element types in the namespaces that programs call them by.
//
//   __device__ uint32_t bits(croq::f16 value);
#pragma once

#include "kiln/device/types.cuh"

#ifdef __CUDACC_RTC__
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned;
using int64_t = long long;
using uint64_t = unsigned long long;
using uintptr_t = unsigned long long;
#else
#include <cstdint>
#endif

namespace choreo {
using namespace kiln;
}  // namespace choreo
namespace croq {
using namespace kiln;
}  // namespace croq

// CUDA's conversions, of the types that programs mean here. Where a program includes cuda_fp16.h or cuda_bf16.h,
// the functions there are taken for its types.
__device__ inline float __half2float(kiln::f16 value) { return static_cast<float>(value); }
__device__ inline float __bfloat162float(kiln::bf16 value) { return static_cast<float>(value); }
template <class T>
__device__ inline kiln::f16 __float2half(T value) {
  return kiln::f16(static_cast<float>(value));
}
template <class T>
__device__ inline kiln::bf16 __float2bfloat16(T value) {
  return kiln::bf16(static_cast<float>(value));
}
