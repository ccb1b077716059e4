#include "attention/plan.h"

#include <array>
#include <bit>
#include <cmath>
#include <string_view>

#include "attention/choice.h"
#include "support/format.h"

namespace kiln::attention {

using gemm::Failure;
using gemm::FailureKind;
using runtime::cuda::DevicePtr;

namespace {

// Tensors are those of parts_of(), then lse, where sequences begin, the scales and the transposed values.
constexpr std::size_t kLse = 8;
constexpr std::size_t kTensors = kLse + 7;
constexpr const char* kTransposing = "transpose_f8_sm90";
constexpr std::int64_t kKeysUnit = 16;  // of transposed values
constexpr std::int64_t kWord = 4;       // elements of 8 bits
constexpr std::size_t kWorkspaceUnit = 256;
constexpr std::array<std::string_view, 4> kNumbers = {"scale", "soft_cap", "left", "right"};

// Tensors of one batch have a first dimension for it, those of sequences none.
std::vector<std::int64_t> without_batch(const Problem& problem,
                                        std::vector<std::int64_t> of_batch) {
  if (problem.sequences != 0) of_batch.erase(of_batch.begin());
  return of_batch;
}

std::int64_t filled_keys(const Problem& problem) {
  return (problem.keys + kKeysUnit - 1) / kKeysUnit * kKeysUnit;
}

// What lies behind so many elements in the workspace begins after so many bytes.
std::size_t room_for(std::int64_t elements, DType dtype) {
  const auto bytes = static_cast<std::size_t>(elements * size_bytes(dtype));
  return (bytes + kWorkspaceUnit - 1) / kWorkspaceUnit * kWorkspaceUnit;
}

// Of the kernel that transposes values: four elements are a word.
Signature transposing(const Problem& problem) {
  const Spacing& lies = problem.v;
  const std::int64_t words = problem.depth / kWord;
  const std::int64_t words_of_keys = filled_keys(problem) / kWord;
  return {
      .problem = text(problem),
      .dimensions = {{"B", problem.batch},
                     {"T", problem.keys},
                     {"HK", problem.key_heads},
                     {"W", words},
                     {"N", words_of_keys}},
      .tensors = {
          {"v",
           DType::kU32,
           {problem.batch, problem.keys, problem.key_heads, words},
           {lies.batch / kWord, lies.row / kWord, lies.head / kWord}},
          {"vt", DType::kU32, {problem.batch, problem.key_heads, words, kWord, words_of_keys}}}};
}

Signature signature_of(const Problem& problem) {
  Signature out{.problem = text(problem),
                .dimensions = {{"B", problem.batch},
                               {"S", problem.queries},
                               {"T", problem.keys},
                               {"H", problem.heads},
                               {"HK", problem.key_heads},
                               {"D", problem.depth},
                               {"N", problem.sequences + 1},
                               {"TP", filled_keys(problem)},
                               {"left", problem.left},
                               {"right", problem.right}},
                .numbers = kNumbers};
  for (const Part& part : parts_of(problem)) {
    const Spacing& lies = part.spacing;
    out.tensors.push_back(
        {part.name, part.dtype,
         without_batch(problem, {problem.batch, part.rows, part.heads, part.depth}),
         without_batch(problem, {lies.batch, lies.row, lies.head})});
  }
  out.tensors.push_back({"lse", DType::kF32,
                         without_batch(problem, {problem.batch, problem.heads, problem.queries})});
  for (const char* name : {"cu_seqlens_q", "cu_seqlens_k"}) {
    out.tensors.push_back({name, DType::kS32, {problem.sequences + 1}});
  }
  for (const char* name : {"q_scale", "k_scale", "v_scale"}) {
    out.tensors.push_back({name, DType::kF32, {problem.batch, problem.key_heads}});
  }
  out.tensors.push_back({"vt",
                         problem.dtype,
                         {problem.batch, problem.key_heads, problem.depth, filled_keys(problem)}});
  return out;
}

std::array<DevicePtr, kTensors> addresses_of(const Operands& operands, DevicePtr values) {
  return {operands.q,
          operands.k,
          operands.v,
          operands.o,
          operands.dout,
          operands.dq,
          operands.dk,
          operands.dv,
          operands.lse,
          operands.cu_seqlens_q,
          operands.cu_seqlens_k,
          operands.q_scale,
          operands.k_scale,
          operands.v_scale,
          values};
}

Result<void> check_starts(const Problem& problem, std::string_view name, DevicePtr address) {
  if (problem.sequences != 0) return check_address(name, address, sizeof(std::int32_t));
  if (address == 0) return {};
  return Unexpected{cannot_start(format("there is {}, and the problem has no sequences", name))};
}

Result<void> check_factors(const Problem& problem, const Operands& operands) {
  for (const auto& [name, address] : {std::pair{"q_scale", operands.q_scale},
                                      {"k_scale", operands.k_scale},
                                      {"v_scale", operands.v_scale}}) {
    if (address == 0) continue;
    if (has_8_bits(problem)) {
      if (auto fits = check_address(name, address, sizeof(float)); !fits) return fits;
    } else {
      return Unexpected{cannot_start(format("there is {}, and the problem's tensors are of {}",
                                            name, kiln::name(problem.dtype)))};
    }
  }
  return {};
}

}  // namespace

Result<void> check(const Problem& problem, const Operands& operands) {
  const std::array<DevicePtr, kTensors> addresses = addresses_of(operands, 0);
  const auto parts = parts_of(problem);
  for (std::size_t i = 0; i < (problem.backward ? parts.size() : kPartsOfForward); ++i) {
    auto fits = check_address(parts[i].name, addresses[i], runtime::kTensorUnit);
    if (!fits) return fits;
  }
  if (auto fits = check_address("lse", operands.lse, sizeof(float)); !fits) return fits;
  for (const auto& [name, address] : {std::pair{"cu_seqlens_q", operands.cu_seqlens_q},
                                      {"cu_seqlens_k", operands.cu_seqlens_k}}) {
    if (auto fits = check_starts(problem, name, address); !fits) return fits;
  }
  if (auto fits = check_factors(problem, operands); !fits) return fits;
  if (auto fits = check_scale(operands.scale); !fits) return fits;
  if (problem.soft_cap == 0 || std::isfinite(operands.scale / problem.soft_cap)) return {};
  return Unexpected{cannot_start(
      format("the scale is {} and the soft cap {}: the one over the other is no number of f32",
             operands.scale, problem.soft_cap))};
}

Plan::Plan(const Problem& problem, gemm::Choice choice, BoundKernel kernel)
    : choice_(std::move(choice)),
      kernel_text_(gemm::text(choice_)),
      kernel_(std::move(kernel)),
      numbers_{problem.soft_cap, problem.left, problem.right} {}

Result<std::unique_ptr<Plan>, Failure> Plan::make(int device, const Problem& problem) {
  const auto gpu = gemm::library().gpu(device);
  if (!gpu) return Unexpected{gpu.error()};
  const auto choice = choose(problem, (*gpu)->arch(), (*gpu)->multiprocessors());
  if (!choice) return gemm::failed(FailureKind::kUnsupported, choice.error());
  return make(device, problem, *choice);
}

Result<std::unique_ptr<Plan>, Failure> Plan::make(int device, const Problem& problem,
                                                  const gemm::Choice& choice) {
  auto kernel = BoundKernel::make(device, choice, signature_of(problem));
  if (!kernel) return Unexpected{kernel.error()};
  if (kernel->workspace_bytes() != 0 && !problem.backward && !problem.balanced) {
    return gemm::failed(FailureKind::kUnsupported,
                        does_not_fit(text(problem), "it needs a workspace"));
  }
  std::unique_ptr<Plan> out(new Plan(problem, choice, std::move(*kernel)));
  if (!has_8_bits(problem)) return out;
  auto transposition = BoundKernel::make(device, {.kernel = kTransposing}, transposing(problem));
  if (!transposition) return Unexpected{transposition.error()};
  const std::int64_t heads = problem.batch * problem.key_heads;
  out->before_ =
      Before{.gpu = *gemm::library().gpu(device),
             .transposition = std::move(*transposition),
             .values_bytes = room_for(heads * problem.depth * filled_keys(problem), problem.dtype),
             .factors = static_cast<std::size_t>(heads),
             .factors_bytes = room_for(heads, DType::kF32)};
  return out;
}

Result<Operands> Plan::Before::start(const Operands& operands, DevicePtr workspace,
                                     runtime::cuda::Stream stream) const {
  Operands out = operands;
  const DevicePtr ones = workspace + values_bytes;
  bool wanted = false;
  for (DevicePtr* const factor : {&out.q_scale, &out.k_scale, &out.v_scale}) {
    wanted = wanted || *factor == 0;
    if (*factor == 0) *factor = ones;
  }
  if (auto filled = wanted ? fill(ones, stream) : Result<void>(); !filled) {
    return Unexpected{filled.error()};
  }
  const std::array<DevicePtr, 2> both = {operands.v, workspace};
  auto started = transposition.start({.addresses = both, .numbers = {}}, 0, stream);
  if (!started) return Unexpected{started.error()};
  return out;
}

Result<void> Plan::Before::fill(DevicePtr ones, runtime::cuda::Stream stream) const {
  const runtime::ContextScope scope(gpu->session());
  if (!scope.entered()) return scope.entered();
  const runtime::cuda::Api& api = gpu->session().api;
  return api.check(api.start_set_words(ones, std::bit_cast<std::uint32_t>(1.0F), factors, stream),
                   "cannot fill memory of the GPU");
}

Result<void> Plan::start(const Operands& operands, DevicePtr workspace,
                         runtime::cuda::Stream stream) const {
  const std::array<std::uint64_t, kNumbers.size()> numbers = {
      encode(DType::kF32, static_cast<double>(operands.scale)),
      encode(DType::kF32, static_cast<double>(numbers_.soft_cap)),
      static_cast<std::uint64_t>(numbers_.left), static_cast<std::uint64_t>(numbers_.right)};
  if (!before_) {
    return kernel_.start({.addresses = addresses_of(operands, 0), .numbers = numbers}, workspace,
                         stream);
  }
  const auto whole = before_->start(operands, workspace, stream);
  if (!whole) return Unexpected{whole.error()};
  return kernel_.start({.addresses = addresses_of(*whole, workspace), .numbers = numbers},
                       workspace + before_->bytes(), stream);
}

Plans& plans() {
  static auto* const all = new Plans(Plan::make);
  return *all;
}

}  // namespace kiln::attention
