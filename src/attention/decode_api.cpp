// The functions of kiln/attention_decode.h, over the process's plans.
#define KILN_GEMM_C_ONLY
#include "kiln/attention_decode.h"

#include "attention/decode_plan.h"
#include "attention/given.h"
#include "gemm/c_call.h"

namespace {

using kiln::Result;
using kiln::Unexpected;
using kiln::attention::decode_plans;
using kiln::attention::DecodeOperands;
using kiln::attention::DecodeProblem;
using kiln::gemm::address_of;
using kiln::gemm::fail;
using kiln::gemm::Failure;

Result<DecodeProblem, Failure> problem_of(const kiln_attention_decode_problem* given) {
  if (given == nullptr) return kiln::attention::not_attention("the problem is null");
  const auto dtype = kiln::attention::dtype_of(given->type);
  if (!dtype) return Unexpected{dtype.error()};
  const auto causal = kiln::attention::flag_of("causal", given->causal);
  if (!causal) return Unexpected{causal.error()};
  return DecodeProblem{.dtype = *dtype,
                       .causal = *causal,
                       .batch = given->batch == 0 ? 1 : given->batch,
                       .queries = given->queries == 0 ? 1 : given->queries,
                       .heads = given->heads,
                       .key_heads = given->key_heads == 0 ? given->heads : given->key_heads,
                       .depth = given->depth,
                       .keys = given->keys,
                       .page_size = given->page_size,
                       .pages = given->pages,
                       .pages_of_sequence = given->pages_of_sequence,
                       .k = kiln::attention::spacing_of(given->k),
                       .v = kiln::attention::spacing_of(given->v)};
}

DecodeOperands operands_of(const kiln_attention_decode_operands& given,
                           const DecodeProblem& problem) {
  return {.q = address_of(given.q),
          .k = address_of(given.k),
          .v = address_of(given.v),
          .lengths = address_of(given.lengths),
          .page_table = address_of(given.page_table),
          .o = address_of(given.o),
          .lse = address_of(given.lse),
          .scale = kiln::attention::scale_of(given.scale, problem.depth)};
}

}  // namespace

extern "C" {

kiln_status kiln_attention_decode_prepare(const kiln_attention_decode_problem* problem,
                                          size_t* workspace_bytes) {
  return kiln::gemm::prepare(decode_plans(), problem_of(problem), workspace_bytes);
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
  return kiln::gemm::start(decode_plans(), *whole, given, {address_of(workspace), workspace_bytes},
                           cuda_stream);
}

const char* kiln_attention_decode_kernel(const kiln_attention_decode_problem* problem,
                                         kiln_status* status) {
  return kiln::gemm::kernel_text(decode_plans(), problem_of(problem), status);
}

}  // extern "C"
