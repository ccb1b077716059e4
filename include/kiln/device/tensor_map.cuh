// A tensor map: what the hardware must know of a global array to move boxes of it. Made on the host
// by the CUDA driver, passed to kernels by value as `const __grid_constant__ kiln::TensorMap`.
//
//   kiln::TensorMap map;
//   cudaError_t status = kiln::make_tensor_map(
//       map, lhs, kiln::MapShape<2>{{M, K}, {M, K}, {128, 64}}, kiln::MapPattern{128, 0});
//
// Dimensions are listed outermost first. CUDA driver API, "Tensor Map Object Management".
#pragma once

#ifndef __CUDACC_RTC__
#include <cuda_runtime.h>

#include "kiln/device/types.cuh"
#endif

namespace kiln {

// Known to the driver and the hardware alone (CUtensorMap).
struct alignas(64) TensorMap {
  unsigned char bytes[128];
};

#ifndef __CUDACC_RTC__

template <int Rank>
struct MapShape {
  long long array[Rank];    // the array's shape
  long long extents[Rank];  // how much of it boxes see: beyond it they read zeros
  unsigned box[Rank];       // at most 256 elements each
};

// In bytes: the swizzle of the shared tile (0, 32, 64 or 128) and how much the second-level cache
// fetches at once (0: as it likes, 64, 128 or 256).
struct MapPattern {
  int swizzle;
  int promotion;
};

namespace detail {

// Number of the driver's enumeration: the unsigned type of as many bytes, or where bulk copies add
// elements their own.
template <class T>
struct MapType {
  static constexpr int value = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 4;
};
template <>
struct MapType<int> {
  static constexpr int value = 3;
};
template <>
struct MapType<f16> {
  static constexpr int value = 6;
};
template <>
struct MapType<float> {
  static constexpr int value = 7;
};
template <>
struct MapType<bf16> {
  static constexpr int value = 9;
};

}  // namespace detail

// The array must begin at a multiple of 16 bytes, and all but its last dimension must be so many
// apart: else cudaErrorInvalidValue.
template <class T, int Rank>
inline cudaError_t make_tensor_map(TensorMap& map, const T* array, const MapShape<Rank>& shape,
                                   MapPattern pattern) {
  using Encode =
      int (*)(void*, int, unsigned, void*, const unsigned long long*, const unsigned long long*,
              const unsigned*, const unsigned*, int, int, int, int);
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSuccess;
#if CUDART_VERSION >= 12050
  const cudaError_t status = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry,
                                                              12000, cudaEnableDefault, &found);
#else
  const cudaError_t status =
      cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &entry, cudaEnableDefault, &found);
#endif
  if (status != cudaSuccess) return status;
  if (found != cudaDriverEntryPointSuccess) return cudaErrorNotSupported;
  unsigned long long extents[Rank];
  unsigned long long pitches[Rank];  // of dimension d + 1; the innermost has none
  unsigned box[Rank];
  unsigned steps[Rank];
  unsigned long long pitch = sizeof(T);
  for (int d = 0; d < Rank; ++d) {  // innermost first
    const int from = Rank - 1 - d;
    extents[d] = static_cast<unsigned long long>(shape.extents[from]);
    box[d] = shape.box[from];
    steps[d] = 1;
    pitch *= static_cast<unsigned long long>(shape.array[from]);
    pitches[d] = pitch;
  }
  // Numbers of the driver's enumerations: swizzles and promotions in their order.
  const int type = detail::MapType<T>::value;
  const int swizzle = pattern.swizzle == 128 ? 3 : pattern.swizzle / 32;
  const int promotion = pattern.promotion == 256 ? 3 : pattern.promotion / 64;
  const int made = reinterpret_cast<Encode>(entry)(&map, type, Rank, const_cast<T*>(array), extents,
                                                   pitches, box, steps, 0, swizzle, promotion, 0);
  return made == 0 ? cudaSuccess : cudaErrorInvalidValue;
}

#endif  // __CUDACC_RTC__

}  // namespace kiln
