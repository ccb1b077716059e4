#include "attention/bound_kernel.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "support/format.h"

namespace kiln::attention {

using gemm::Failure;
using gemm::FailureKind;
using runtime::cuda::DevicePtr;

namespace {

constexpr std::size_t kParametersMax = 16;

// A kernel's parameters as those of a call.
struct Binding {
  ir::Arguments arguments = {};
  std::vector<std::size_t> roles = {};                  // as BoundKernel has them
  std::vector<std::vector<std::int64_t>> strides = {};  // by parameter
};

// "q, k and scale".
std::string listed(const std::vector<std::string_view>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += i + 1 == names.size() ? " and " : ", ";
    out += names[i];
  }
  return out;
}

std::vector<std::string_view> parameters_of(const Signature& signature) {
  std::vector<std::string_view> out;
  for (const Signature::Tensor& tensor : signature.tensors) out.push_back(tensor.name);
  out.insert(out.end(), signature.numbers.begin(), signature.numbers.end());
  return out;
}

Result<void> bind_dimensions(const ir::Function& function, const Signature& signature,
                             Binding& binding) {
  using Dimension = std::pair<std::string_view, std::int64_t>;
  binding.arguments.vars.resize(function.vars.size());
  for (std::uint32_t v = 0; v < function.vars.size(); ++v) {
    const ir::Var& var = function.vars[ir::VarId{v}];
    if (!ir::known_at_launch(var.kind)) continue;
    const auto found = std::ranges::find(signature.dimensions, var.name, &Dimension::first);
    if (found == signature.dimensions.end()) {
      std::vector<std::string_view> names;
      for (const Dimension& each : signature.dimensions) names.push_back(each.first);
      return Unexpected{does_not_fit(
          signature.problem, format("its dimension `{}` is none of {}", var.name, listed(names)))};
    }
    binding.arguments.vars[v] = found->second;
  }
  return {};
}

Result<void> bind_tensor(const ir::Function& function, const Signature& signature,
                         std::size_t param, Binding& binding) {
  const ir::ViewType& type = function.view_type(function.params[param].value);
  const Signature::Tensor& wanted = signature.tensors[binding.roles[param]];
  Tensor& tensor = binding.arguments.params[param].tensor;
  tensor.dtype = type.dtype;
  for (const ir::Expr& extent : type.shape) {
    tensor.shape.push_back(extent.evaluate(binding.arguments.vars));
  }
  binding.strides[param] = wanted.strides;
  if (type.dtype == wanted.dtype && tensor.shape == wanted.shape) return {};
  return Unexpected{
      does_not_fit(signature.problem,
                   format("its `{}` is {} {}, the problem has {} {}", wanted.name, name(type.dtype),
                          shape_text(tensor.shape), name(wanted.dtype), shape_text(wanted.shape)))};
}

Result<void> check_entry(const ir::Function& function, const Signature& signature,
                         const ir::Arguments& arguments) {
  for (const ir::EntryCheck& check : function.checks) {
    if (ir::holds(check, arguments.vars)) continue;
    return Unexpected{
        does_not_fit(signature.problem,
                     format("{}: {} is {} and {} is {}", check.message, function.text(check.left),
                            check.left.evaluate(arguments.vars), function.text(check.right),
                            check.right.evaluate(arguments.vars)))};
  }
  return {};
}

Result<Binding> bind(const ir::Function& function, const Signature& signature) {
  Binding out;
  if (auto bound = bind_dimensions(function, signature, out); !bound) {
    return Unexpected{bound.error()};
  }
  const std::vector<std::string_view> known = parameters_of(signature);
  out.arguments.params.resize(function.params.size());
  out.strides.resize(function.params.size());
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    const auto found = std::ranges::find(known, function.params[i].name);
    if (found == known.end() || i == kParametersMax) {
      return Unexpected{does_not_fit(
          signature.problem,
          format("its parameter `{}` is none of {}", function.params[i].name, listed(known)))};
    }
    out.roles.push_back(static_cast<std::size_t>(found - known.begin()));
    if (out.roles.back() >= signature.tensors.size()) continue;
    if (auto bound = bind_tensor(function, signature, i, out); !bound) {
      return Unexpected{bound.error()};
    }
  }
  if (auto holds = check_entry(function, signature, out.arguments); !holds) {
    return Unexpected{holds.error()};
  }
  return out;
}

}  // namespace

Error does_not_fit(const std::string& problem, std::string reason) {
  return {"the kernel does not fit", problem, std::move(reason)};
}

Error cannot_start(std::string reason) { return {"cannot start attention", {}, std::move(reason)}; }

Result<void> check_address(std::string_view name, DevicePtr address, std::size_t unit) {
  if (address == 0) return Unexpected{cannot_start(format("{} is null", name))};
  if (address % unit == 0) return {};
  return Unexpected{
      cannot_start(format("{} begins {} bytes past a multiple of {}", name, address % unit, unit))};
}

Result<void> check_scale(float scale) {
  if (std::isfinite(scale) && scale > 0) return {};
  return Unexpected{cannot_start(format("the scale is {}, a number above 0 is needed", scale))};
}

Result<BoundKernel, Failure> BoundKernel::make(int device, const gemm::Choice& choice,
                                               const Signature& signature) {
  const auto gpu = gemm::library().gpu(device);
  if (!gpu) return Unexpected{gpu.error()};
  const auto program = gemm::library().program(device, **gpu, choice);
  if (!program) return Unexpected{program.error()};
  const ir::Function& function = (*program)->function();
  // Before NVRTC compiles it: a problem that the kernel does not fit is refused without.
  auto binding = bind(function, signature);
  if (!binding) return gemm::failed(FailureKind::kUnsupported, binding.error());
  const auto kernel = gemm::library().kernel(device, **gpu, choice, *program);
  if (!kernel) return Unexpected{kernel.error()};
  auto call = runtime::CallPlan::make(**gpu, (*kernel)->kernels.module,
                                      {.module = (*program)->module,
                                       .function = function,
                                       .arguments = binding->arguments,
                                       .strides = binding->strides});
  if (!call) return gemm::failed(FailureKind::kUnsupported, call.error());
  if ((*call)->returned()) {
    return gemm::failed(FailureKind::kUnsupported,
                        does_not_fit(signature.problem, "it returns something"));
  }
  BoundKernel out;
  out.kernel_ = *kernel;
  out.call_ = std::move(*call);
  out.roles_ = std::move(binding->roles);
  return out;
}

Result<void> BoundKernel::start(const Operands& operands, DevicePtr workspace,
                                runtime::cuda::Stream stream) const {
  // Behind the parameters: of what is returned, which is nothing, and of the workspace.
  std::array<DevicePtr, kParametersMax + 2> places = {};
  std::array<std::uint64_t, kParametersMax> numbers = {};
  const std::size_t tensors = operands.addresses.size();
  for (std::size_t i = 0; i < roles_.size(); ++i) {
    if (roles_[i] < tensors) {
      places[i] = operands.addresses[roles_[i]];
    } else {
      numbers[i] = operands.numbers[roles_[i] - tensors];
    }
  }
  places[roles_.size() + 1] = workspace;
  return call_->start({.places = places, .numbers = numbers}, stream);
}

}  // namespace kiln::attention
