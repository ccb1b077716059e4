#include "gemm/fake_cuda.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>

#define FAKE extern "C" __attribute__((visibility("default"))) int

// The driver's own long lists.
#define LAUNCH_PARAMETERS                                                                    \
  (void* function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned, unsigned, \
   unsigned, void* stream, void** parameters, void**)
#define COLUMNS_PARAMETERS                                                                         \
  (unsigned long long to, std::size_t pitch, unsigned word, std::size_t width, std::size_t height, \
   void*)
#define MAP_PARAMETERS                                                                      \
  (void* map, int, unsigned rank, unsigned long long address, const std::uint64_t* extents, \
   const std::uint64_t* pitches, const std::uint32_t*, const std::uint32_t*, int, int, int, int)

namespace {

FakeCuda state;
int primary_context;
thread_local void* current;
thread_local void* below;  // what was current before a push

// Names of kernels: their functions point to them.
std::mutex names_mutex;
std::set<std::string> names;

// Memory that was asked for, by its first byte: the rest is the host's.
std::mutex blocks_mutex;
std::map<std::uintptr_t, std::size_t> blocks;

unsigned long long take(std::size_t bytes) {
  constexpr std::size_t kUnit = 256;
  ++state.allocations;
  const auto address = reinterpret_cast<std::uintptr_t>(
      std::aligned_alloc(kUnit, (bytes + kUnit - 1) / kUnit * kUnit));
  const std::lock_guard lock(blocks_mutex);
  blocks[address] = bytes;
  return address;
}

// The block that the address lies in; its size is 0 where it lies in none.
std::pair<std::uintptr_t, std::size_t> block_of(std::uintptr_t address) {
  const std::lock_guard lock(blocks_mutex);
  const auto after = blocks.upper_bound(address);
  if (after == blocks.begin()) return {};
  const auto block = std::prev(after);
  if (address - block->first >= block->second) return {};
  return *block;
}

constexpr int kInvalidContext = 201;  // CUDA_ERROR_INVALID_CONTEXT

thread_local void* captured_stream;

// Counted where the stream is captured: it does not run then.
bool is_captured(const void* stream) {
  const bool captured = stream != nullptr && stream == captured_stream;
  if (captured) ++state.captured;
  return captured;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) FakeCuda* fake_cuda() { return &state; }

FAKE cuInit(unsigned) { return 0; }
FAKE cuDriverGetVersion(int* version) { return *version = 13000, 0; }
FAKE cuDeviceGetCount(int* count) { return *count = 1, 0; }
FAKE cuDeviceGet(int* device, int ordinal) { return *device = ordinal, ordinal == 0 ? 0 : 101; }
FAKE cuDeviceGetName(char* name, int, int) { return std::strcpy(name, "a GPU of paper"), 0; }
FAKE cuDeviceGetPCIBusId(char* text, int, int) { return std::strcpy(text, "0000:00:00.0"), 0; }
FAKE cuDeviceGetAttribute(int* value, int which, int) {
  constexpr int kMultiprocessors = 16;
  constexpr int kMajor = 75;
  *value = which == kMultiprocessors ? 132 : which == kMajor ? 9 : 0;
  return 0;
}
FAKE cuDevicePrimaryCtxRetain(void** context, int) { return *context = &primary_context, 0; }
FAKE cuDevicePrimaryCtxRelease_v2(int) { return 0; }
FAKE cuCtxSetCurrent(void* context) { return current = context, 0; }
FAKE cuCtxGetCurrent(void** context) { return *context = current, 0; }
FAKE cuCtxGetDevice(int* device) { return *device = 0, current == nullptr ? kInvalidContext : 0; }
FAKE cuCtxPushCurrent_v2(void* context) {
  below = current;
  current = context;
  ++state.pushes;
  ++state.contexts_held;
  return 0;
}
FAKE cuCtxPopCurrent_v2(void** context) {
  *context = current;
  current = below;
  --state.contexts_held;
  return 0;
}
FAKE cuCtxSynchronize() { return ++state.synchronisations, 0; }
FAKE cuStreamIsCapturing(void*, int* status) { return *status = state.capturing ? 1 : 0, 0; }
FAKE cuMemAlloc_v2(unsigned long long* pointer, std::size_t bytes) {
  return *pointer = take(bytes), 0;
}
FAKE cuMemAllocManaged(unsigned long long* pointer, std::size_t bytes, unsigned) {
  return *pointer = take(bytes), 0;
}
FAKE cuMemAllocHost_v2(void** pointer, std::size_t bytes) {
  return *pointer = std::malloc(bytes), 0;
}
FAKE cuMemFreeHost(void* pointer) { return std::free(pointer), 0; }
FAKE cuMemFree_v2(unsigned long long pointer) {
  const std::lock_guard lock(blocks_mutex);
  blocks.erase(pointer);
  return std::free(reinterpret_cast<void*>(pointer)), 0;
}
FAKE cuMemAllocAsync(unsigned long long* pointer, std::size_t bytes, void*) {
  return *pointer = take(bytes), current == nullptr ? kInvalidContext : 0;
}
FAKE cuMemFreeAsync(unsigned long long pointer, void*) { return cuMemFree_v2(pointer); }
FAKE cuMemcpyAsync(unsigned long long to, unsigned long long from, std::size_t bytes, void*) {
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return 0;
}
FAKE cuMemcpyHtoD_v2(unsigned long long to, const void* from, std::size_t bytes) {
  return std::memcpy(reinterpret_cast<void*>(to), from, bytes), 0;
}
FAKE cuMemcpyDtoH_v2(void* to, unsigned long long from, std::size_t bytes) {
  return std::memcpy(to, reinterpret_cast<const void*>(from), bytes), 0;
}
FAKE cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, std::size_t bytes,
                          void* stream) {
  if (is_captured(stream)) return 0;
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return 0;
}
FAKE cuMemsetD8_v2(unsigned long long to, unsigned char byte, std::size_t bytes) {
  return std::memset(reinterpret_cast<void*>(to), byte, bytes), 0;
}
FAKE cuMemsetD8Async(unsigned long long to, unsigned char byte, std::size_t bytes, void* stream) {
  if (is_captured(stream)) return 0;
  return std::memset(reinterpret_cast<void*>(to), byte, bytes), 0;
}
FAKE cuMemsetD16Async(unsigned long long to, unsigned short half, std::size_t count, void*) {
  auto* at = reinterpret_cast<unsigned short*>(to);
  return std::fill(at, at + count, half), 0;
}
FAKE cuMemsetD32Async(unsigned long long to, unsigned word, std::size_t count, void*) {
  auto* at = reinterpret_cast<unsigned*>(to);
  return std::fill(at, at + count, word), 0;
}
FAKE cuMemsetD2D32Async COLUMNS_PARAMETERS {
  for (std::size_t row = 0; row < height; ++row) {
    auto* at = reinterpret_cast<unsigned*>(to + row * pitch);
    std::fill(at, at + width, word);
  }
  return 0;
}
FAKE cuPointerGetAttribute(void* value, int which, unsigned long long pointer) {
  constexpr int kMemoryType = 2;
  constexpr int kRangeBegin = 11;
  constexpr int kRangeBytes = 12;
  constexpr int kInvalidValue = 1;
  constexpr int kOfDevice = 2;
  const auto [begin, bytes] = block_of(pointer);
  if (which == kMemoryType && bytes == 0) return kInvalidValue;
  switch (which) {
    case kRangeBegin: std::memcpy(value, &begin, sizeof begin); return 0;
    case kRangeBytes: std::memcpy(value, &bytes, sizeof bytes); return 0;
    default: return *static_cast<int*>(value) = which == kMemoryType ? kOfDevice : 0, 0;
  }
}
FAKE cuStreamCreate(void** stream, unsigned) { return *stream = new char, 0; }
FAKE cuStreamDestroy_v2(void* stream) { return delete static_cast<char*>(stream), 0; }
FAKE cuStreamBeginCapture_v2(void* stream, int) { return captured_stream = stream, 0; }
FAKE cuStreamEndCapture(void*, void** graph) {
  captured_stream = nullptr;
  return *graph = state.capture_status == 0 ? &state : nullptr, state.capture_status;
}
FAKE cuGraphDestroy(void*) { return 0; }
FAKE cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long) {
  return *exec = graph, ++state.graphs_held, 0;
}
FAKE cuGraphExecDestroy(void*) { return --state.graphs_held, 0; }
FAKE cuGraphLaunch(void*, void*) { return ++state.graph_starts, 0; }
FAKE cuStreamSynchronize(void*) { return ++state.synchronisations, 0; }
FAKE cuStreamWaitEvent(void*, void*, unsigned) { return 0; }
FAKE cuModuleLoadData(void** module, const void* image) {
  constexpr int kNoBinary = 209;  // CUDA_ERROR_NO_BINARY_FOR_GPU
  if (state.modules_refused > 0) return --state.modules_refused, kNoBinary;
  state.last_module = *static_cast<const unsigned char*>(image);
  ++state.modules;
  return *module = &state, current == nullptr ? kInvalidContext : 0;
}
FAKE cuModuleUnload(void*) { return 0; }
FAKE cuModuleGetFunction(void** function, void*, const char* name) {
  const std::lock_guard lock(names_mutex);
  return *function = const_cast<char*>(names.insert(name).first->c_str()), 0;
}
FAKE cuFuncSetAttribute(void*, int, int) { return 0; }
FAKE cuLaunchKernel LAUNCH_PARAMETERS {
  if (current == nullptr) return kInvalidContext;
  if (is_captured(stream)) return state.launch_status;
  ++state.launches;
  if (auto* show = state.on_launch.load()) {
    show({static_cast<const char*>(function), {x, y, z}, threads, stream, parameters});
  }
  return state.launch_status;
}
FAKE cuEventCreate(void** event, unsigned) { return *event = &state, 0; }
FAKE cuEventDestroy_v2(void*) { return 0; }
FAKE cuEventRecord(void*, void*) { return ++state.events, 0; }
FAKE cuEventSynchronize(void*) { return ++state.synchronisations, 0; }
FAKE cuEventElapsedTime(float* milliseconds, void*, void*) { return *milliseconds = 1, 0; }
FAKE cuGetErrorName(int, const char** name) { return *name = "CUDA_ERROR_OF_PAPER", 0; }
FAKE cuGetErrorString(int, const char** text) { return *text = "as the test asked", 0; }
FAKE cuTensorMapEncodeTiled MAP_PARAMETERS {
  ++state.maps;
  std::uint64_t seen[7] = {address, extents[0], rank > 1 ? extents[1] : 1};
  std::copy_n(pitches, rank - 1, seen + 3);
  return std::memcpy(map, seen, sizeof seen), 0;
}
// The compiler looks for a debugger through it.
FAKE cuGetExportTable(const void** table, const void*) {
  constexpr int kNotFound = 500;
  return *table = nullptr, kNotFound;
}
