// The functions of kiln/kiln.h that prepare a kernel for a GPU and launch it.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>

#include "api/arguments.h"
#include "api/devices.h"
#include "reference/outputs.h"
#include "runtime/call_plan.h"
#include "runtime/launch.h"

namespace kiln::api {

using runtime::cuda::DevicePtr;

constexpr std::size_t kParametersMax = 256;

// What a plan knows of a parameter, or of what its function returns.
struct Argument {
  std::string name;
  DType dtype = DType::kF32;
  bool is_tensor = false;
  bool is_written = false;   // the caller's memory is
  bool is_integer = false;   // of a number: `integer` counts
  bool in_variable = false;  // kernels have it as an integer of 32 bits or more
  bool is_deciding = false;  // the plan is of one value, `bits`
  std::size_t bytes = 0;     // of a tensor
  std::uint64_t bits = 0;
};

}  // namespace kiln::api

struct kiln_plan {
  kiln::api::DiagnosticRows diagnostics;
  std::string kernel;
  int device = 0;
  std::unique_ptr<kiln::runtime::CallPlan> call;  // null: refused
  std::vector<kiln::api::Argument> arguments;  // by parameter, then what is returned, if a tensor
  bool returns_tensor = false;
  std::string result_name;
  kiln_array result = {};
  kiln::Tensor number;  // what is returned, if no tensor
};

namespace kiln::api {

namespace {

// A plan on its way.
struct Planning {
  const kiln_program& program;
  Bound bound;
  int device = 0;
  std::uint64_t steps_max = kStepsMax;  // of the host part

  [[nodiscard]] const ir::Function& function() const {
    return program.program.decided.functions[bound.kernel];
  }
};

std::size_t bytes_of(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.elements() * size_bytes(tensor.dtype));
}

void describe_arguments(const Planning& planning, kiln_plan& plan) {
  const ir::Function& function = planning.function();
  const std::vector<bool> deciding =
      runtime::deciding_numbers(planning.program.program.decided, function);
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    const ir::Param& param = function.params[i];
    Argument argument{.name = param.name, .dtype = DType::kS32};
    if (param.value.valid()) {
      const ir::Type& type = function.type(param.value);
      const auto* view = std::get_if<ir::ViewType>(&type);
      const auto* scalar = std::get_if<ir::ScalarType>(&type);
      argument.is_tensor = view != nullptr;
      if (view != nullptr) argument.dtype = view->dtype;
      if (scalar != nullptr) argument.dtype = scalar->dtype;
    }
    const ir::Arguments::Value& value = planning.bound.arguments.params[i];
    if (argument.is_tensor) {
      argument.bytes = bytes_of(value.tensor);
    } else {
      argument.is_integer = is_integer(argument.dtype) || argument.dtype == DType::kBool;
      argument.in_variable = param.var.valid();
      argument.is_deciding = deciding[i];
      argument.bits =
          argument.in_variable
              ? static_cast<std::uint64_t>(planning.bound.arguments.vars[param.var.index])
              : encode(argument.dtype, value.scalar);
    }
    plan.arguments.push_back(std::move(argument));
  }
  for (const reference::OutputSlot& slot : reference::output_slots(function)) {
    if (slot.param) plan.arguments[*slot.param].is_written = true;
  }
}

// What the function returns, as a tensor of the caller's or as a number that is known now.
void describe_result(const Planning& planning, kiln_plan& plan) {
  const auto& returned = plan.call->returned();
  if (!returned) return;
  for (const reference::OutputSlot& slot : reference::output_slots(planning.function())) {
    if (!slot.param) plan.result_name = slot.name;
  }
  plan.result = {.name = plan.result_name.c_str(),
                 .data = nullptr,
                 .dtype = name(returned->dtype).data(),
                 .shape = returned->shape.data(),
                 .rank = returned->shape.size()};
  if (returned->number) {
    plan.number = Tensor::zeros(returned->dtype, {});
    plan.number.set(0, *returned->number);
    plan.result.data = plan.number.bytes.data();
    return;
  }
  plan.returns_tensor = true;
  plan.arguments.push_back({.name = plan.result_name,
                            .dtype = returned->dtype,
                            .is_tensor = true,
                            .is_written = true,
                            .bytes = bytes_of(Tensor{returned->dtype, returned->shape, {}})});
}

Result<void, Failure> make_plan(const Planning& planning, kiln_plan& plan) {
  const io::Program& program = planning.program.program;
  const auto gpu = devices().gpu(planning.device);
  if (!gpu) return Unexpected{gpu.error()};
  if (program.decided.arch->capability > (*gpu)->arch().capability) {
    return Unexpected{
        Failure{KILN_UNSUPPORTED, Error{"cannot run on", (*gpu)->name(),
                                        format("the kernel is for {}, the GPU is {}",
                                               program.decided.arch->name, (*gpu)->arch().name)}}};
  }
  const auto kernels = devices().kernels(planning.device, program, planning.function());
  if (!kernels) return Unexpected{kernels.error()};
  auto call = runtime::CallPlan::make(**gpu, (*kernels)->module,
                                      {.module = program.decided,
                                       .function = planning.function(),
                                       .arguments = planning.bound.arguments,
                                       .steps_max = planning.steps_max});
  if (!call) return Unexpected{Failure{KILN_UNSUPPORTED, call.error()}};
  plan.call = std::move(*call);
  plan.kernel = planning.function().name;
  plan.device = planning.device;
  describe_arguments(planning, plan);
  describe_result(planning, plan);
  return {};
}

kiln_status end_by(const Failure& failure) { return fail(failure.status, failure.error.text()); }

kiln_status prepare(const kiln_program& program, const kiln_call& call, std::int32_t device,
                    kiln_plan& plan) {
  Diagnostics diags;
  auto bound = bind_call(program, call, io::Use::kLaunch, 0, diags);
  plan.diagnostics.set(diags, program.program.sources);
  if (!bound) {
    const std::string& text = bound.error().text;
    return fail(KILN_INVALID, text.empty() ? plan.diagnostics.text : text);
  }
  Planning planning{.program = program, .bound = std::move(*bound), .device = device};
  if (planning.function().params.size() > kParametersMax) {
    return fail(KILN_UNSUPPORTED, format("`{}` has {} parameters, and {} are launched at most",
                                         planning.function().name,
                                         planning.function().params.size(), kParametersMax));
  }
  if (call.steps_max != 0) planning.steps_max = call.steps_max;
  if (device == KILN_CURRENT_DEVICE) {
    const auto current = devices().current();
    if (!current) return end_by(current.error());
    planning.device = *current;
  }
  const auto made = make_plan(planning, plan);
  return made ? KILN_OK : end_by(made.error());
}

// What one launch has, in the form that a plan takes.
struct Given {
  std::array<DevicePtr, kParametersMax + 2> places;
  std::array<std::uint64_t, kParametersMax> numbers;
};

// The errors' texts are made where they are needed: a launch that goes well allocates nothing.
kiln_status refused(const kiln_plan& plan, kiln_status status, std::string reason) {
  return fail(status, Error{"cannot launch", plan.kernel, std::move(reason)}.text());
}

kiln_status take_tensor(const kiln_plan& plan, const Argument& argument, const void* data,
                        DevicePtr& place) {
  place = static_cast<DevicePtr>(reinterpret_cast<std::uintptr_t>(data));
  if (place == 0) return refused(plan, KILN_INVALID, format("`{}` is null", argument.name));
  const DevicePtr past = place % runtime::kTensorUnit;
  if (past == 0) return KILN_OK;
  return refused(plan, KILN_INVALID,
                 format("`{}` begins {} bytes past a multiple of {}, and kernels move {} bytes at "
                        "once; a copy begins at one",
                        argument.name, past, runtime::kTensorUnit, runtime::kTensorUnit));
}

std::uint64_t bits_of(const Argument& argument, const kiln_value& value) {
  if (argument.in_variable) return static_cast<std::uint64_t>(value.integer);
  const double number = argument.is_integer ? static_cast<double>(value.integer) : value.real;
  return encode(argument.dtype, number);
}

kiln_status take_number(const kiln_plan& plan, const Argument& argument, const kiln_value& value,
                        std::uint64_t& bits) {
  if (is_integer(argument.dtype) && !argument.is_deciding) {
    const DTypeInfo& type = info(argument.dtype);
    const double low = type.kind == NumberKind::kSigned ? -type.max - 1 : 0;
    const auto given = static_cast<double>(value.integer);
    if (given < low || given > type.max) {
      return refused(plan, KILN_INVALID,
                     format("`{}` is {}, and {} holds {} to {}", argument.name, value.integer,
                            name(argument.dtype), low, type.max));
    }
    const bool far =
        value.integer > runtime::kCoordinateMax || value.integer < -runtime::kCoordinateMax;
    if (argument.in_variable && type.bits <= 32 && far) {
      return refused(plan, KILN_INVALID,
                     format("`{}` is {}, at most {} is possible", argument.name, value.integer,
                            runtime::kCoordinateMax));
    }
  }
  bits = bits_of(argument, value);
  if (!argument.is_deciding || bits == argument.bits) return KILN_OK;
  return refused(plan, KILN_INVALID,
                 format("`{}` decides what is launched, and it is another number than the plan was "
                        "made for; a plan for it is needed",
                        argument.name));
}

// Of what is written and something else; a plan's tensors are few.
kiln_status check_apart(const kiln_plan& plan, const Given& given) {
  for (std::size_t i = 0; i < plan.arguments.size(); ++i) {
    const Argument& written = plan.arguments[i];
    if (!written.is_written) continue;
    for (std::size_t j = 0; j < plan.arguments.size(); ++j) {
      const Argument& other = plan.arguments[j];
      if (j == i || !other.is_tensor) continue;
      const bool apart = given.places[i] + written.bytes <= given.places[j] ||
                         given.places[j] + other.bytes <= given.places[i];
      if (apart || written.bytes == 0 || other.bytes == 0) continue;
      return refused(plan, KILN_INVALID,
                     format("`{}`, which the kernel writes, shares memory with `{}`", written.name,
                            other.name));
    }
  }
  return KILN_OK;
}

kiln_status take_values(const kiln_plan& plan, const kiln_value* values, Given& given) {
  for (std::size_t i = 0; i < plan.arguments.size(); ++i) {
    const Argument& argument = plan.arguments[i];
    const kiln_status taken = argument.is_tensor
                                  ? take_tensor(plan, argument, values[i].data, given.places[i])
                                  : take_number(plan, argument, values[i], given.numbers[i]);
    if (taken != KILN_OK) return taken;
  }
  return check_apart(plan, given);
}

kiln_status take_workspace(const kiln_plan& plan, const void* workspace, std::size_t bytes,
                           DevicePtr& place) {
  const std::size_t needed = plan.call->workspace_bytes();
  place = static_cast<DevicePtr>(reinterpret_cast<std::uintptr_t>(workspace));
  if (needed == 0) return KILN_OK;
  if (place != 0 && bytes >= needed && place % runtime::kWorkspaceUnit == 0) return KILN_OK;
  return refused(
      plan, KILN_WORKSPACE,
      format("it needs a workspace of {} bytes at a multiple of {}, and {} bytes at {:#x} "
             "are given",
             needed, runtime::kWorkspaceUnit, bytes, place));
}

}  // namespace

}  // namespace kiln::api

namespace api = kiln::api;

extern "C" {

kiln_status kiln_prepare(const kiln_program* program, const kiln_call* call, int32_t device,
                         kiln_plan** plan) {
  if (plan == nullptr) return api::fail(KILN_INVALID, "the place for the plan is null");
  *plan = nullptr;
  if (program == nullptr || call == nullptr) {
    return api::fail(KILN_INVALID, "the program or the call is null");
  }
  if (!program->compiled) {
    return api::fail(KILN_INVALID, "the program has errors and cannot be launched");
  }
  auto made = std::make_unique<kiln_plan>();
  const kiln_status status = api::prepare(*program, *call, device, *made);
  *plan = made.release();
  return status;
}

void kiln_plan_free(kiln_plan* plan) { delete plan; }

const kiln_diagnostic* kiln_plan_diagnostics(const kiln_plan* plan, size_t* count) {
  if (count != nullptr) *count = plan->diagnostics.rows.size();
  return plan->diagnostics.rows.data();
}

int32_t kiln_plan_device(const kiln_plan* plan) { return plan->device; }

size_t kiln_plan_workspace(const kiln_plan* plan) {
  return plan->call != nullptr ? plan->call->workspace_bytes() : 0;
}

const kiln_array* kiln_plan_result(const kiln_plan* plan) {
  return plan->result.name != nullptr ? &plan->result : nullptr;
}

kiln_status kiln_launch(const kiln_plan* plan, const kiln_value* values, void* workspace,
                        size_t workspace_bytes, void* cuda_stream) {
  if (plan == nullptr || plan->call == nullptr) {
    return api::fail(KILN_INVALID, "the plan is null, or one that was refused");
  }
  if (values == nullptr && !plan->arguments.empty()) {
    return api::fail(KILN_INVALID, "the values are null");
  }
  api::Given given;
  kiln_status taken = api::take_values(*plan, values, given);
  if (taken != KILN_OK) return taken;
  // What is returned and the workspace stand behind all parameters, whether it returns or not.
  const std::size_t parameters = plan->arguments.size() - (plan->returns_tensor ? 1 : 0);
  taken = api::take_workspace(*plan, workspace, workspace_bytes, given.places[parameters + 1]);
  if (taken != KILN_OK) return taken;
  const auto done = plan->call->start(
      {.places = std::span(given.places).first(parameters + 2), .numbers = given.numbers},
      static_cast<kiln::runtime::cuda::Stream>(cuda_stream));
  return done ? KILN_OK : api::fail(KILN_DEVICE, done.error().text());
}

}  // extern "C"
