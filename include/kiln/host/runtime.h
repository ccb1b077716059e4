// What host code calls of the CUDA runtime, without CUDA: the device is the simulator's or a GPU, and
// every copy is held against what was allocated.
#pragma once

#include <string>

#include "kiln/host/choose_device.h"
#include "kiln/host/number.h"

// Programs write these without `choreo::`.
using choreo::half;
using choreo::s16;
using choreo::s32;
using choreo::s64;
using choreo::s8;
using choreo::u16;
using choreo::u32;
using choreo::u64;
using choreo::u8;
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

// One of CUDA's numbers.
inline cudaError_t cuda_answer(int error) {
  if (error != kFine) last_cuda_error() = static_cast<cudaError_t>(error);
  return static_cast<cudaError_t>(error);
}
inline cudaError_t cuda_answer_of(const void* made) {
  return cuda_answer(made != nullptr ? kFine : kOutOfMemory);
}

// "default" leaves it to the addresses.
inline Place place_of(void* data, cudaMemcpyKind kind, cudaMemcpyKind other) {
  const bool on_device = kind == cudaMemcpyDeviceToDevice || kind == other;
  return {data, on_device, kind == cudaMemcpyDefault};
}

}  // namespace kiln::host

template <class T>
cudaError_t cudaMalloc(T** data, std::size_t bytes) {
  *data = static_cast<T*>(kiln::host::device().allocate(bytes));
  return kiln::host::cuda_answer_of(*data);
}
template <class T>
cudaError_t cudaMallocManaged(T** data, std::size_t bytes, unsigned = 1) {
  *data = static_cast<T*>(kiln::host::device().allocate_managed(bytes));
  return kiln::host::cuda_answer_of(*data);
}
template <class T>
cudaError_t cudaMallocHost(T** data, std::size_t bytes) {
  *data = static_cast<T*>(kiln::host::device().allocate_host(bytes));
  return kiln::host::cuda_answer_of(*data);
}
inline cudaError_t cudaFree(void* data) {
  return kiln::host::cuda_answer(kiln::host::device().release(data));
}
inline cudaError_t cudaFreeHost(void* data) {
  return kiln::host::cuda_answer(kiln::host::device().release_host(data));
}

inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes,
                                   cudaMemcpyKind kind, cudaStream_t stream = nullptr,
                                   const char* file = __builtin_FILE(),
                                   int line = __builtin_LINE()) {
  return kiln::host::cuda_answer(
      kiln::host::copy(kiln::host::place_of(to, kind, cudaMemcpyHostToDevice),
                       kiln::host::place_of(const_cast<void*>(from), kind, cudaMemcpyDeviceToHost),
                       bytes, stream, {file, line}));
}
inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                              const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const cudaError_t started = cudaMemcpyAsync(to, from, bytes, kind, nullptr, file, line);
  if (started != cudaSuccess) return started;
  return kiln::host::cuda_answer(kiln::host::device().synchronise(cudaStream_t{}));
}
inline cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes,
                                   cudaStream_t stream = nullptr,
                                   const char* file = __builtin_FILE(),
                                   int line = __builtin_LINE()) {
  return kiln::host::cuda_answer(kiln::host::fill({to, true}, value, bytes, stream, {file, line}));
}
inline cudaError_t cudaMemset(void* to, int value, std::size_t bytes,
                              const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return cudaMemsetAsync(to, value, bytes, nullptr, file, line);
}

inline cudaError_t cudaDeviceSynchronize() {
  return kiln::host::cuda_answer(kiln::host::device().synchronise());
}
inline cudaError_t cudaGetLastError() {
  const cudaError_t error = kiln::host::last_cuda_error();
  kiln::host::last_cuda_error() = cudaSuccess;
  return error;
}
inline cudaError_t cudaPeekAtLastError() { return kiln::host::last_cuda_error(); }
// Valid until the thread's next call.
inline const char* cudaGetErrorString(cudaError_t error) {
  static thread_local std::string text;
  text = kiln::host::device().error_text(error);
  return text.c_str();
}
inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = kiln::host::device().count();
  return cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* device) {
  *device = kiln::host::device().current();
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int device) {
  return kiln::host::cuda_answer(kiln::host::device().choose(device));
}

inline cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  *stream = kiln::host::device().create_stream();
  return kiln::host::cuda_answer_of(*stream);
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return kiln::host::cuda_answer(kiln::host::device().destroy(stream));
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return kiln::host::cuda_answer(kiln::host::device().synchronise(stream));
}

inline cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = kiln::host::device().create_event();
  return kiln::host::cuda_answer_of(*event);
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return kiln::host::cuda_answer(kiln::host::device().destroy(event));
}
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr) {
  return kiln::host::cuda_answer(kiln::host::device().record(event, stream));
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return kiln::host::cuda_answer(kiln::host::device().synchronise(event));
}
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  return kiln::host::cuda_answer(kiln::host::device().milliseconds(*milliseconds, begin, end));
}
