// The entry points of cuBLASLt that kiln calls, with our own declarations: no CUDA header is needed
// to build. Names, sizes and numbers are those of the library's stable C interface, versions 12 and
// 13.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/cuda_api.h"
#include "support/result.h"

namespace kiln::measure::cublaslt {

using Status = int;  // cublasStatus_t; 0 is success
using Handle = struct HandleTag*;
using Description = struct DescriptionTag*;  // cublasLtMatmulDesc_t
using Layout = struct LayoutTag*;            // cublasLtMatrixLayout_t
using Preference = struct PreferenceTag*;    // cublasLtMatmulPreference_t

inline constexpr Status kSuccess = 0;

// cublasLtMatmulAlgo_t and cublasLtMatmulHeuristicResult_t.
struct Algorithm {
  std::array<std::uint64_t, 8> data{};
};
struct Heuristic {
  Algorithm algorithm;
  std::size_t workspace_bytes = 0;
  Status status = kSuccess;
  float waves = 0;
  std::array<int, 4> reserved{};
};
static_assert(sizeof(Heuristic) == 96);

// cudaDataType_t.
inline constexpr int kF32 = 0;
inline constexpr int kF16 = 2;
inline constexpr int kBF16 = 14;
inline constexpr int kE4M3 = 28;
inline constexpr int kE5M2 = 29;
inline constexpr int kS8 = 3;
inline constexpr int kS32 = 10;
// cublasComputeType_t.
inline constexpr int kComputeF32 = 68;
inline constexpr int kComputeTF32 = 77;
// cublasOperation_t.
inline constexpr std::int32_t kAsItIs = 0;
inline constexpr std::int32_t kTransposed = 1;
// cublasLtMatmulMatrixScale_t.
inline constexpr std::int32_t kScaleOf128 = 4;     // f32, one for 128 along k
inline constexpr std::int32_t kScaleOfBlocks = 5;  // f32, one for 128 x 128
// cublasLtMatmulDescAttributes_t and cublasLtMatmulPreferenceAttributes_t.
inline constexpr int kDescriptionTransA = 3;       // int32_t
inline constexpr int kDescriptionTransB = 4;       // int32_t
inline constexpr int kDescriptionScaleA = 17;      // const void*, device memory
inline constexpr int kDescriptionScaleB = 18;      // const void*, device memory
inline constexpr int kDescriptionFastSums = 25;    // int8_t
inline constexpr int kDescriptionScaleModeA = 31;  // int32_t
inline constexpr int kDescriptionScaleModeB = 32;  // int32_t
inline constexpr int kPreferenceWorkspaceMax = 1;  // uint64_t

// KILN_LT(member, symbol, parameters)
#define KILN_LT_FUNCTIONS(KILN_LT)                                                                \
  KILN_LT(create, "cublasLtCreate", (Handle * handle))                                            \
  KILN_LT(destroy, "cublasLtDestroy", (Handle handle))                                            \
  KILN_LT(description_create, "cublasLtMatmulDescCreate",                                         \
          (Description * description, int compute, int scale_type))                               \
  KILN_LT(description_destroy, "cublasLtMatmulDescDestroy", (Description description))            \
  KILN_LT(description_set, "cublasLtMatmulDescSetAttribute",                                      \
          (Description description, int which, const void* value, std::size_t bytes))             \
  KILN_LT(layout_create, "cublasLtMatrixLayoutCreate",                                            \
          (Layout * layout, int type, std::uint64_t rows, std::uint64_t columns,                  \
           std::int64_t leading))                                                                 \
  KILN_LT(layout_destroy, "cublasLtMatrixLayoutDestroy", (Layout layout))                         \
  KILN_LT(preference_create, "cublasLtMatmulPreferenceCreate", (Preference * preference))         \
  KILN_LT(preference_destroy, "cublasLtMatmulPreferenceDestroy", (Preference preference))         \
  KILN_LT(preference_set, "cublasLtMatmulPreferenceSetAttribute",                                 \
          (Preference preference, int which, const void* value, std::size_t bytes))               \
  KILN_LT(heuristics, "cublasLtMatmulAlgoGetHeuristic",                                           \
          (Handle handle, Description description, Layout a, Layout b, Layout c, Layout d,        \
           Preference preference, int wanted, Heuristic* results, int* found))                    \
  KILN_LT(matmul, "cublasLtMatmul",                                                               \
          (Handle handle, Description description, const void* alpha, runtime::cuda::DevicePtr a, \
           Layout a_layout, runtime::cuda::DevicePtr b, Layout b_layout, const void* beta,        \
           runtime::cuda::DevicePtr c, Layout c_layout, runtime::cuda::DevicePtr d,               \
           Layout d_layout, const Algorithm* algorithm, runtime::cuda::DevicePtr workspace,       \
           std::size_t workspace_bytes, runtime::cuda::Stream stream))

struct Api {
#define KILN_LT(member, symbol, parameters) Status(*member) parameters = nullptr;
  KILN_LT_FUNCTIONS(KILN_LT)
#undef KILN_LT
  std::size_t (*version)() = nullptr;
  const char* (*status_name)(Status status) = nullptr;

  // Nothing when `status` is success, else an error with the library's name for it:
  // "cuBLASLt cannot multiply `e5m2 * e5m2`: CUBLAS_STATUS_NOT_SUPPORTED (number 15)".
  [[nodiscard]] Result<void> check(Status status, const char* what,
                                   const std::string& subject = {}) const;
};

// Opens libcublasLt and finds all of them. Errors: it is not on this machine, or too old.
[[nodiscard]] Result<Api> open_api();

}  // namespace kiln::measure::cublaslt
