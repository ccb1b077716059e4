// The instruction tables as a device header, include/kiln/device/atoms.cuh: what hand-written CUDA
// over TiledMMA and TiledCopy takes its atoms from.
//
//   struct m16n8k16_f32_f16 {                       // row m16n8k16.f32.f16
//     enum : int { kM = 16, kN = 8, kK = 16, kLanes = 32 };
//     static constexpr Layout map_c();              // ((4,8),(2,2)):((32,1),(16,8))
//     __device__ static void mma(float* c, const unsigned* a, const unsigned* b);
//     ...
#pragma once

#include <string>

namespace kiln::emit {

// The whole text of the header: one struct for each matrix instruction, matrix load and
// asynchronous copy of the tables, in table order.
[[nodiscard]] std::string atoms_header();

}  // namespace kiln::emit
