// The entry points of the CUDA driver that kiln calls, with our own declarations: no CUDA header is
// needed to build. Names, versions and numbers are those of the driver's stable binary interface.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "support/result.h"

namespace kiln::runtime::cuda {

using Status = int;  // CUresult; 0 is success
using Device = int;
using DevicePtr = unsigned long long;
using Context = struct ContextTag*;
using ModuleHandle = struct ModuleTag*;
using FunctionHandle = struct FunctionTag*;
using Stream = struct StreamTag*;
using EventHandle = struct EventTag*;
using GraphHandle = struct GraphTag*;
using GraphExec = struct GraphExecTag*;

inline constexpr Status kSuccess = 0;
// CUdevice_attribute and CUfunction_attribute.
inline constexpr int kClockKilohertz = 13;
inline constexpr int kMultiprocessors = 16;
inline constexpr int kComputeCapabilityMajor = 75;
inline constexpr int kComputeCapabilityMinor = 76;
inline constexpr int kMaxDynamicSharedBytes = 8;
// CUpointer_attribute.
inline constexpr int kPointerDevice = 9;
// CUevent_flags: of an event that only orders work.
inline constexpr unsigned kUntimed = 2;
// CUstreamCaptureMode: what this thread does that cannot be captured is an error.
inline constexpr int kCapturesThread = 1;

// CUtensorMap: 128 bytes that the driver fills in and the hardware reads.
struct alignas(64) TensorMap {
  std::array<std::byte, 128> bytes{};
};
inline constexpr std::size_t kMapRankMax = 5;
// CUtensorMapDataType, -Interleave, -Swizzle and -L2promotion (by bytes), -FloatOOBfill.
inline constexpr int kMapU8 = 0;
inline constexpr int kMapU16 = 1;
inline constexpr int kMapU32 = 2;
inline constexpr int kMapS32 = 3;
inline constexpr int kMapU64 = 4;
inline constexpr int kMapF16 = 6;
inline constexpr int kMapF32 = 7;
inline constexpr int kMapBF16 = 9;
inline constexpr int kMapNotInterleaved = 0;
inline constexpr std::pair<std::int64_t, int> kMapSwizzles[] = {{0, 0}, {32, 1}, {64, 2}, {128, 3}};
inline constexpr std::pair<std::int64_t, int> kMapPromotions[] = {
    {0, 0}, {64, 1}, {128, 2}, {256, 3}};
inline constexpr int kMapZerosOutside = 0;

// CUlaunchAttribute: CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, with 1 as its value.
inline constexpr int kOverlapsEarlierKernels = 6;
// CU_LAUNCH_ATTRIBUTE_COOPERATIVE, likewise.
inline constexpr int kAllBlocksAtOnce = 2;
struct LaunchAttribute {
  int id = 0;
  int padding = 0;
  std::array<int, 16> value = {};
};
// CUlaunchConfig.
struct LaunchConfig {
  std::array<unsigned, 3> grid = {1, 1, 1};
  std::array<unsigned, 3> block = {1, 1, 1};
  unsigned shared_bytes = 0;
  Stream stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};

// KILN_CUDA(member, symbol, parameters)
#define KILN_CUDA_FUNCTIONS(KILN_CUDA)                                                            \
  KILN_CUDA(init, "cuInit", (unsigned flags))                                                     \
  KILN_CUDA(driver_version, "cuDriverGetVersion", (int* version))                                 \
  KILN_CUDA(device_count, "cuDeviceGetCount", (int* count))                                       \
  KILN_CUDA(device_get, "cuDeviceGet", (Device * device, int ordinal))                            \
  KILN_CUDA(device_name, "cuDeviceGetName", (char* name, int length, Device device))              \
  KILN_CUDA(device_bus, "cuDeviceGetPCIBusId", (char* text, int length, Device device))           \
  KILN_CUDA(device_attribute, "cuDeviceGetAttribute", (int* value, int which, Device device))     \
  KILN_CUDA(context_retain, "cuDevicePrimaryCtxRetain", (Context * context, Device device))       \
  KILN_CUDA(context_release, "cuDevicePrimaryCtxRelease_v2", (Device device))                     \
  KILN_CUDA(context_set, "cuCtxSetCurrent", (Context context))                                    \
  KILN_CUDA(context_current, "cuCtxGetCurrent", (Context * context))                              \
  KILN_CUDA(context_device, "cuCtxGetDevice", (Device * device))                                  \
  KILN_CUDA(context_push, "cuCtxPushCurrent_v2", (Context context))                               \
  KILN_CUDA(context_pop, "cuCtxPopCurrent_v2", (Context * context))                               \
  KILN_CUDA(context_synchronize, "cuCtxSynchronize", ())                                          \
  KILN_CUDA(pointer_attribute, "cuPointerGetAttribute",                                           \
            (void* value, int which, DevicePtr pointer))                                          \
  KILN_CUDA(stream_wait, "cuStreamWaitEvent", (Stream stream, EventHandle event, unsigned flags)) \
  KILN_CUDA(stream_is_capturing, "cuStreamIsCapturing", (Stream stream, int* status))             \
  KILN_CUDA(memory_alloc, "cuMemAlloc_v2", (DevicePtr * pointer, std::size_t bytes))              \
  KILN_CUDA(memory_free, "cuMemFree_v2", (DevicePtr pointer))                                     \
  KILN_CUDA(copy_in, "cuMemcpyHtoD_v2", (DevicePtr to, const void* from, std::size_t bytes))      \
  KILN_CUDA(copy_out, "cuMemcpyDtoH_v2", (void* to, DevicePtr from, std::size_t bytes))           \
  KILN_CUDA(copy_within, "cuMemcpyDtoDAsync_v2",                                                  \
            (DevicePtr to, DevicePtr from, std::size_t bytes, Stream stream))                     \
  KILN_CUDA(set_bytes, "cuMemsetD8_v2", (DevicePtr to, unsigned char byte, std::size_t count))    \
  KILN_CUDA(start_set_bytes, "cuMemsetD8Async",                                                   \
            (DevicePtr to, unsigned char byte, std::size_t count, Stream stream))                 \
  KILN_CUDA(start_set_halves, "cuMemsetD16Async",                                                 \
            (DevicePtr to, unsigned short half, std::size_t count, Stream stream))                \
  KILN_CUDA(start_set_words, "cuMemsetD32Async",                                                  \
            (DevicePtr to, unsigned word, std::size_t count, Stream stream))                      \
  KILN_CUDA(start_set_columns, "cuMemsetD2D32Async",                                              \
            (DevicePtr to, std::size_t pitch, unsigned word, std::size_t width,                   \
             std::size_t height, Stream stream))                                                  \
  KILN_CUDA(module_load, "cuModuleLoadData", (ModuleHandle * module, const void* image))          \
  KILN_CUDA(module_unload, "cuModuleUnload", (ModuleHandle module))                               \
  KILN_CUDA(module_function, "cuModuleGetFunction",                                               \
            (FunctionHandle * function, ModuleHandle module, const char* name))                   \
  KILN_CUDA(function_set, "cuFuncSetAttribute", (FunctionHandle function, int which, int value))  \
  KILN_CUDA(launch, "cuLaunchKernel",                                                             \
            (FunctionHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z,          \
             unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,         \
             Stream stream, void** parameters, void** extra))                                     \
  KILN_CUDA(event_create, "cuEventCreate", (EventHandle * event, unsigned flags))                 \
  KILN_CUDA(event_destroy, "cuEventDestroy_v2", (EventHandle event))                              \
  KILN_CUDA(event_record, "cuEventRecord", (EventHandle event, Stream stream))                    \
  KILN_CUDA(event_synchronize, "cuEventSynchronize", (EventHandle event))                         \
  KILN_CUDA(event_elapsed, "cuEventElapsedTime",                                                  \
            (float* milliseconds, EventHandle start, EventHandle end))                            \
  KILN_CUDA(error_name, "cuGetErrorName", (Status status, const char** name))                     \
  KILN_CUDA(error_text, "cuGetErrorString", (Status status, const char** text))

// Those that drivers before version 12 lack, some of them those before 11.4: null there.
#define KILN_CUDA_NEWER_FUNCTIONS(KILN_CUDA)                                                       \
  KILN_CUDA(                                                                                       \
      launch_configured, "cuLaunchKernelEx",                                                       \
      (const LaunchConfig* config, FunctionHandle function, void** parameters, void** extra))      \
  KILN_CUDA(memory_alloc_in_order, "cuMemAllocAsync",                                              \
            (DevicePtr * pointer, std::size_t bytes, Stream stream))                               \
  KILN_CUDA(memory_free_in_order, "cuMemFreeAsync", (DevicePtr pointer, Stream stream))            \
  KILN_CUDA(stream_create, "cuStreamCreate", (Stream * stream, unsigned flags))                    \
  KILN_CUDA(stream_destroy, "cuStreamDestroy_v2", (Stream stream))                                 \
  KILN_CUDA(capture_begin, "cuStreamBeginCapture_v2", (Stream stream, int mode))                   \
  KILN_CUDA(capture_end, "cuStreamEndCapture", (Stream stream, GraphHandle * graph))               \
  KILN_CUDA(graph_destroy, "cuGraphDestroy", (GraphHandle graph))                                  \
  KILN_CUDA(graph_instantiate, "cuGraphInstantiateWithFlags",                                      \
            (GraphExec * exec, GraphHandle graph, unsigned long long flags))                       \
  KILN_CUDA(graph_exec_destroy, "cuGraphExecDestroy", (GraphExec exec))                            \
  KILN_CUDA(graph_launch, "cuGraphLaunch", (GraphExec exec, Stream stream))                        \
  KILN_CUDA(tensor_map_encode, "cuTensorMapEncodeTiled",                                           \
            (TensorMap * map, int type, unsigned rank, DevicePtr address,                          \
             const std::uint64_t* extents, const std::uint64_t* pitches, const std::uint32_t* box, \
             const std::uint32_t* steps, int interleave, int swizzle, int promotion, int outside))

struct Api {
#define KILN_CUDA(member, symbol, parameters) Status(*member) parameters = nullptr;
  KILN_CUDA_FUNCTIONS(KILN_CUDA)
  KILN_CUDA_NEWER_FUNCTIONS(KILN_CUDA)
#undef KILN_CUDA

  // Nothing when `status` is success, else an error with the driver's name for it:
  // "cannot load `matmul`: CUDA_ERROR_INVALID_IMAGE (device kernel image is invalid)".
  [[nodiscard]] Result<void> check(Status status, const char* what,
                                   const std::string& subject = {}) const;
};

// Opens libcuda.so.1 and finds all of them. Errors: no driver on this machine, or one too old.
[[nodiscard]] Result<Api> open_api();

}  // namespace kiln::runtime::cuda
