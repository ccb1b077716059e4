// A problem whose kernel is compiled, loaded and ready: starting it is nothing but its launch. The
// plans of a process are made once for each device and problem, and kept.
//
//   Result<const Plan*, gemm::Failure> plan = plans().plan(problem);
//   (*plan)->start({.q = ..., .k = ..., .v = ..., .o = ..., .lse = ..., .scale = 0.088F}, 0, stream);
//
// The kernel's parameters are known by their names: q, k, v, o, dout, dq, dk, dv [B, S or T, H or HK,
// D], which it reaches through tensor maps alone, so that they may lie anyhow; lse [B, H, S] and
// scale, of f32; where the kernel has them soft_cap, of f32, and the integers left and right. Of
// sequences of any lengths no tensor has a B, and cu_seqlens_q and cu_seqlens_k are s32 [N], N one more
// than the sequences. Of tensors of 8 bits it takes vt [B, HK, D, TP], the values transposed with the keys filled up to a
// multiple of 16, which another kernel makes of v, and q_scale, k_scale and v_scale, f32 [B, HK].
#pragma once

#include <memory>
#include <optional>

#include "attention/bound_kernel.h"
#include "attention/problem.h"
#include "gemm/plans.h"

namespace kiln::attention {

// Errors: an address that the problem has and that is null or no multiple of 16 bytes (lse: 4), a
// scale that is not more than 0 or not finite, one that is not finite over the soft cap, starts of
// sequences where the problem has none.
[[nodiscard]] Result<void> check(const Problem& problem, const Operands& operands);

class Plan {
 public:
  // Compiles, on the device of this number. Errors: those of choose() and BoundKernel::make().
  static Result<std::unique_ptr<Plan>, gemm::Failure> make(int device, const Problem& problem);
  // The same with another kernel or other defines: what a tuner measures.
  static Result<std::unique_ptr<Plan>, gemm::Failure> make(int device, const Problem& problem,
                                                           const gemm::Choice& choice);

  [[nodiscard]] const gemm::Choice& choice() const { return choice_; }
  // As text(choice()).
  [[nodiscard]] const std::string& kernel_text() const { return kernel_text_; }
  [[nodiscard]] const gemm::LoadedKernel& kernel() const { return kernel_.loaded(); }

  // Of a problem that is backward or balanced, or of 8 bits; else 0. Calls that run at the same time need one each.
  [[nodiscard]] std::size_t workspace_bytes() const {
    return (before_ ? before_->bytes() : 0) + kernel_.workspace_bytes();
  }

  // The operands pass check(), the workspace gemm::workspace_mistake(). Errors: what the driver says.
  // Allocates nothing unless it fails.
  [[nodiscard]] Result<void> start(const Operands& operands, runtime::cuda::DevicePtr workspace,
                                   runtime::cuda::Stream stream) const;

 private:
  // The problem's, which the kernel is given with each start.
  struct Numbers {
    float soft_cap = 0;
    std::int64_t left = -1;
    std::int64_t right = -1;
  };

  // What goes in front of a kernel of 8 bits: values transposed to the beginning of the workspace, and behind them
  // ones, for factors that are not given.
  struct Before {
    const runtime::Gpu* gpu;
    BoundKernel transposition;
    std::size_t values_bytes = 0;
    std::size_t factors = 0;
    std::size_t factors_bytes = 0;

    [[nodiscard]] std::size_t bytes() const { return values_bytes + factors_bytes; }
    // The operands with all factors.
    [[nodiscard]] Result<Operands> start(const Operands& operands,
                                         runtime::cuda::DevicePtr workspace,
                                         runtime::cuda::Stream stream) const;
    [[nodiscard]] Result<void> fill(runtime::cuda::DevicePtr ones,
                                    runtime::cuda::Stream stream) const;
  };

  Plan(const Problem& problem, gemm::Choice choice, BoundKernel kernel);

  gemm::Choice choice_;
  std::string kernel_text_;
  BoundKernel kernel_;
  std::optional<Before> before_;  // of tensors of 8 bits
  Numbers numbers_;
};

using Plans = gemm::Plans<Problem, Plan>;

// The process's.
[[nodiscard]] Plans& plans();

}  // namespace kiln::attention
