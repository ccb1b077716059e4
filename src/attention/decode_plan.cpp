#include "attention/decode_plan.h"

#include <array>
#include <string_view>

namespace kiln::attention {

using gemm::Failure;
using gemm::FailureKind;
using runtime::cuda::DevicePtr;

namespace {

constexpr std::array<std::string_view, 2> kNumbers = {"scale", "splits"};

std::vector<std::int64_t> strides_of(const Spacing& spacing) {
  return {spacing.batch, spacing.row, spacing.head};
}

Signature signature_of(const DecodeProblem& problem, std::int64_t splits) {
  const std::int64_t pages = pages_of_cache(problem);
  const std::int64_t rows = rows_of_page(problem);
  const std::vector<std::int64_t> of_queries = {problem.batch, problem.queries, problem.heads,
                                                problem.depth};
  const std::vector<std::int64_t> of_cache = {pages, rows, problem.key_heads, problem.depth};
  return {.problem = text(problem),
          .dimensions = {{"B", problem.batch},
                         {"S", problem.queries},
                         {"H", problem.heads},
                         {"HK", problem.key_heads},
                         {"D", problem.depth},
                         {"N", pages},
                         {"P", rows},
                         {"PAGES", problem.pages_of_sequence},
                         {"splits", splits}},
          .tensors = {{"q", problem.dtype, of_queries},
                      {"k", problem.dtype, of_cache, strides_of(problem.k)},
                      {"v", problem.dtype, of_cache, strides_of(problem.v)},
                      {"lengths", DType::kS32, {problem.batch}},
                      {"page_table", DType::kS32, {problem.batch, problem.pages_of_sequence}},
                      {"o", problem.dtype, of_queries},
                      {"lse", DType::kF32, {problem.batch, problem.heads, problem.queries}}},
          .numbers = kNumbers};
}

}  // namespace

Result<void> check(const DecodeProblem& problem, const DecodeOperands& operands) {
  const struct {
    std::string_view name;
    DevicePtr address;
    std::size_t unit;
  } tensors[] = {{"q", operands.q, runtime::kTensorUnit},
                 {"k", operands.k, runtime::kTensorUnit},
                 {"v", operands.v, runtime::kTensorUnit},
                 {"lengths", operands.lengths, sizeof(std::int32_t)},
                 {"page_table", operands.page_table, sizeof(std::int32_t)},
                 {"o", operands.o, runtime::kTensorUnit},
                 {"lse", operands.lse, sizeof(float)}};
  for (const auto& [name, address, unit] : tensors) {
    if (name == "page_table" && !paged(problem)) {
      if (address == 0) continue;
      return Unexpected{cannot_start("there is a page_table, and the problem has no pages")};
    }
    if (auto fits = check_address(name, address, unit); !fits) return fits;
  }
  return check_scale(operands.scale);
}

DecodePlan::DecodePlan(DecodeChoice choice, BoundKernel kernel)
    : choice_(std::move(choice)), kernel_text_(text(choice_)), kernel_(std::move(kernel)) {}

Result<std::unique_ptr<DecodePlan>, Failure> DecodePlan::make(int device,
                                                              const DecodeProblem& problem) {
  const auto gpu = gemm::library().gpu(device);
  if (!gpu) return Unexpected{gpu.error()};
  auto choice = choose(problem, (*gpu)->arch(), (*gpu)->multiprocessors());
  if (!choice) return gemm::failed(FailureKind::kUnsupported, choice.error());
  auto kernel = BoundKernel::make(device, choice->kernel, signature_of(problem, choice->splits));
  if (!kernel) return Unexpected{kernel.error()};
  return std::unique_ptr<DecodePlan>(new DecodePlan(std::move(*choice), std::move(*kernel)));
}

Result<void> DecodePlan::start(const DecodeOperands& operands, DevicePtr workspace,
                               runtime::cuda::Stream stream) const {
  const std::array<DevicePtr, 7> addresses = {operands.q,       operands.k,          operands.v,
                                              operands.lengths, operands.page_table, operands.o,
                                              operands.lse};
  const std::array<std::uint64_t, kNumbers.size()> numbers = {
      encode(DType::kF32, static_cast<double>(operands.scale)),
      static_cast<std::uint64_t>(choice_.splits)};
  return kernel_.start({.addresses = addresses, .numbers = numbers}, workspace, stream);
}

DecodePlans& decode_plans() {
  static auto* const all = new DecodePlans(DecodePlan::make);
  return *all;
}

}  // namespace kiln::attention
