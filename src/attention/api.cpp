// The functions of kiln/attention.h, over the process's plans.
#define KILN_GEMM_C_ONLY
#include "kiln/attention.h"

#include <cmath>
#include <string>

#include "attention/plan.h"
#include "gemm/ended.h"
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
  return Problem{.dtype = given->type == KILN_BF16 ? kiln::DType::kBF16 : kiln::DType::kF16,
                 .batch = given->batch == 0 ? 1 : given->batch,
                 .queries = given->queries,
                 .keys = given->keys == 0 ? given->queries : given->keys,
                 .heads = given->heads,
                 .key_heads = given->key_heads == 0 ? given->heads : given->key_heads,
                 .depth = given->depth,
                 .causal = given->causal != 0,
                 .q = spacing_of(given->q),
                 .k = spacing_of(given->k),
                 .v = spacing_of(given->v),
                 .o = spacing_of(given->o)};
}

DevicePtr address_of(const void* pointer) {
  return static_cast<DevicePtr>(reinterpret_cast<std::uintptr_t>(pointer));
}

Operands operands_of(const kiln_attention_operands& given, const Problem& problem) {
  Operands out{.q = address_of(given.q),
               .k = address_of(given.k),
               .v = address_of(given.v),
               .o = address_of(given.o),
               .lse = address_of(given.lse),
               .scale = given.scale};
  if (out.scale == 0)
    out.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(problem.depth)));
  return out;
}

Result<const Plan*, Failure> made_plan(const kiln_attention_problem* problem) {
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

}  // namespace

extern "C" {

kiln_status kiln_attention_prepare(const kiln_attention_problem* problem) {
  const auto plan = made_plan(problem);
  return plan ? KILN_OK : fail(plan.error());
}

kiln_status kiln_attention(const kiln_attention_problem* problem,
                           const kiln_attention_operands* operands, void* cuda_stream) {
  const auto whole = problem_of(problem);
  if (!whole) return fail(whole.error());
  if (operands == nullptr) return fail(KILN_INVALID, "the operands are null");
  const Operands given = operands_of(*operands, *whole);
  if (auto fits = kiln::attention::check(given); !fits) {
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
  const auto started = (*plan)->start(given, stream);
  return started ? KILN_OK : fail(KILN_DEVICE, started.error().text());
}

const char* kiln_attention_kernel(const kiln_attention_problem* problem, kiln_status* status) {
  const auto plan = made_plan(problem);
  const kiln_status code = plan ? KILN_OK : fail(plan.error());
  if (status != nullptr) *status = code;
  return plan ? (*plan)->kernel_text().c_str() : nullptr;
}

}  // extern "C"
