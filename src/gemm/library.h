// What of the library is on the process's GPUs: the driver, devices, and kernels, each made once and
// kept. Products of matrices and attention have theirs from here.
//
//   Result<Gpu*, Failure> gpu = library().gpu(*library().current_device());
//   Result<std::shared_ptr<const LoadedKernel>, Failure> kernel =
//       library().kernel(device, **gpu, choice, program);
#pragma once

#include <utility>

#include "gemm/plan.h"
#include "runtime/once_map.h"

namespace kiln::gemm {

enum class FailureKind : std::uint8_t { kInvalid, kUnsupported, kNoGpu, kNoCompiler, kDevice };

struct Failure {
  FailureKind kind = FailureKind::kDevice;
  Error error;
};

[[nodiscard]] inline Unexpected<Failure> failed(FailureKind kind, const Error& error) {
  return Unexpected{Failure{kind, error}};
}

// What kept a plan from being made, when it was not the problem.
[[nodiscard]] FailureKind kind_of_making();

// Safe to use from several threads.
class Library {
 public:
  // That of the calling thread's context; the first one without a context. Errors: no driver.
  [[nodiscard]] Result<int, Failure> current_device();
  [[nodiscard]] Result<runtime::Gpu*, Failure> gpu(int device);
  // The choice's kernel for the GPU's architecture, decided.
  [[nodiscard]] Result<std::shared_ptr<const Program>, Failure> program(int device,
                                                                        const runtime::Gpu& gpu,
                                                                        const Choice& choice);
  // The same, compiled and loaded.
  [[nodiscard]] Result<std::shared_ptr<const LoadedKernel>, Failure> kernel(
      int device, runtime::Gpu& gpu, const Choice& choice, std::shared_ptr<const Program> program);
  // Whether the stream's work is being captured. Errors: no driver.
  [[nodiscard]] Result<bool, Failure> is_capturing(runtime::cuda::Stream stream);

 private:
  Result<const runtime::cuda::Api*, Failure> driver();

  runtime::OnceMap<int, runtime::cuda::Api, Failure> driver_;  // one, with key 0
  runtime::OnceMap<int, runtime::Gpu, Failure> gpus_;          // by number
  // By device and text(choice): problems with equal choices share a kernel.
  using KernelKey = std::pair<int, std::string>;
  runtime::OnceMap<KernelKey, std::shared_ptr<const Program>, Failure> programs_;
  runtime::OnceMap<KernelKey, std::shared_ptr<const LoadedKernel>, Failure> kernels_;
};

// The process's one. It is never destroyed: at exit the driver may be gone before it.
[[nodiscard]] Library& library();

}  // namespace kiln::gemm
