// The functions of kiln/attention.h, over the process's plans.
#define KILN_GEMM_C_ONLY
#include "kiln/attention.h"

#include <string>

#include "attention/given.h"
#include "attention/plan.h"
#include "gemm/c_call.h"
#include "support/format.h"

namespace {

using kiln::format;
using kiln::Result;
using kiln::Unexpected;
using kiln::attention::not_attention;
using kiln::attention::Operands;
using kiln::attention::plans;
using kiln::attention::Problem;
using kiln::attention::scale_of;
using kiln::attention::spacing_of;
using kiln::gemm::address_of;
using kiln::gemm::fail;
using kiln::gemm::Failure;
using kiln::gemm::Workspace;

Result<Problem, Failure> problem_of(const kiln_attention_problem* given) {
  if (given == nullptr) return not_attention("the problem is null");
  const auto dtype = kiln::attention::dtype_of(given->type);
  if (!dtype) return Unexpected{dtype.error()};
  const auto causal = kiln::attention::flag_of("causal", given->causal);
  if (!causal) return Unexpected{causal.error()};
  const auto window = kiln::attention::flag_of("window", given->window);
  if (!window) return Unexpected{window.error()};
  const auto balanced = kiln::attention::flag_of("balanced", given->balanced);
  if (!balanced) return Unexpected{balanced.error()};
  const bool windowed = *window;
  if (!windowed && (given->left != 0 || given->right != 0)) {
    return not_attention(
        format("{} keys to the left and {} to the right without a window: it is 1 "
               "where they count",
               given->left, given->right));
  }
  return Problem{.dtype = *dtype,
                 .batch = given->batch == 0 ? 1 : given->batch,
                 .queries = given->queries,
                 .keys = given->keys == 0 ? given->queries : given->keys,
                 .heads = given->heads,
                 .key_heads = given->key_heads == 0 ? given->heads : given->key_heads,
                 .depth = given->depth,
                 .causal = *causal,
                 .value_depth = given->value_depth,
                 .left = windowed ? given->left : -1,
                 .right = windowed ? given->right : -1,
                 .soft_cap = given->soft_cap,
                 .sequences = given->sequences,
                 .balanced = *balanced,
                 .q = spacing_of(given->q),
                 .k = spacing_of(given->k),
                 .v = spacing_of(given->v),
                 .o = spacing_of(given->o)};
}

Result<Problem, Failure> problem_of(const kiln_attention_backward_problem* given) {
  auto out = problem_of(given == nullptr ? nullptr : &given->forward);
  if (!out) return out;
  out->backward = true;
  out->dout = spacing_of(given->dout);
  out->dq = spacing_of(given->dq);
  out->dk = spacing_of(given->dk);
  out->dv = spacing_of(given->dv);
  out->any_order = given->any_order != 0;
  return out;
}

Operands operands_of(const kiln_attention_operands& given, const Problem& problem) {
  return {.q = address_of(given.q),
          .k = address_of(given.k),
          .v = address_of(given.v),
          .o = address_of(given.o),
          .lse = address_of(given.lse),
          .cu_seqlens_q = address_of(given.cu_seqlens_q),
          .cu_seqlens_k = address_of(given.cu_seqlens_k),
          .q_scale = address_of(given.q_scale),
          .k_scale = address_of(given.k_scale),
          .v_scale = address_of(given.v_scale),
          .scale = scale_of(given.scale, problem.depth)};
}

Operands operands_of(const kiln_attention_backward_operands& given, const Problem& problem) {
  return {.q = address_of(given.q),
          .k = address_of(given.k),
          .v = address_of(given.v),
          .o = address_of(given.o),
          .lse = address_of(given.lse),
          .dout = address_of(given.dout),
          .dq = address_of(given.dq),
          .dk = address_of(given.dk),
          .dv = address_of(given.dv),
          .cu_seqlens_q = address_of(given.cu_seqlens_q),
          .cu_seqlens_k = address_of(given.cu_seqlens_k),
          .scale = scale_of(given.scale, problem.depth)};
}

Workspace workspace_of(const kiln_attention_operands* operands) {
  if (operands == nullptr) return {};
  return {address_of(operands->workspace), operands->workspace_bytes};
}

template <class GivenProblem, class GivenOperands>
kiln_status start(const GivenProblem* problem, const GivenOperands* operands, Workspace workspace,
                  void* cuda_stream) {
  const auto whole = problem_of(problem);
  if (!whole) return fail(whole.error());
  if (operands == nullptr) return fail(KILN_INVALID, "the operands are null");
  const Operands given = operands_of(*operands, *whole);
  if (auto fits = kiln::attention::check(*whole, given); !fits) {
    return fail(KILN_INVALID, fits.error().text());
  }
  return kiln::gemm::start(plans(), *whole, given, workspace, cuda_stream);
}

}  // namespace

extern "C" {

kiln_status kiln_attention_prepare(const kiln_attention_problem* problem) {
  return kiln::gemm::prepare(plans(), problem_of(problem), nullptr);
}

kiln_status kiln_attention_workspace(const kiln_attention_problem* problem,
                                     size_t* workspace_bytes) {
  return kiln::gemm::prepare(plans(), problem_of(problem), workspace_bytes);
}

kiln_status kiln_attention(const kiln_attention_problem* problem,
                           const kiln_attention_operands* operands, void* cuda_stream) {
  return start(problem, operands, workspace_of(operands), cuda_stream);
}

const char* kiln_attention_kernel(const kiln_attention_problem* problem, kiln_status* status) {
  return kiln::gemm::kernel_text(plans(), problem_of(problem), status);
}

kiln_status kiln_attention_backward_prepare(const kiln_attention_backward_problem* problem,
                                            size_t* workspace_bytes) {
  return kiln::gemm::prepare(plans(), problem_of(problem), workspace_bytes);
}

kiln_status kiln_attention_backward(const kiln_attention_backward_problem* problem,
                                    const kiln_attention_backward_operands* operands,
                                    void* workspace, size_t workspace_bytes, void* cuda_stream) {
  return start(problem, operands, {address_of(workspace), workspace_bytes}, cuda_stream);
}

const char* kiln_attention_backward_kernel(const kiln_attention_backward_problem* problem,
                                           kiln_status* status) {
  return kiln::gemm::kernel_text(plans(), problem_of(problem), status);
}

}  // extern "C"
