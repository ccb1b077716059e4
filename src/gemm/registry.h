// The plans of a process: one for each device and problem, made once and kept.
//
//   Result<Registry::Entry, Failure> entry = registry().plan(problem);
//   entry->plan->start(operands, workspace, stream);
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

// Safe to use from several threads.
class Registry {
 public:
  // The plan for the problem on the calling thread's device (the first one if it has none), made if
  // need be.
  [[nodiscard]] Result<const Plan*, Failure> plan(const Problem& problem);
  // The plan for the problem if there is one already, else null.
  [[nodiscard]] Result<const Plan*, Failure> find(const Problem& problem);
  // Whether the stream's work is being captured. Errors: no driver.
  [[nodiscard]] Result<bool, Failure> is_capturing(runtime::cuda::Stream stream);

 private:
  using Key = std::pair<int, Problem>;
  Result<Key, Failure> key_of(const Problem& problem);
  Result<const runtime::cuda::Api*, Failure> driver();
  Result<std::unique_ptr<Plan>, Failure> make(const Key& key);
  Result<std::shared_ptr<const Program>, Failure> program(int device, const runtime::Gpu& gpu,
                                                          const Choice& choice);
  Result<std::shared_ptr<const LoadedKernel>, Failure> kernel(
      int device, runtime::Gpu& gpu, const Choice& choice, std::shared_ptr<const Program> program);

  runtime::OnceMap<int, runtime::cuda::Api, Failure> driver_;  // one, with key 0
  runtime::OnceMap<int, runtime::Gpu, Failure> gpus_;          // by number
  runtime::OnceMap<Key, Plan, Failure> plans_;
  // By device and text(choice): problems with equal choices share a kernel.
  using KernelKey = std::pair<int, std::string>;
  runtime::OnceMap<KernelKey, std::shared_ptr<const Program>, Failure> programs_;
  runtime::OnceMap<KernelKey, std::shared_ptr<const LoadedKernel>, Failure> kernels_;
};

// The process's one. It is never destroyed: at exit the driver may be gone before it.
[[nodiscard]] Registry& registry();

}  // namespace kiln::gemm
