// The machine's GPUs and what is loaded on them, for the process: a kernel's machine code is loaded
// once, however many programs and plans use it, and stays. Graphs may still hold it, and a text that
// is compiled again finds it.
#pragma once

#include <cstdint>
#include <utility>

#include "io/program.h"
#include "kiln/status.h"
#include "runtime/call.h"
#include "runtime/gpu.h"
#include "runtime/once_map.h"

namespace kiln::api {

struct Failure {
  kiln_status status = KILN_DEVICE;
  Error error;
};

// Safe to use from several threads.
class Devices {
 public:
  // The number of the calling thread's device, of its context; the first one without a context.
  [[nodiscard]] Result<int, Failure> current();
  // The thread's context stays as it is.
  [[nodiscard]] Result<runtime::Gpu*, Failure> gpu(int number);
  // The kernels of a program's function.
  [[nodiscard]] Result<const runtime::Kernels*, Failure> kernels(int number,
                                                                 const io::Program& program,
                                                                 const ir::Function& function);
  // Errors: no driver.
  [[nodiscard]] Result<const runtime::cuda::Api*, Failure> driver();

 private:
  runtime::OnceMap<int, runtime::cuda::Api, Failure> driver_;  // one, with key 0
  runtime::OnceMap<int, runtime::Gpu, Failure> gpus_;
  using Key = std::pair<int, std::string>;  // the device, and a digest of what was compiled
  runtime::OnceMap<Key, runtime::Kernels, Failure> kernels_;
};

// The process's. They are never destroyed: at exit the driver may be gone before them.
[[nodiscard]] Devices& devices();

}  // namespace kiln::api
