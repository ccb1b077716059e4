// A problem over a cache whose kernel is compiled, loaded and ready: starting it is nothing but its
// launches. The plans of a process are made once for each device and problem, and kept.
//
//   Result<const DecodePlan*, gemm::Failure> plan = decode_plans().plan(problem);
//   (*plan)->start({.q = ..., .k = ..., ..., .scale = 0.088F}, workspace, stream);
//
// The kernel's parameters are known by their names: q and o [B, S, H, D]; k and v [N, P, HK, D], which
// it reaches through tensor maps alone, so that they may lie anyhow; lengths [B] and page_table
// [B, PAGES] of s32; lse [B, H, S] and scale of f32; splits, a number of blocks.
#pragma once

#include <memory>

#include "attention/bound_kernel.h"
#include "attention/decode_choice.h"
#include "gemm/plans.h"

namespace kiln::attention {

// Errors: an address that the problem has and that is null or no multiple of 16 bytes (of 4, where
// numbers have as many), a table that it has not, a scale that is not more than 0 or not finite.
[[nodiscard]] Result<void> check(const DecodeProblem& problem, const DecodeOperands& operands);

class DecodePlan {
 public:
  // Compiles, on the device of this number. Errors: those of choose() and BoundKernel::make().
  static Result<std::unique_ptr<DecodePlan>, gemm::Failure> make(int device,
                                                                 const DecodeProblem& problem);

  [[nodiscard]] const DecodeChoice& choice() const { return choice_; }
  // As text(choice()).
  [[nodiscard]] const std::string& kernel_text() const { return kernel_text_; }

  // Calls that run at the same time need one each.
  [[nodiscard]] std::size_t workspace_bytes() const { return kernel_.workspace_bytes(); }

  // The operands pass check(), the workspace gemm::workspace_mistake(). Errors: what the driver says.
  // Allocates nothing unless it fails.
  [[nodiscard]] Result<void> start(const DecodeOperands& operands,
                                   runtime::cuda::DevicePtr workspace,
                                   runtime::cuda::Stream stream) const;

 private:
  DecodePlan(DecodeChoice choice, BoundKernel kernel);

  DecodeChoice choice_;
  std::string kernel_text_;
  BoundKernel kernel_;
};

using DecodePlans = gemm::Plans<DecodeProblem, DecodePlan>;

// The process's.
[[nodiscard]] DecodePlans& decode_plans();

}  // namespace kiln::attention
