// The functions of kiln/gemm.h, over the registry of plans.
#define KILN_GEMM_C_ONLY
#include "kiln/gemm.h"

#include <bit>
#include <string>

#include "gemm/c_call.h"
#include "gemm/registry.h"
#include "support/format.h"

namespace {

using kiln::DType;
using kiln::Error;
using kiln::format;
using kiln::Result;
using kiln::Unexpected;
using kiln::gemm::address_of;
using kiln::gemm::fail;
using kiln::gemm::Failure;
using kiln::gemm::FailureKind;
using kiln::gemm::Grouping;
using kiln::gemm::Operands;
using kiln::gemm::Problem;
using kiln::gemm::registry;
using kiln::runtime::cuda::DevicePtr;

constexpr int kUsualAlignment = 16;
static_assert(KILN_GEMM_GROUP_ROWS == kiln::gemm::kGroupRows);

const DType* dtype_of(std::int32_t type) {
  static constexpr std::pair<kiln_type, DType> kTypes[] = {
      {KILN_BF16, DType::kBF16}, {KILN_F16, DType::kF16},   {KILN_F32, DType::kF32},
      {KILN_TF32, DType::kTF32}, {KILN_E4M3, DType::kE4M3}, {KILN_E5M2, DType::kE5M2},
      {KILN_S8, DType::kS8},     {KILN_S32, DType::kS32}};
  for (const auto& [each, dtype] : kTypes) {
    if (each == type) return &dtype;
  }
  return nullptr;
}

constexpr std::uint32_t kAllFlags = 2 * KILN_GEMM_GROUPS_ALONG_K - 1;

Unexpected<Failure> invalid(std::string reason) {
  return Unexpected{
      Failure{FailureKind::kInvalid, Error{"not a matrix product", {}, std::move(reason)}}};
}

Grouping grouping_of(std::uint32_t flags) {
  if ((flags & KILN_GEMM_GROUPS_ALONG_K) != 0) return Grouping::kAlongK;
  if ((flags & KILN_GEMM_GROUPS_APART) != 0) return Grouping::kApart;
  return (flags & KILN_GEMM_ROWS_OF_GROUP) != 0 ? Grouping::kFollowing : Grouping::kByTile;
}

Result<Problem, Failure> problem_of(const kiln_gemm_problem* given) {
  if (given == nullptr) return invalid("the problem is null");
  const DType* a = dtype_of(given->type_a);
  const DType* b = dtype_of(given->type_b);
  const DType* c = dtype_of(given->type_c);
  if (a == nullptr || b == nullptr || c == nullptr) {
    return invalid(format("types {}, {} and {} of A, B and C: one is none of kiln_type",
                          given->type_a, given->type_b, given->type_c));
  }
  if ((given->flags & ~kAllFlags) != 0) return invalid(format("unknown flags {:#x}", given->flags));
  if (given->activation < KILN_NO_ACTIVATION || given->activation > KILN_SILU) {
    return invalid(format("activation {} is none", given->activation));
  }
  const auto has = [&](std::uint32_t flag) { return (given->flags & flag) != 0; };
  return Problem{.m = given->m,
                 .n = given->n,
                 .k = given->k,
                 .a = *a,
                 .b = *b,
                 .c = *c,
                 .a_along_k = !has(KILN_GEMM_A_ALONG_M),
                 .b_along_k = !has(KILN_GEMM_B_ALONG_N),
                 .block_scales = has(KILN_GEMM_BLOCK_SCALES),
                 .a_sparse = has(KILN_GEMM_A_SPARSE),
                 .a_spacing = {given->lda, given->stride_a},
                 .b_spacing = {given->ldb, given->stride_b},
                 .c_spacing = {given->ldc, given->stride_c},
                 .residual_spacing = {given->ldr, given->stride_r},
                 .batch = given->batch == 0 ? 1 : given->batch,
                 .groups = given->groups,
                 .grouping = grouping_of(given->flags),
                 .epilogue = {.has_alpha = has(KILN_GEMM_ALPHA),
                              .has_beta = has(KILN_GEMM_BETA),
                              .has_bias = has(KILN_GEMM_BIAS),
                              .has_residual = has(KILN_GEMM_RESIDUAL),
                              .activation = static_cast<kiln::gemm::Activation>(given->activation)},
                 .batch_invariant = has(KILN_GEMM_BATCH_INVARIANT),
                 .alignment = given->alignment == 0 ? kUsualAlignment : given->alignment};
}

Operands operands_of(const kiln_gemm_operands& given, const Problem& problem) {
  Operands out{.a = address_of(given.a), .b = address_of(given.b), .c = address_of(given.c)};
  const kiln::gemm::Epilogue& epilogue = problem.epilogue;
  if (epilogue.has_bias) out.bias = address_of(given.bias);
  if (epilogue.has_residual) out.residual = address_of(given.residual);
  if (problem.block_scales) out.a_scale = address_of(given.a_scale);
  if (problem.block_scales) out.b_scale = address_of(given.b_scale);
  if (problem.a_sparse) out.metadata = address_of(given.metadata);
  if (problem.groups > 0 && problem.grouping == Grouping::kByTile) {
    out.group_of_tile = address_of(given.group_of_tile);
  } else if (problem.groups > 0) {
    out.rows_of_group = address_of(given.rows_of_group);
  }
  if (epilogue.has_alpha) out.alpha = static_cast<double>(given.alpha);
  if (epilogue.has_beta) out.beta = static_cast<double>(given.beta);
  return out;
}

// The largest power of two that divides all addresses, up to what the problem says. Numbers of
// groups are read one by one.
int alignment_of(const Operands& operands, int most) {
  if (most <= 0 || !std::has_single_bit(static_cast<unsigned>(most))) return most;  // refused later
  const auto together = operands.a | operands.b | operands.c | operands.bias | operands.residual |
                        operands.a_scale | operands.b_scale | operands.metadata |
                        static_cast<unsigned>(most);
  return 1 << std::countr_zero(together);
}

// An operand that is missing or out of place, in words; empty when all are there.
std::string mistake_in(const Operands& operands, const Problem& problem) {
  if (operands.a == 0) return "A is null";
  if (operands.b == 0) return "B is null";
  if (operands.c == 0) return "C is null";
  if (problem.epilogue.has_bias && operands.bias == 0) return "the bias is null";
  if (problem.epilogue.has_residual && operands.residual == 0) return "the residual is null";
  if (problem.block_scales && (operands.a_scale == 0 || operands.b_scale == 0)) {
    return "a pointer to scale factors is null";
  }
  if (problem.a_sparse && operands.metadata == 0) return "the metadata are null";
  if (problem.groups <= 0) return {};
  const bool by_tile = problem.grouping == Grouping::kByTile;
  const char* table = by_tile ? "group_of_tile" : "rows_of_group";
  const DevicePtr address = by_tile ? operands.group_of_tile : operands.rows_of_group;
  if (address == 0) return format("{} is null", table);
  const DevicePtr past = address % sizeof(std::int32_t);
  if (past != 0) return format("{} lies {} bytes past a multiple of 4", table, past);
  return {};
}

}  // namespace

extern "C" {

kiln_status kiln_gemm_prepare(const kiln_gemm_problem* problem, size_t* workspace_bytes) {
  return kiln::gemm::prepare(registry(), problem_of(problem), workspace_bytes);
}

kiln_status kiln_gemm_workspace(const kiln_gemm_problem* problem, size_t* bytes) {
  if (bytes == nullptr) return fail(KILN_INVALID, "the result of kiln_gemm_workspace is null");
  return kiln_gemm_prepare(problem, bytes);
}

kiln_status kiln_gemm(const kiln_gemm_problem* problem, const kiln_gemm_operands* operands,
                      void* workspace, size_t workspace_bytes, void* cuda_stream) {
  auto whole = problem_of(problem);
  if (!whole) return fail(whole.error());
  if (operands == nullptr) return fail(KILN_INVALID, "the operands are null");
  const Operands given = operands_of(*operands, *whole);
  if (std::string text = mistake_in(given, *whole); !text.empty()) return fail(KILN_INVALID, text);
  whole->alignment = alignment_of(given, whole->alignment);
  return kiln::gemm::start(registry(), *whole, given, {address_of(workspace), workspace_bytes},
                           cuda_stream);
}

const char* kiln_gemm_kernel(const kiln_gemm_problem* problem, kiln_status* status) {
  return kiln::gemm::kernel_text(registry(), problem_of(problem), status);
}

const char* kiln_last_error(void) { return kiln::last_error().c_str(); }

}  // extern "C"
