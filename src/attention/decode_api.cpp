// The functions of kiln/attention_decode.h, over the process's plans.
#define KILN_GEMM_C_ONLY
#include "kiln/attention_decode.h"

#include <cmath>
#include <string>

#include "attention/decode_plan.h"
#include "gemm/ended.h"
#include "gemm/recipe.h"
#include "support/format.h"

namespace {

using kiln::Error;
using kiln::format;
using kiln::Result;
using kiln::Unexpected;
using kiln::attention::decode_plans;
using kiln::attention::DecodeOperands;
using kiln::attention::DecodePlan;
using kiln::attention::DecodeProblem;
using kiln::gemm::fail;
using kiln::gemm::Failure;
using kiln::gemm::FailureKind;
using kiln::runtime::cuda::DevicePtr;

Unexpected<Failure> not_attention(std::string reason) {
  return kiln::gemm::failed(FailureKind::kInvalid, Error{"not attention", {}, std::move(reason)});
}

Result<DecodeProblem, Failure> problem_of(const kiln_attention_decode_problem* given) {
  if (given == nullptr) return not_attention("the problem is null");
  if (given->type != KILN_BF16 && given->type != KILN_F16) {
    return not_attention(
        format("type {} of its tensors: KILN_BF16, {}, and KILN_F16, {}, are possible", given->type,
               static_cast<int>(KILN_BF16), static_cast<int>(KILN_F16)));
  }
  if (given->causal != 0 && given->causal != 1) {
    return not_attention(format("causal is {}, 0 and 1 are possible", given->causal));
  }
  return DecodeProblem{.dtype = given->type == KILN_BF16 ? kiln::DType::kBF16 : kiln::DType::kF16,
                       .causal = given->causal != 0,
                       .batch = given->batch == 0 ? 1 : given->batch,
                       .queries = given->queries == 0 ? 1 : given->queries,
                       .heads = given->heads,
                       .key_heads = given->key_heads == 0 ? given->heads : given->key_heads,
                       .depth = given->depth,
                       .keys = given->keys,
                       .page_size = given->page_size,
                       .pages = given->pages,
                       .pages_of_sequence = given->pages_of_sequence,
                       .k = {given->k.batch, given->k.row, given->k.head},
                       .v = {given->v.batch, given->v.row, given->v.head}};
}

DevicePtr address_of(const void* pointer) {
  return static_cast<DevicePtr>(reinterpret_cast<std::uintptr_t>(pointer));
}

DecodeOperands operands_of(const kiln_attention_decode_operands& given,
                           const DecodeProblem& problem) {
  const auto usual = static_cast<float>(1 / std::sqrt(static_cast<double>(problem.depth)));
  return {.q = address_of(given.q),
          .k = address_of(given.k),
          .v = address_of(given.v),
          .lengths = address_of(given.lengths),
          .page_table = address_of(given.page_table),
          .o = address_of(given.o),
          .lse = address_of(given.lse),
          .scale = given.scale != 0 ? given.scale : usual};
}

Result<const DecodePlan*, Failure> made_plan(const kiln_attention_decode_problem* problem) {
  const auto whole = problem_of(problem);
  if (!whole) return Unexpected{whole.error()};
  return decode_plans().plan(*whole);
}

// The plan of a problem that may have to be compiled, which a captured stream does not stand.
Result<const DecodePlan*, Failure> ready_plan(const DecodeProblem& problem,
                                              kiln::runtime::cuda::Stream stream, bool& captured) {
  auto found = decode_plans().find(problem);
  if (!found || *found != nullptr) return found;
  const auto capturing = kiln::gemm::library().is_capturing(stream);
  captured = capturing && *capturing;
  return captured ? found : decode_plans().plan(problem);
}

}  // namespace

extern "C" {

kiln_status kiln_attention_decode_prepare(const kiln_attention_decode_problem* problem,
                                          size_t* workspace_bytes) {
  const auto plan = made_plan(problem);
  if (!plan) return fail(plan.error());
  if (workspace_bytes != nullptr) *workspace_bytes = (*plan)->workspace_bytes();
  return KILN_OK;
}

kiln_status kiln_attention_decode(const kiln_attention_decode_problem* problem,
                                  const kiln_attention_decode_operands* operands, void* workspace,
                                  size_t workspace_bytes, void* cuda_stream) {
  const auto whole = problem_of(problem);
  if (!whole) return fail(whole.error());
  if (operands == nullptr) return fail(KILN_INVALID, "the operands are null");
  const DecodeOperands given = operands_of(*operands, *whole);
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
  const DevicePtr space = address_of(workspace);
  std::string mistake =
      kiln::gemm::workspace_mistake((*plan)->workspace_bytes(), space, workspace_bytes);
  if (!mistake.empty()) return fail(KILN_WORKSPACE, std::move(mistake));
  const auto started = (*plan)->start(given, stream, space);
  return started ? KILN_OK : fail(KILN_DEVICE, started.error().text());
}

const char* kiln_attention_decode_kernel(const kiln_attention_decode_problem* problem,
                                         kiln_status* status) {
  const auto plan = made_plan(problem);
  const kiln_status code = plan ? KILN_OK : fail(plan.error());
  if (status != nullptr) *status = code;
  return plan ? (*plan)->kernel_text().c_str() : nullptr;
}

}  // extern "C"
