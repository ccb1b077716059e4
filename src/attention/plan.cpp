#include "attention/plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "attention/choice.h"
#include "support/format.h"

namespace kiln::attention {

using gemm::Failure;
using gemm::FailureKind;
using runtime::cuda::DevicePtr;

namespace {

// What the kernels' parameters are called: tensors as parts_of() has them, then others. From kScale on
// they are numbers.
constexpr std::array<std::string_view, 13> kNames = {
    "q", "k", "v", "o", "dout", "dq", "dk", "dv", "lse", "scale", "soft_cap", "left", "right"};
constexpr std::size_t kLse = 8;
constexpr std::size_t kScale = 9;
constexpr std::size_t kSoftCap = 10;
constexpr std::size_t kLeft = 11;
constexpr std::size_t kRight = 12;
constexpr std::size_t kParametersMax = kNames.size();

Error does_not_fit(const Problem& problem, std::string reason) {
  return {"the kernel does not fit", text(problem), std::move(reason)};
}

// A kernel's parameters as those of a call.
struct Binding {
  ir::Arguments arguments = {};
  std::vector<std::size_t> roles = {};                  // by parameter: in kNames
  std::vector<std::vector<std::int64_t>> strides = {};  // by parameter
};

Result<void> bind_dimensions(const ir::Function& function, const Problem& problem,
                             Binding& binding) {
  const std::pair<std::string_view, std::int64_t> known[] = {
      {"B", problem.batch},   {"S", problem.queries},    {"T", problem.keys},
      {"H", problem.heads},   {"HK", problem.key_heads}, {"D", problem.depth},
      {"left", problem.left}, {"right", problem.right}};
  binding.arguments.vars.resize(function.vars.size());
  for (std::uint32_t v = 0; v < function.vars.size(); ++v) {
    const ir::Var& var = function.vars[ir::VarId{v}];
    if (var.kind != ir::VarKind::kDim && var.kind != ir::VarKind::kScalar) continue;
    const auto* found =
        std::ranges::find(known, var.name, &std::pair<std::string_view, std::int64_t>::first);
    if (found == std::end(known)) {
      return Unexpected{does_not_fit(
          problem, format("its dimension `{}` is none of B, S, T, H, HK and D, nor left or right",
                          var.name))};
    }
    binding.arguments.vars[v] = found->second;
  }
  return {};
}

Result<void> bind_tensor(const ir::Function& function, const Problem& problem, std::size_t param,
                         Binding& binding) {
  const ir::ViewType& type = function.view_type(function.params[param].value);
  const std::size_t role = binding.roles.back();
  Tensor& tensor = binding.arguments.params[param].tensor;
  tensor.dtype = type.dtype;
  for (const ir::Expr& extent : type.shape) {
    tensor.shape.push_back(extent.evaluate(binding.arguments.vars));
  }
  const DType wanted = role == kLse ? DType::kF32 : problem.dtype;
  std::vector<std::int64_t> shape = {problem.batch, problem.heads, problem.queries};
  if (role != kLse) {
    const Part part = parts_of(problem)[role];
    shape = {problem.batch, part.rows, part.heads, part.depth};
    binding.strides.back() = {part.spacing.batch, part.spacing.row, part.spacing.head};
  }
  if (type.dtype == wanted && tensor.shape == shape) return {};
  return Unexpected{does_not_fit(
      problem, format("its `{}` is {} {}, the problem has {} {}", kNames[role], name(type.dtype),
                      shape_text(tensor.shape), name(wanted), shape_text(shape)))};
}

Result<Binding> bind(const ir::Function& function, const Problem& problem) {
  Binding out;
  if (auto bound = bind_dimensions(function, problem, out); !bound) {
    return Unexpected{bound.error()};
  }
  out.arguments.params.resize(function.params.size());
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    const ir::Param& param = function.params[i];
    const auto* found = std::ranges::find(kNames, param.name);
    if (found == kNames.end() || i == kParametersMax) {
      return Unexpected{does_not_fit(
          problem,
          format(
              "its parameter `{}` is none of q, k, v, o, dout, dq, dk, dv, lse, scale, soft_cap, "
              "left and right",
              param.name))};
    }
    out.roles.push_back(static_cast<std::size_t>(found - kNames.begin()));
    out.strides.emplace_back();
    if (out.roles.back() >= kScale) continue;
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

std::array<DevicePtr, kScale> addresses_of(const Operands& operands) {
  return {operands.q,  operands.k,  operands.v,  operands.o,  operands.dout,
          operands.dq, operands.dk, operands.dv, operands.lse};
}

}  // namespace

Result<void> check(const Problem& problem, const Operands& operands) {
  const std::array<DevicePtr, kScale> addresses = addresses_of(operands);
  for (std::size_t role = 0; role < kScale; ++role) {
    if (!problem.backward && role >= kPartsOfForward && role < kLse) continue;
    const DevicePtr unit = role == kLse ? sizeof(float) : runtime::kTensorUnit;
    if (addresses[role] == 0) {
      return Unexpected{cannot_start(format("{} is null", kNames[role]))};
    }
    if (addresses[role] % unit == 0) continue;
    return Unexpected{cannot_start(format("{} begins {} bytes past a multiple of {}", kNames[role],
                                          addresses[role] % unit, unit))};
  }
  if (!(std::isfinite(operands.scale) && operands.scale > 0)) {
    return Unexpected{
        cannot_start(format("the scale is {}, a number above 0 is needed", operands.scale))};
  }
  if (problem.soft_cap == 0 || std::isfinite(operands.scale / problem.soft_cap)) return {};
  return Unexpected{cannot_start(
      format("the scale is {} and the soft cap {}: the one over the other is no number of f32",
             operands.scale, problem.soft_cap))};
}

Result<std::unique_ptr<Plan>, Failure> Plan::make(int device, const Problem& problem) {
  const auto gpu = gemm::library().gpu(device);
  if (!gpu) return Unexpected{gpu.error()};
  const auto choice = choose(problem, (*gpu)->arch(), (*gpu)->multiprocessors());
  if (!choice) return gemm::failed(FailureKind::kUnsupported, choice.error());
  return make(device, problem, *choice);
}

Result<std::unique_ptr<Plan>, Failure> Plan::make(int device, const Problem& problem,
                                                  const gemm::Choice& choice) {
  const auto gpu = gemm::library().gpu(device);
  if (!gpu) return Unexpected{gpu.error()};
  const auto program = gemm::library().program(device, **gpu, choice);
  if (!program) return Unexpected{program.error()};
  const ir::Function& function = (*program)->function();
  // Before NVRTC compiles it: a problem that the kernel does not fit is refused without.
  auto binding = bind(function, problem);
  if (!binding) return gemm::failed(FailureKind::kUnsupported, binding.error());
  const auto kernel = gemm::library().kernel(device, **gpu, choice, *program);
  if (!kernel) return Unexpected{kernel.error()};
  auto call = runtime::CallPlan::make(**gpu, (*kernel)->kernels.module,
                                      {.module = (*program)->module,
                                       .function = function,
                                       .arguments = binding->arguments,
                                       .strides = binding->strides});
  if (!call) return gemm::failed(FailureKind::kUnsupported, call.error());
  if ((*call)->returned() || ((*call)->workspace_bytes() != 0 && !problem.backward)) {
    return gemm::failed(FailureKind::kUnsupported,
                        does_not_fit(problem, "it returns something, or needs a workspace"));
  }
  std::unique_ptr<Plan> plan(new Plan);
  plan->choice_ = choice;
  plan->numbers_ = {problem.soft_cap, problem.left, problem.right};
  plan->kernel_text_ = gemm::text(choice);
  plan->kernel_ = *kernel;
  plan->call_ = std::move(*call);
  plan->roles_ = std::move(binding->roles);
  return plan;
}

Result<void> Plan::start(const Operands& operands, runtime::cuda::Stream stream,
                         DevicePtr workspace) const {
  const std::array<DevicePtr, kScale> addresses = addresses_of(operands);
  // Behind the parameters: of what is returned, which is nothing, and of the workspace.
  std::array<DevicePtr, kParametersMax + 2> places = {};
  std::array<std::uint64_t, kParametersMax> numbers = {};
  for (std::size_t i = 0; i < roles_.size(); ++i) {
    switch (roles_[i]) {
      case kScale: numbers[i] = encode(DType::kF32, static_cast<double>(operands.scale)); break;
      case kSoftCap:
        numbers[i] = encode(DType::kF32, static_cast<double>(numbers_.soft_cap));
        break;
      case kLeft: numbers[i] = static_cast<std::uint64_t>(numbers_.left); break;
      case kRight: numbers[i] = static_cast<std::uint64_t>(numbers_.right); break;
      default: places[i] = addresses[roles_[i]];
    }
  }
  places[roles_.size() + 1] = workspace;
  return call_->start({.places = places, .numbers = numbers}, stream);
}

Result<Plans::Key, Failure> Plans::key_of(const Problem& problem) {
  const auto whole = normalised(problem);
  if (!whole) return gemm::failed(FailureKind::kInvalid, whole.error());
  const auto device = gemm::library().current_device();
  if (!device) return Unexpected{device.error()};
  return Key{*device, *whole};
}

Result<const Plan*, Failure> Plans::find(const Problem& problem) {
  const auto key = key_of(problem);
  if (!key) return Unexpected{key.error()};
  return plans_.find(*key);
}

Result<const Plan*, Failure> Plans::plan(const Problem& problem) {
  const auto key = key_of(problem);
  if (!key) return Unexpected{key.error()};
  const auto plan = plans_.find_or_make(*key, [&] { return Plan::make(key->first, key->second); });
  if (!plan) return Unexpected{plan.error()};
  return *plan;
}

Plans& plans() {
  static auto* const all = new Plans;
  return *all;
}

}  // namespace kiln::attention
