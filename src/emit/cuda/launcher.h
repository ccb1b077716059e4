// The host function that launches one kernel the way its plan says, for files that nvcc compiles.
//
//   cudaError_t launch_matmul(
//       const kiln::f16* lhs, int M, int K, cudaStream_t stream = nullptr) {
//     kiln::TensorMap lhs_map;
//     ...
//     matmul<<<grid, 256, 40960, stream>>>(lhs_map, K);
//     return cudaGetLastError();
//   }
#pragma once

#include <string>
#include <vector>

#include "emit/cuda/launch_plan.h"

namespace kiln::emit {

// The parameters of a kernel or of its launcher, as C++ declares them.
[[nodiscard]] std::string parameters_text(const std::vector<ParamSlot>& slots);

[[nodiscard]] std::string launcher_text(const ir::Function& function, const LaunchPlan& plan,
                                        const target::Arch& arch);

}  // namespace kiln::emit
