// The part of a back end that keeps kernels on a device and starts them as often as wanted: what
// `bench`, `tune`, `cache` and the library need of it.
//
//   auto gpu = device().open(0);
//   auto kernels = device().load(*gpu, job);
//   runtime::Call call(*gpu, kernels->module, job.module, job.function, arguments);
//
// Buffers, calls and events are runtime's types: there is one family of devices so far.
#pragma once

#include "backends/backend.h"
#include "runtime/call.h"
#include "runtime/gpu.h"

namespace kiln::backends {

struct Device {
  // The machine's device of this number. Errors: those of runtime::Gpu::open.
  Result<runtime::Gpu> (*open)(int ordinal) = nullptr;
  // Emits, compiles through the cache and loads. Errors: those of runtime::load_kernels.
  Result<runtime::Kernels> (*load)(runtime::Gpu& gpu, const Job& job) = nullptr;
  // How long that takes with and without the cache.
  Result<runtime::LoadTimes> (*measure_loads)(runtime::Gpu& gpu, const Job& job) = nullptr;
  // Kernels that are text in the device's own language, as the checks of `bench` are, compiled through the cache; `name`
  // is what the compiler's messages call it. Errors: those of runtime::load_text.
  Result<runtime::DeviceModule> (*compile)(runtime::Gpu& gpu, const char* text,
                                           const char* name) = nullptr;
  // Into this cache what `load` would compile; needs no device.
  Result<runtime::Compiled> (*warm)(const Job& job, const runtime::Cache& cache) = nullptr;
};

// Of the back end that is measured.
[[nodiscard]] const Device& device();

// The machine's first device, in the words of a command that needs one.
[[nodiscard]] Result<runtime::Gpu> open_device();

// The architecture of the machine's first device, or null.
[[nodiscard]] const target::Arch* device_arch();

}  // namespace kiln::backends
