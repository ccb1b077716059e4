// The entry points of cuSPARSELt that kiln calls, with our own declarations: no CUDA header is
// needed to build. Names and numbers are those of the library's C interface from version 0.6 on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/cuda_api.h"
#include "support/result.h"

namespace kiln::measure::cusparselt {

using Status = int;  // cusparseStatus_t; 0 is success

// The library's structs are opaque and filled in by it; none is larger than this in any version.
struct alignas(16) Opaque {
  std::array<std::byte, 16384> bytes{};
};
using Handle = Opaque;
using Matrix = Opaque;
using Description = Opaque;  // cusparseLtMatmulDescriptor_t
using Selection = Opaque;    // cusparseLtMatmulAlgSelection_t
using Plan = Opaque;

inline constexpr Status kSuccess = 0;
inline constexpr int kVersionMin = 600;  // 0.6.0: the numbers of compute types changed there
inline constexpr int kOrderRow = 2;      // cusparseOrder_t
inline constexpr int kHalf = 0;          // cusparseLtSparsity_t: 50 per cent
inline constexpr int kAsItIs = 0;        // cusparseOperation_t
inline constexpr int kTransposed = 1;
inline constexpr int kComputeS32 = 0;  // cusparseComputeType
inline constexpr int kComputeF32 = 2;
inline constexpr int kDefault = 0;  // cusparseLtMatmulAlg_t
inline constexpr std::uint32_t kAlignment = 16;

// KILN_SPARSE(member, symbol, parameters)
#define KILN_SPARSE_FUNCTIONS(KILN_SPARSE)                                                         \
  KILN_SPARSE(init, "cusparseLtInit", (Handle * handle))                                           \
  KILN_SPARSE(destroy, "cusparseLtDestroy", (const Handle* handle))                                \
  KILN_SPARSE(version, "cusparseLtGetVersion", (const Handle* handle, int* version))               \
  KILN_SPARSE(dense_init, "cusparseLtDenseDescriptorInit",                                         \
              (const Handle* handle, Matrix* matrix, std::int64_t rows, std::int64_t columns,      \
               std::int64_t leading, std::uint32_t alignment, int type, int order))                \
  KILN_SPARSE(sparse_init, "cusparseLtStructuredDescriptorInit",                                   \
              (const Handle* handle, Matrix* matrix, std::int64_t rows, std::int64_t columns,      \
               std::int64_t leading, std::uint32_t alignment, int type, int order, int sparsity))  \
  KILN_SPARSE(description_init, "cusparseLtMatmulDescriptorInit",                                  \
              (const Handle* handle, Description* description, int a_operation, int b_operation,   \
               const Matrix* a, const Matrix* b, const Matrix* c, const Matrix* d, int compute))   \
  KILN_SPARSE(                                                                                     \
      selection_init, "cusparseLtMatmulAlgSelectionInit",                                          \
      (const Handle* handle, Selection* selection, const Description* description, int algorithm)) \
  KILN_SPARSE(plan_init, "cusparseLtMatmulPlanInit",                                               \
              (const Handle* handle, Plan* plan, const Description* description,                   \
               const Selection* selection))                                                        \
  KILN_SPARSE(plan_destroy, "cusparseLtMatmulPlanDestroy", (const Plan* plan))                     \
  KILN_SPARSE(workspace, "cusparseLtMatmulGetWorkspace",                                           \
              (const Handle* handle, const Plan* plan, std::size_t* bytes))                        \
  KILN_SPARSE(                                                                                     \
      compressed_size, "cusparseLtSpMMACompressedSize",                                            \
      (const Handle* handle, const Plan* plan, std::size_t* bytes, std::size_t* scratch_bytes))    \
  KILN_SPARSE(compress, "cusparseLtSpMMACompress",                                                 \
              (const Handle* handle, const Plan* plan, runtime::cuda::DevicePtr dense,             \
               runtime::cuda::DevicePtr compressed, runtime::cuda::DevicePtr scratch,              \
               runtime::cuda::Stream stream))                                                      \
  KILN_SPARSE(search, "cusparseLtMatmulSearch",                                                    \
              (const Handle* handle, Plan* plan, const void* alpha, runtime::cuda::DevicePtr a,    \
               runtime::cuda::DevicePtr b, const void* beta, runtime::cuda::DevicePtr c,           \
               runtime::cuda::DevicePtr d, runtime::cuda::DevicePtr workspace,                     \
               runtime::cuda::Stream* streams, std::int32_t stream_count))                         \
  KILN_SPARSE(                                                                                     \
      matmul, "cusparseLtMatmul",                                                                  \
      (const Handle* handle, const Plan* plan, const void* alpha, runtime::cuda::DevicePtr a,      \
       runtime::cuda::DevicePtr b, const void* beta, runtime::cuda::DevicePtr c,                   \
       runtime::cuda::DevicePtr d, runtime::cuda::DevicePtr workspace,                             \
       runtime::cuda::Stream* streams, std::int32_t stream_count))

struct Api {
#define KILN_SPARSE(member, symbol, parameters) Status(*member) parameters = nullptr;
  KILN_SPARSE_FUNCTIONS(KILN_SPARSE)
#undef KILN_SPARSE

  // Nothing when `status` is success, else an error with its number.
  [[nodiscard]] Result<void> check(Status status, const char* what,
                                   const std::string& subject = {}) const;
};

// Opens libcusparseLt and finds all of them. Errors: it is not on this machine, or too old.
[[nodiscard]] Result<Api> open_api();

}  // namespace kiln::measure::cusparselt
