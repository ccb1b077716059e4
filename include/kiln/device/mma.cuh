// TiledMMA and TiledCopy in C++20: hand-written tensor-core kernels over kiln's layout algebra.
//
//   #include <kiln/device/mma.cuh>
//
// brings tensors (tensor.cuh), copies (algorithm.cuh, tiled_copy.cuh), matrix products
// (tiled_mma.cuh) and the atoms (atoms.cuh). docs/device-library.md explains them by two programs,
// examples/hello_mma.cu and examples/global_gemm.cu. Needs nvcc or NVRTC with C++20, and sm_80.
// kiln/device/cute.cuh offers the same under CuTe's spelling.
#pragma once

#include "kiln/device/algorithm.cuh"
#include "kiln/device/atoms.cuh"
#include "kiln/device/tensor.cuh"
#include "kiln/device/tiled_copy.cuh"
#include "kiln/device/tiled_mma.cuh"
#include "kiln/device/types.cuh"
