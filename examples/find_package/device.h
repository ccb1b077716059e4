// Memory of the first GPU, through the CUDA driver, which is opened at run time so that this
// example builds without a CUDA toolkit. A program that has the CUDA runtime uses cudaMalloc and
// cudaMemcpy.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <string>

class Device {
 public:
  // After it, error() is empty or says why there is no device.
  Device() {
    library_ = dlopen("libcuda.so.1", RTLD_NOW);
    if (library_ == nullptr) {
      error_ = "no CUDA driver";
      return;
    }
    int device = 0;
    void* context = nullptr;
    if (call("cuInit", 0U) != 0 || call("cuDeviceGet", &device, 0) != 0 ||
        call("cuDevicePrimaryCtxRetain", &context, device) != 0 ||
        call("cuCtxSetCurrent", context) != 0) {
      error_ = "no GPU that works";
    }
  }

  const std::string& error() const { return error_; }

  void* allocate(std::size_t bytes) {
    void* memory = nullptr;
    if (call("cuMemAlloc_v2", &memory, bytes) != 0) error_ = "out of memory";
    return memory;
  }
  void copy_in(void* to, const void* from, std::size_t bytes) {
    if (call("cuMemcpyHtoD_v2", to, from, bytes) != 0) error_ = "cannot copy";
  }
  // Waits for what was started on the default stream.
  void copy_out(void* to, const void* from, std::size_t bytes) {
    if (call("cuMemcpyDtoH_v2", to, from, bytes) != 0) error_ = "cannot copy back";
  }

 private:
  template <class... Args>
  int call(const char* name, Args... args) {
    auto* function = reinterpret_cast<int (*)(Args...)>(dlsym(library_, name));
    return function == nullptr ? -1 : function(args...);
  }

  void* library_ = nullptr;
  std::string error_;
};
