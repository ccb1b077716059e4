// The machine's GPU by the CUDA driver, which is opened when the program needs it: nothing is linked
// with CUDA. Its memory, streams and events are CUDA's own, so what other libraries of the program
// make with CUDA may be used too.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "kiln/host/device.h"

namespace kiln::host {

// KILN_HOST_CUDA(member, symbol, parameters)
#define KILN_HOST_CUDA_FUNCTIONS(KILN_HOST_CUDA)                                                \
  KILN_HOST_CUDA(init, "cuInit", (unsigned))                                                    \
  KILN_HOST_CUDA(device_count, "cuDeviceGetCount", (int*))                                      \
  KILN_HOST_CUDA(device_get, "cuDeviceGet", (int*, int))                                        \
  KILN_HOST_CUDA(device_attribute, "cuDeviceGetAttribute", (int*, int, int))                    \
  KILN_HOST_CUDA(context_retain, "cuDevicePrimaryCtxRetain", (void**, int))                     \
  KILN_HOST_CUDA(context_set, "cuCtxSetCurrent", (void*))                                       \
  KILN_HOST_CUDA(context_synchronize, "cuCtxSynchronize", ())                                   \
  KILN_HOST_CUDA(pointer_attribute, "cuPointerGetAttribute", (void*, int, std::uintptr_t))      \
  KILN_HOST_CUDA(memory_alloc, "cuMemAlloc_v2", (std::uintptr_t*, std::size_t))                 \
  KILN_HOST_CUDA(memory_alloc_managed, "cuMemAllocManaged",                                     \
                 (std::uintptr_t*, std::size_t, unsigned))                                      \
  KILN_HOST_CUDA(memory_free, "cuMemFree_v2", (std::uintptr_t))                                 \
  KILN_HOST_CUDA(host_alloc, "cuMemAllocHost_v2", (void**, std::size_t))                        \
  KILN_HOST_CUDA(host_free, "cuMemFreeHost", (void*))                                           \
  KILN_HOST_CUDA(copy, "cuMemcpyAsync", (std::uintptr_t, std::uintptr_t, std::size_t, Stream*)) \
  KILN_HOST_CUDA(set_bytes, "cuMemsetD8Async",                                                  \
                 (std::uintptr_t, unsigned char, std::size_t, Stream*))                         \
  KILN_HOST_CUDA(stream_create, "cuStreamCreate", (Stream**, unsigned))                         \
  KILN_HOST_CUDA(stream_destroy, "cuStreamDestroy_v2", (Stream*))                               \
  KILN_HOST_CUDA(stream_synchronize, "cuStreamSynchronize", (Stream*))                          \
  KILN_HOST_CUDA(event_create, "cuEventCreate", (Event**, unsigned))                            \
  KILN_HOST_CUDA(event_destroy, "cuEventDestroy_v2", (Event*))                                  \
  KILN_HOST_CUDA(event_record, "cuEventRecord", (Event*, Stream*))                              \
  KILN_HOST_CUDA(event_synchronize, "cuEventSynchronize", (Event*))                             \
  KILN_HOST_CUDA(event_elapsed, "cuEventElapsedTime", (float*, Event*, Event*))                 \
  KILN_HOST_CUDA(error_name, "cuGetErrorName", (int, const char**))                             \
  KILN_HOST_CUDA(error_string, "cuGetErrorString", (int, const char**))

struct Driver {
#define KILN_HOST_CUDA(member, symbol, parameters) int(*member) parameters = nullptr;
  KILN_HOST_CUDA_FUNCTIONS(KILN_HOST_CUDA)
#undef KILN_HOST_CUDA
};

// Finds the driver's functions; else says in `reason` why not.
inline bool open_driver(Driver& driver, std::string& reason) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* text = dlerror();
    reason = std::string("cannot open the CUDA driver: ") + (text != nullptr ? text : "");
    return false;
  }
#define KILN_HOST_CUDA(member, symbol, parameters)                                  \
  driver.member = reinterpret_cast<int(*) parameters>(dlsym(library, symbol));      \
  if (driver.member == nullptr) {                                                   \
    reason = std::string("the CUDA driver is too old: it has no `") + symbol + "`"; \
    return false;                                                                   \
  }
  KILN_HOST_CUDA_FUNCTIONS(KILN_HOST_CUDA)
#undef KILN_HOST_CUDA
  return true;
}

class GpuDevice final : public Device {
 public:
  // Null, with the reason, where there is no driver, no device, or one that cannot run `arch`.
  static GpuDevice* open(const char* arch, std::string& reason) {
    auto* gpu = new GpuDevice;
    if (open_driver(gpu->driver_, reason) && gpu->start(arch, reason)) return gpu;
    delete gpu;
    return nullptr;
  }

  bool is_simulated() const override { return false; }
  std::string error_text(int error) override {
    const char* name = nullptr;
    const char* text = nullptr;
    if (driver_.error_name(error, &name) != kFine || name == nullptr) return "unknown error";
    if (driver_.error_string(error, &text) != kFine || text == nullptr) return name;
    return std::string(name) + " (" + text + ")";
  }

  int count() override { return count_; }
  int current() override { return chosen(); }
  int choose(int number) override {
    if (number < 0 || number >= count_) return kInvalidDevice;
    chosen() = number;
    return enter();
  }

  void* allocate(std::size_t bytes) override {
    std::uintptr_t out = 0;
    const bool fine = enter() == kFine && driver_.memory_alloc(&out, at_least_one(bytes)) == kFine;
    return fine ? reinterpret_cast<void*>(out) : nullptr;
  }
  void* allocate_managed(std::size_t bytes) override {
    constexpr unsigned kByAll = 1;  // CU_MEM_ATTACH_GLOBAL
    std::uintptr_t out = 0;
    const bool fine = enter() == kFine &&
                      driver_.memory_alloc_managed(&out, at_least_one(bytes), kByAll) == kFine;
    return fine ? reinterpret_cast<void*>(out) : nullptr;
  }
  void* allocate_host(std::size_t bytes) override {
    void* out = nullptr;
    const bool fine = enter() == kFine && driver_.host_alloc(&out, at_least_one(bytes)) == kFine;
    return fine ? out : nullptr;
  }
  int release(void* data) override {
    if (data == nullptr) return kFine;
    const int error = enter();
    return error != kFine ? error : driver_.memory_free(address(data));
  }
  int release_host(void* data) override {
    if (data == nullptr) return kFine;
    const int error = enter();
    return error != kFine ? error : driver_.host_free(data);
  }

  std::string misplaced(Place place, std::size_t bytes) override {
    if (bytes == 0 || enter() != kFine) return "";
    const Is is = find(place.data);
    if (is == Is::kBoth || is == Is::kPinned) return "";
    if (is == Is::kHost) return place.on_device && !place.is_either ? "is memory of the host" : "";
    if (!place.on_device && !place.is_either) return "is memory of the device";
    std::uintptr_t begin = 0;
    std::size_t size = 0;
    const bool known =
        driver_.pointer_attribute(&begin, kRangeBegin, address(place.data)) == kFine &&
        driver_.pointer_attribute(&size, kRangeBytes, address(place.data)) == kFine;
    const bool fits = !known || bytes <= begin + size - address(place.data);
    return fits ? "" : "ends before " + std::to_string(bytes) + " bytes";
  }
  int copy(Place to, Place from, std::size_t bytes, Stream* stream) override {
    const int error = enter();
    if (error != kFine || bytes == 0) return error;
    return driver_.copy(address(to.data), address(from.data), bytes, stream);
  }
  int fill(void* to, int value, std::size_t bytes, Stream* stream) override {
    const int error = enter();
    if (error != kFine || bytes == 0) return error;
    return driver_.set_bytes(address(to), static_cast<unsigned char>(value), bytes, stream);
  }

  int synchronise() override {
    const int error = enter();
    return error != kFine ? error : driver_.context_synchronize();
  }
  Stream* create_stream() override {
    Stream* out = nullptr;
    return enter() == kFine && driver_.stream_create(&out, 0) == kFine ? out : nullptr;
  }
  int destroy(Stream* stream) override { return driver_.stream_destroy(stream); }
  int synchronise(Stream* stream) override {
    const int error = enter();
    return error != kFine ? error : driver_.stream_synchronize(stream);
  }

  Event* create_event() override {
    Event* out = nullptr;
    return enter() == kFine && driver_.event_create(&out, 0) == kFine ? out : nullptr;
  }
  int destroy(Event* event) override { return driver_.event_destroy(event); }
  int record(Event* event, Stream* stream) override {
    const int error = enter();
    return error != kFine ? error : driver_.event_record(event, stream);
  }
  int synchronise(Event* event) override { return driver_.event_synchronize(event); }
  int milliseconds(float& out, Event* begin, Event* end) override {
    return driver_.event_elapsed(&out, begin, end);
  }

 private:
  // CUdevice_attribute, CUpointer_attribute and CUmemorytype.
  static constexpr int kMajor = 75;
  static constexpr int kMinor = 76;
  static constexpr int kMemoryType = 2;
  static constexpr int kIsManaged = 8;
  static constexpr int kRangeBegin = 11;
  static constexpr int kRangeBytes = 12;
  static constexpr unsigned kOfHost = 1;
  static constexpr int kDevicesMax = 64;

  static std::size_t at_least_one(std::size_t bytes) { return bytes == 0 ? 1 : bytes; }
  static std::uintptr_t address(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }
  // The thread's device.
  static int& chosen() {
    static thread_local int number = 0;
    return number;
  }

  bool start(const char* arch, std::string& reason) {
    int error = driver_.init(0);
    if (error == kFine) error = driver_.device_count(&count_);
    if (error != kFine) {
      reason = "cannot start the CUDA driver: " + error_text(error);
      return false;
    }
    if (count_ > kDevicesMax) count_ = kDevicesMax;
    int handle = 0;
    int major = 0;
    int minor = 0;
    if (count_ == 0 || driver_.device_get(&handle, 0) != kFine ||
        driver_.device_attribute(&major, kMajor, handle) != kFine ||
        driver_.device_attribute(&minor, kMinor, handle) != kFine) {
      reason = "the CUDA driver has no device";
      return false;
    }
    const int needed = std::atoi(arch + std::string("sm_").size());
    if (10 * major + minor < needed) {
      reason = std::string("the program is for ") + arch + ", the GPU is sm_" +
               std::to_string(10 * major + minor);
      return false;
    }
    for (int i = 0; i < count_; ++i) {
      if (driver_.device_get(&devices_[i], i) != kFine) count_ = i;
    }
    return true;
  }

  // Makes the primary context of the thread's device the thread's.
  int enter() {
    static thread_local void* contexts[kDevicesMax] = {};
    void*& context = contexts[chosen()];
    const int error =
        context == nullptr ? driver_.context_retain(&context, devices_[chosen()]) : kFine;
    return error != kFine ? error : driver_.context_set(context);
  }

  enum class Is { kHost, kPinned, kDevice, kBoth };
  Is find(const void* data) {
    unsigned type = 0;
    if (driver_.pointer_attribute(&type, kMemoryType, address(data)) != kFine) return Is::kHost;
    unsigned managed = 0;
    if (driver_.pointer_attribute(&managed, kIsManaged, address(data)) == kFine && managed != 0)
      return Is::kBoth;
    return type == kOfHost ? Is::kPinned : type == 0 ? Is::kHost : Is::kDevice;
  }

  Driver driver_;
  int count_ = 0;
  int devices_[kDevicesMax] = {};
};

}  // namespace kiln::host
