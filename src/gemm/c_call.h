// What the functions of kiln/gemm.h, kiln/attention.h and kiln/attention_decode.h do alike: what a call
// with a problem does over the plans of such problems, and how each ends.
#pragma once

#include <string>

#include "gemm/library.h"
#include "gemm/plans.h"
#include "gemm/recipe.h"
#include "kiln/status.h"
#include "support/format.h"
#include "support/last_error.h"

namespace kiln::gemm {

inline kiln_status fail(kiln_status status, std::string text) {
  last_error() = std::move(text);
  return status;
}

inline kiln_status fail(const Failure& failure) {
  const auto status = [&] {
    switch (failure.kind) {
      case FailureKind::kInvalid: return KILN_INVALID;
      case FailureKind::kUnsupported: return KILN_UNSUPPORTED;
      case FailureKind::kNoGpu: return KILN_NO_GPU;
      case FailureKind::kNoCompiler: return KILN_NO_COMPILER;
      case FailureKind::kDevice: return KILN_DEVICE;
    }
    return KILN_DEVICE;
  };
  return fail(status(), failure.error.text());
}

inline runtime::cuda::DevicePtr address_of(const void* pointer) {
  return static_cast<runtime::cuda::DevicePtr>(reinterpret_cast<std::uintptr_t>(pointer));
}

// What the caller gives of device memory.
struct Workspace {
  runtime::cuda::DevicePtr address = 0;
  std::size_t bytes = 0;
};

// `workspace_bytes` may be null.
template <class Problem, class Plan>
kiln_status prepare(Plans<Problem, Plan>& plans, const Result<Problem, Failure>& problem,
                    std::size_t* workspace_bytes) {
  if (!problem) return fail(problem.error());
  const auto plan = plans.plan(*problem);
  if (!plan) return fail(plan.error());
  if (workspace_bytes != nullptr) *workspace_bytes = (*plan)->workspace_bytes();
  return KILN_OK;
}

// What computes the problem, or null. `status` may be null.
template <class Problem, class Plan>
const char* kernel_text(Plans<Problem, Plan>& plans, const Result<Problem, Failure>& problem,
                        kiln_status* status) {
  const auto plan =
      problem ? plans.plan(*problem) : Result<const Plan*, Failure>(Unexpected{problem.error()});
  const kiln_status code = plan ? KILN_OK : fail(plan.error());
  if (status != nullptr) *status = code;
  return plan ? (*plan)->kernel_text().c_str() : nullptr;
}

// The plan of a problem; made if need be, but not while the stream is captured: then it may be null.
template <class Problem, class Plan>
Result<const Plan*, Failure> ready_plan(Plans<Problem, Plan>& plans, const Problem& problem,
                                        runtime::cuda::Stream stream, bool& captured) {
  auto found = plans.find(problem);
  if (!found || *found != nullptr) return found;
  const auto capturing = library().is_capturing(stream);
  captured = capturing && *capturing;
  return captured ? found : plans.plan(problem);
}

// The operands are checked already.
template <class Problem, class Plan, class Operands>
kiln_status start(Plans<Problem, Plan>& plans, const Problem& problem, const Operands& operands,
                  Workspace workspace, void* cuda_stream) {
  const auto stream = static_cast<runtime::cuda::Stream>(cuda_stream);
  bool captured = false;
  const auto plan = ready_plan(plans, problem, stream, captured);
  if (!plan) return fail(plan.error());
  if (captured) {
    return fail(KILN_NOT_PREPARED,
                format("{} was not prepared before its stream was captured", text(problem)));
  }
  std::string mistake =
      workspace_mistake((*plan)->workspace_bytes(), workspace.address, workspace.bytes);
  if (!mistake.empty()) return fail(KILN_WORKSPACE, std::move(mistake));
  const auto started = (*plan)->start(operands, workspace.address, stream);
  return started ? KILN_OK : fail(KILN_DEVICE, started.error().text());
}

}  // namespace kiln::gemm
