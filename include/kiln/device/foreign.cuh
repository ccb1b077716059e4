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
