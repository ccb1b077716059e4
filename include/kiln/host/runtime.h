// What host code calls of the CUDA runtime, without CUDA: the device is simulated, its memory is the
// host's, and every copy is held against what was allocated.
#pragma once

#include "kiln/host/device_sim.h"
#include "kiln/host/number.h"

using choreo::half;
using __half = choreo::f16;
using __nv_bfloat16 = choreo::bf16;
using __nv_fp8_e4m3 = choreo::f8_e4m3;
using __nv_fp8_e5m2 = choreo::f8_e5m2;
inline float __half2float(choreo::f16 value) { return value; }
inline choreo::f16 __float2half(float value) { return choreo::f16(value); }
inline float __bfloat162float(choreo::bf16 value) { return value; }
inline choreo::bf16 __float2bfloat16(float value) { return choreo::bf16(value); }

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorUnknown = 999,
};
enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4,
};
using cudaStream_t = kiln::host::Stream*;
using cudaEvent_t = kiln::host::Event*;

namespace kiln::host {

inline cudaError_t& last_cuda_error() {
  static thread_local cudaError_t error = cudaSuccess;
  return error;
}

inline cudaError_t cuda_answer(bool fine, cudaError_t error = cudaErrorInvalidValue) {
  if (!fine) last_cuda_error() = error;
  return fine ? cudaSuccess : error;
}

}  // namespace kiln::host

template <class T>
cudaError_t cudaMalloc(T** data, std::size_t bytes) {
  *data = static_cast<T*>(kiln::host::allocate(bytes));
  return kiln::host::cuda_answer(*data != nullptr || bytes == 0, cudaErrorMemoryAllocation);
}
template <class T>
cudaError_t cudaMallocManaged(T** data, std::size_t bytes, unsigned = 1) {
  *data = static_cast<T*>(kiln::host::allocate_managed(bytes));
  return kiln::host::cuda_answer(*data != nullptr || bytes == 0, cudaErrorMemoryAllocation);
}
template <class T>
cudaError_t cudaMallocHost(T** data, std::size_t bytes) {
  *data = static_cast<T*>(std::malloc(bytes));
  return kiln::host::cuda_answer(*data != nullptr || bytes == 0, cudaErrorMemoryAllocation);
}
inline cudaError_t cudaFree(void* data) {
  return kiln::host::cuda_answer(kiln::host::release(data));
}
inline cudaError_t cudaFreeHost(void* data) {
  std::free(data);
  return cudaSuccess;
}

inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                              const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  return kiln::host::cuda_answer(kiln::host::copy(
      {to, to_device}, {const_cast<void*>(from), from_device}, bytes, {file, line}));
}
// Waits: what host code does next may read or write the memory.
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes,
                                   cudaMemcpyKind kind, cudaStream_t stream = nullptr,
                                   const char* file = __builtin_FILE(),
                                   int line = __builtin_LINE()) {
  kiln::host::synchronise(stream);
  return cudaMemcpy(to, from, bytes, kind, file, line);
}
inline cudaError_t cudaMemset(void* to, int value, std::size_t bytes,
                              const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return kiln::host::cuda_answer(kiln::host::fill({to, true}, value, bytes, {file, line}));
}
inline cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes,
                                   cudaStream_t stream = nullptr,
                                   const char* file = __builtin_FILE(),
                                   int line = __builtin_LINE()) {
  kiln::host::synchronise(stream);
  return cudaMemset(to, value, bytes, file, line);
}

inline cudaError_t cudaDeviceSynchronize() {
  return kiln::host::cuda_answer(kiln::host::synchronise_device(), cudaErrorUnknown);
}
inline cudaError_t cudaGetLastError() {
  const cudaError_t error = kiln::host::last_cuda_error();
  kiln::host::last_cuda_error() = cudaSuccess;
  return error;
}
inline cudaError_t cudaPeekAtLastError() { return kiln::host::last_cuda_error(); }
inline const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess                 ? "no error"
         : error == cudaErrorInvalidValue     ? "invalid argument"
         : error == cudaErrorMemoryAllocation ? "out of memory"
                                              : "unknown error";
}
inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int device) { return kiln::host::cuda_answer(device == 0); }

inline cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  *stream = kiln::host::create_stream();
  return kiln::host::cuda_answer(*stream != nullptr);
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  kiln::host::destroy(stream);
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return kiln::host::cuda_answer(kiln::host::synchronise(stream), cudaErrorUnknown);
}

inline cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = kiln::host::create_event();
  return kiln::host::cuda_answer(*event != nullptr);
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  kiln::host::destroy(event);
  return cudaSuccess;
}
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr) {
  kiln::host::record(event, stream);
  return cudaSuccess;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  kiln::host::synchronise(event);
  return cudaSuccess;
}
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds = kiln::host::milliseconds(begin, end);
  return cudaSuccess;
}
