// The functions of kiln/attention.h, over the process's plans.
#define KILN_GEMM_C_ONLY
#include "kiln/attention.h"

#include <cmath>
#include <string>

#include "attention/plan.h"
#include "gemm/ended.h"
#include "gemm/recipe.h"
#include "support/format.h"

namespace {

using kiln::Error;
using kiln::format;
using kiln::Result;
using kiln::Unexpected;
using kiln::attention::Operands;
using kiln::attention::Plan;
using kiln::attention::Problem;
using kiln::attention::Spacing;
using kiln::gemm::fail;
using kiln::gemm::Failure;
using kiln::gemm::FailureKind;
using kiln::runtime::cuda::DevicePtr;

Unexpected<Failure> not_attention(std::string reason) {
  return kiln::gemm::failed(FailureKind::kInvalid, Error{"not attention", {}, std::move(reason)});
}

Spacing spacing_of(const kiln_attention_spacing& given) {
  return {given.batch, given.row, given.head};
}

Result<Problem, Failure> problem_of(const kiln_attention_problem* given) {
  if (given == nullptr) return not_attention("the problem is null");
  if (given->type != KILN_BF16 && given->type != KILN_F16) {
    return not_attention(
        format("type {} of its tensors: KILN_BF16, {}, and KILN_F16, {}, are possible", given->type,
               static_cast<int>(KILN_BF16), static_cast<int>(KILN_F16)));
  }
  if (given->causal != 0 && given->causal != 1) {
    return not_attention(format("causal is {}, 0 and 1 are possible", given->causal));
  }
  if (given->window != 0 && given->window != 1) {
    return not_attention(format("window is {}, 0 and 1 are possible", given->window));
  }
  const bool windowed = given->window != 0;
  if (!windowed && (given->left != 0 || given->right != 0)) {
    return not_attention(
        format("{} keys to the left and {} to the right without a window: it is 1 "
               "where they count",
               given->left, given->right));
  }
  return Problem{.dtype = given->type == KILN_BF16 ? kiln::DType::kBF16 : kiln::DType::kF16,
                 .batch = given->batch == 0 ? 1 : given->batch,
                 .queries = given->queries,
                 .keys = given->keys == 0 ? given->queries : given->keys,
                 .heads = given->heads,
                 .key_heads = given->key_heads == 0 ? given->heads : given->key_heads,
                 .depth = given->depth,
                 .causal = given->causal != 0,
                 .value_depth = given->value_depth,
                 .left = windowed ? given->left : -1,
                 .right = windowed ? given->right : -1,
                 .soft_cap = given->soft_cap,
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
  return out;
}

DevicePtr address_of(const void* pointer) {
  return static_cast<DevicePtr>(reinterpret_cast<std::uintptr_t>(pointer));
}

float scale_of(float given, const Problem& problem) {
  return given != 0 ? given : static_cast<float>(1 / std::sqrt(static_cast<double>(problem.depth)));
}

Operands operands_of(const kiln_attention_operands& given, const Problem& problem) {
  return {.q = address_of(given.q),
          .k = address_of(given.k),
          .v = address_of(given.v),
          .o = address_of(given.o),
          .lse = address_of(given.lse),
          .scale = scale_of(given.scale, problem)};
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
          .scale = scale_of(given.scale, problem)};
}

template <class GivenProblem>
Result<const Plan*, Failure> made_plan(const GivenProblem* problem) {
  const auto whole = problem_of(problem);
  if (!whole) return Unexpected{whole.error()};
  return kiln::attention::plans().plan(*whole);
}

// The plan of a problem that may have to be compiled, which a captured stream does not stand.
Result<const Plan*, Failure> ready_plan(const Problem& problem, kiln::runtime::cuda::Stream stream,
                                        bool& captured) {
  auto found = kiln::attention::plans().find(problem);
  if (!found || *found != nullptr) return found;
  const auto capturing = kiln::gemm::library().is_capturing(stream);
  captured = capturing && *capturing;
  return captured ? found : kiln::attention::plans().plan(problem);
}

struct Space {
  DevicePtr address = 0;
  std::size_t bytes = 0;
};

template <class GivenProblem, class GivenOperands>
kiln_status start(const GivenProblem* problem, const GivenOperands* operands, Space workspace,
                  void* cuda_stream) {
  const auto whole = problem_of(problem);
  if (!whole) return fail(whole.error());
  if (operands == nullptr) return fail(KILN_INVALID, "the operands are null");
  const Operands given = operands_of(*operands, *whole);
  if (auto fits = kiln::attention::check(*whole, given); !fits) {
    return fail(KILN_INVALID, fits.error().text());
  }
  const auto stream = static_cast<kiln::runtime::cuda::Stream>(cuda_stream);
  bool captured = false;
  const auto plan = ready_plan(*whole, stream, captured);
  if (!plan) return fail(plan.error());
  if (captured) {
    return fail(KILN_NOT_PREPARED,
                format("{} was not prepared before its stream was captured", text(*whole)));
  }
  std::string mistake =
      kiln::gemm::workspace_mistake((*plan)->workspace_bytes(), workspace.address, workspace.bytes);
  if (!mistake.empty()) return fail(KILN_WORKSPACE, std::move(mistake));
  const auto started = (*plan)->start(given, stream, workspace.address);
  return started ? KILN_OK : fail(KILN_DEVICE, started.error().text());
}

template <class GivenProblem>
const char* kernel_of(const GivenProblem* problem, kiln_status* status) {
  const auto plan = made_plan(problem);
  const kiln_status code = plan ? KILN_OK : fail(plan.error());
  if (status != nullptr) *status = code;
  return plan ? (*plan)->kernel_text().c_str() : nullptr;
}

}  // namespace

extern "C" {

kiln_status kiln_attention_prepare(const kiln_attention_problem* problem) {
  const auto plan = made_plan(problem);
  return plan ? KILN_OK : fail(plan.error());
}

kiln_status kiln_attention(const kiln_attention_problem* problem,
                           const kiln_attention_operands* operands, void* cuda_stream) {
  return start(problem, operands, {}, cuda_stream);
}

const char* kiln_attention_kernel(const kiln_attention_problem* problem, kiln_status* status) {
  return kernel_of(problem, status);
}

kiln_status kiln_attention_backward_prepare(const kiln_attention_backward_problem* problem,
                                            size_t* workspace_bytes) {
  const auto plan = made_plan(problem);
  if (!plan) return fail(plan.error());
  if (workspace_bytes != nullptr) *workspace_bytes = (*plan)->workspace_bytes();
  return KILN_OK;
}

kiln_status kiln_attention_backward(const kiln_attention_backward_problem* problem,
                                    const kiln_attention_backward_operands* operands,
                                    void* workspace, size_t workspace_bytes, void* cuda_stream) {
  return start(problem, operands, {address_of(workspace), workspace_bytes}, cuda_stream);
}

const char* kiln_attention_backward_kernel(const kiln_attention_backward_problem* problem,
                                           kiln_status* status) {
  return kernel_of(problem, status);
}

}  // extern "C"
