// A problem over a cache whose kernel is compiled, loaded and ready: starting it is nothing but its
// launches. The plans of a process are made once for each device and problem, and kept.
//
//   Result<const DecodePlan*, gemm::Failure> plan = decode_plans().plan(problem);
//   (*plan)->start({.q = ..., .k = ..., ..., .scale = 0.088F}, stream, workspace);
//
// The kernel's parameters are known by their names: q and o [B, S, H, D]; k and v [N, P, HK, D], which
// it reaches through tensor maps alone, so that they may lie anyhow; lengths [B] and page_table
// [B, PAGES] of s32; lse [B, H, S] and scale of f32; splits, a number of blocks.
#pragma once

#include <memory>
#include <vector>

#include "attention/decode_choice.h"
#include "gemm/library.h"
#include "runtime/call_plan.h"

namespace kiln::attention {

// Errors: an address that the problem has and that is null or no multiple of 16 bytes (of 4, where
// numbers have as many), a table that it has not, a scale that is not more than 0 or not finite.
[[nodiscard]] Result<void> check(const DecodeProblem& problem, const DecodeOperands& operands);

class DecodePlan {
 public:
  // Compiles, on the device of this number. Errors: those of choose(); a kernel that does not follow
  // the names; no NVRTC; what the driver says.
  static Result<std::unique_ptr<DecodePlan>, gemm::Failure> make(int device,
                                                                 const DecodeProblem& problem);

  [[nodiscard]] const DecodeChoice& choice() const { return choice_; }
  // As text(choice()).
  [[nodiscard]] const std::string& kernel_text() const { return kernel_text_; }

  // Calls that run at the same time need one each.
  [[nodiscard]] std::size_t workspace_bytes() const { return call_->workspace_bytes(); }

  // The operands pass check(), the workspace gemm::workspace_mistake(). Errors: what the driver says.
  // Allocates nothing unless it fails.
  [[nodiscard]] Result<void> start(const DecodeOperands& operands, runtime::cuda::Stream stream,
                                   runtime::cuda::DevicePtr workspace) const;

 private:
  DecodePlan() = default;

  DecodeChoice choice_;
  std::string kernel_text_;
  std::shared_ptr<const gemm::LoadedKernel> kernel_;
  std::unique_ptr<runtime::CallPlan> call_;
  std::vector<std::size_t> roles_;  // by parameter: which of the names
};

// Safe to use from several threads.
class DecodePlans {
 public:
  // The plan for the problem on the calling thread's device, made if need be.
  [[nodiscard]] Result<const DecodePlan*, gemm::Failure> plan(const DecodeProblem& problem);
  // The plan for the problem if there is one already, else null.
  [[nodiscard]] Result<const DecodePlan*, gemm::Failure> find(const DecodeProblem& problem);

 private:
  using Key = std::pair<int, DecodeProblem>;
  static Result<Key, gemm::Failure> key_of(const DecodeProblem& problem);

  runtime::OnceMap<Key, DecodePlan, gemm::Failure> plans_;
};

// The process's. They are never destroyed: at exit the driver may be gone before them.
[[nodiscard]] DecodePlans& decode_plans();

}  // namespace kiln::attention
