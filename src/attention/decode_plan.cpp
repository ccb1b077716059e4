#include "attention/decode_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "support/format.h"

namespace kiln::attention {

using gemm::Failure;
using gemm::FailureKind;
using runtime::cuda::DevicePtr;

namespace {

// What the kernel's parameters are called: tensors, then numbers.
constexpr std::array<std::string_view, 9> kNames = {"q", "k",   "v",     "lengths", "page_table",
                                                    "o", "lse", "scale", "splits"};
constexpr std::size_t kKeys = 1;
constexpr std::size_t kValues = 2;
constexpr std::size_t kLengths = 3;
constexpr std::size_t kPageTable = 4;
constexpr std::size_t kLse = 6;
constexpr std::size_t kScale = 7;
constexpr std::size_t kSplits = 8;
constexpr std::size_t kTensors = kScale;
constexpr std::size_t kParametersMax = kNames.size();

Error does_not_fit(const DecodeProblem& problem, std::string reason) {
  return {"the kernel does not fit", text(problem), std::move(reason)};
}

DType type_of(std::size_t role, const DecodeProblem& problem) {
  if (role == kLengths || role == kPageTable) return DType::kS32;
  return role == kLse ? DType::kF32 : problem.dtype;
}

std::vector<std::int64_t> shape_of(std::size_t role, const DecodeProblem& problem) {
  switch (role) {
    case kKeys:
    case kValues:
      return {pages_of_cache(problem), rows_of_page(problem), problem.key_heads, problem.depth};
    case kLengths: return {problem.batch};
    case kPageTable: return {problem.batch, problem.pages_of_sequence};
    case kLse: return {problem.batch, problem.heads, problem.queries};
    default: return {problem.batch, problem.queries, problem.heads, problem.depth};
  }
}

// A kernel's parameters as those of a call.
struct Binding {
  ir::Arguments arguments = {};
  std::vector<std::size_t> roles = {};                  // by parameter: in kNames
  std::vector<std::vector<std::int64_t>> strides = {};  // by parameter
};

Result<void> bind_dimensions(const ir::Function& function, const DecodeProblem& problem,
                             std::int64_t splits, Binding& binding) {
  const std::pair<std::string_view, std::int64_t> known[] = {
      {"B", problem.batch},         {"S", problem.queries},
      {"H", problem.heads},         {"HK", problem.key_heads},
      {"D", problem.depth},         {"N", pages_of_cache(problem)},
      {"P", rows_of_page(problem)}, {"PAGES", problem.pages_of_sequence},
      {kNames[kSplits], splits}};
  binding.arguments.vars.resize(function.vars.size());
  for (std::uint32_t v = 0; v < function.vars.size(); ++v) {
    const ir::Var& var = function.vars[ir::VarId{v}];
    if (var.kind != ir::VarKind::kDim && var.kind != ir::VarKind::kScalar) continue;
    const auto* found =
        std::ranges::find(known, var.name, &std::pair<std::string_view, std::int64_t>::first);
    if (found == std::end(known)) {
      return Unexpected{does_not_fit(
          problem, format("its dimension `{}` is none of B, S, H, HK, D, N, P, PAGES and splits",
                          var.name))};
    }
    binding.arguments.vars[v] = found->second;
  }
  return {};
}

Result<void> bind_tensor(const ir::Function& function, const DecodeProblem& problem,
                         std::size_t param, Binding& binding) {
  const ir::ViewType& type = function.view_type(function.params[param].value);
  const std::size_t role = binding.roles.back();
  Tensor& tensor = binding.arguments.params[param].tensor;
  tensor.dtype = type.dtype;
  for (const ir::Expr& extent : type.shape) {
    tensor.shape.push_back(extent.evaluate(binding.arguments.vars));
  }
  if (role == kKeys || role == kValues) {
    const Spacing& spacing = role == kKeys ? problem.k : problem.v;
    binding.strides.back() = {spacing.batch, spacing.row, spacing.head};
  }
  const DType wanted = type_of(role, problem);
  const std::vector<std::int64_t> shape = shape_of(role, problem);
  if (type.dtype == wanted && tensor.shape == shape) return {};
  return Unexpected{does_not_fit(
      problem, format("its `{}` is {} {}, the problem has {} {}", kNames[role], name(type.dtype),
                      shape_text(tensor.shape), name(wanted), shape_text(shape)))};
}

Result<Binding> bind(const ir::Function& function, const DecodeProblem& problem,
                     std::int64_t splits) {
  Binding out;
  if (auto bound = bind_dimensions(function, problem, splits, out); !bound) {
    return Unexpected{bound.error()};
  }
  out.arguments.params.resize(function.params.size());
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    const auto* found = std::ranges::find(kNames, function.params[i].name);
    if (found == kNames.end() || i == kParametersMax) {
      return Unexpected{
          does_not_fit(problem, format("it has a parameter `{}`", function.params[i].name))};
    }
    out.roles.push_back(static_cast<std::size_t>(found - kNames.begin()));
    out.strides.emplace_back();
    if (out.roles.back() >= kTensors) continue;
    if (auto bound = bind_tensor(function, problem, i, out); !bound) {
      return Unexpected{bound.error()};
    }
  }
  for (const ir::EntryCheck& check : function.checks) {
    if (ir::holds(check, out.arguments.vars)) continue;
    return Unexpected{does_not_fit(
        problem, format("{}: {} is {} and {} is {}", check.message, function.text(check.left),
                        check.left.evaluate(out.arguments.vars), function.text(check.right),
                        check.right.evaluate(out.arguments.vars)))};
  }
  return out;
}

Error cannot_start(std::string reason) { return {"cannot start attention", {}, std::move(reason)}; }

std::array<DevicePtr, kTensors> addresses_of(const DecodeOperands& operands) {
  return {operands.q,          operands.k, operands.v,  operands.lengths,
          operands.page_table, operands.o, operands.lse};
}

}  // namespace

Result<void> check(const DecodeProblem& problem, const DecodeOperands& operands) {
  const std::array<DevicePtr, kTensors> addresses = addresses_of(operands);
  for (std::size_t role = 0; role < kTensors; ++role) {
    if (role == kPageTable && !paged(problem)) {
      if (addresses[role] == 0) continue;
      return Unexpected{cannot_start("there is a page_table, and the problem has no pages")};
    }
    const bool numbers = role == kLengths || role == kPageTable || role == kLse;
    const DevicePtr unit = numbers ? sizeof(float) : runtime::kTensorUnit;
    if (addresses[role] == 0) {
      return Unexpected{cannot_start(format("{} is null", kNames[role]))};
    }
    if (addresses[role] % unit == 0) continue;
    return Unexpected{cannot_start(format("{} begins {} bytes past a multiple of {}", kNames[role],
                                          addresses[role] % unit, unit))};
  }
  if (std::isfinite(operands.scale) && operands.scale > 0) return {};
  return Unexpected{
      cannot_start(format("the scale is {}, a number above 0 is needed", operands.scale))};
}

Result<std::unique_ptr<DecodePlan>, Failure> DecodePlan::make(int device,
                                                              const DecodeProblem& problem) {
  const auto gpu = gemm::library().gpu(device);
  if (!gpu) return Unexpected{gpu.error()};
  const auto choice = choose(problem, (*gpu)->arch(), (*gpu)->multiprocessors());
  if (!choice) return gemm::failed(FailureKind::kUnsupported, choice.error());
  const auto program = gemm::library().program(device, **gpu, choice->kernel);
  if (!program) return Unexpected{program.error()};
  const ir::Function& function = (*program)->function();
  // Before NVRTC compiles it: a problem that the kernel does not fit is refused without.
  auto binding = bind(function, problem, choice->splits);
  if (!binding) return gemm::failed(FailureKind::kUnsupported, binding.error());
  const auto kernel = gemm::library().kernel(device, **gpu, choice->kernel, *program);
  if (!kernel) return Unexpected{kernel.error()};
  auto call = runtime::CallPlan::make(**gpu, (*kernel)->kernels.module,
                                      {.module = (*program)->module,
                                       .function = function,
                                       .arguments = binding->arguments,
                                       .strides = binding->strides});
  if (!call) return gemm::failed(FailureKind::kUnsupported, call.error());
  if ((*call)->returned()) {
    return gemm::failed(FailureKind::kUnsupported, does_not_fit(problem, "it returns something"));
  }
  std::unique_ptr<DecodePlan> plan(new DecodePlan);
  plan->choice_ = *choice;
  plan->kernel_text_ = text(*choice);
  plan->kernel_ = *kernel;
  plan->call_ = std::move(*call);
  plan->roles_ = std::move(binding->roles);
  return plan;
}

Result<void> DecodePlan::start(const DecodeOperands& operands, runtime::cuda::Stream stream,
                               DevicePtr workspace) const {
  const std::array<DevicePtr, kTensors> addresses = addresses_of(operands);
  // Behind the parameters: of what is returned, which is nothing, and of the workspace.
  std::array<DevicePtr, kParametersMax + 2> places = {};
  std::array<std::uint64_t, kParametersMax> numbers = {};
  for (std::size_t i = 0; i < roles_.size(); ++i) {
    if (roles_[i] == kScale) {
      numbers[i] = encode(DType::kF32, static_cast<double>(operands.scale));
    } else if (roles_[i] == kSplits) {
      numbers[i] = static_cast<std::uint64_t>(choice_.splits);
    } else {
      places[i] = addresses[roles_[i]];
    }
  }
  places[roles_.size() + 1] = workspace;
  return call_->start({.places = places, .numbers = numbers}, stream);
}

Result<DecodePlans::Key, Failure> DecodePlans::key_of(const DecodeProblem& problem) {
  const auto whole = normalised(problem);
  if (!whole) return gemm::failed(FailureKind::kInvalid, whole.error());
  const auto device = gemm::library().current_device();
  if (!device) return Unexpected{device.error()};
  return Key{*device, *whole};
}

Result<const DecodePlan*, Failure> DecodePlans::find(const DecodeProblem& problem) {
  const auto key = key_of(problem);
  if (!key) return Unexpected{key.error()};
  return plans_.find(*key);
}

Result<const DecodePlan*, Failure> DecodePlans::plan(const DecodeProblem& problem) {
  const auto key = key_of(problem);
  if (!key) return Unexpected{key.error()};
  const auto plan =
      plans_.find_or_make(*key, [&] { return DecodePlan::make(key->first, key->second); });
  if (!plan) return Unexpected{plan.error()};
  return *plan;
}

DecodePlans& decode_plans() {
  static auto* const all = new DecodePlans;
  return *all;
}

}  // namespace kiln::attention
