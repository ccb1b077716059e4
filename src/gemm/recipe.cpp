#include "gemm/recipe.h"

#include <algorithm>

#include "gemm/contract.h"
#include "support/format.h"

namespace kiln::gemm {

namespace {

constexpr int kMapUnit = 16;  // bytes; what a tensor map shows begins at a multiple

std::size_t index_of(Role role) { return static_cast<std::size_t>(role); }

// Whether the operand is an array without gaps, in a batch each product's right behind the one
// before: the problem has no pitch and no distance for it.
bool lies_whole(Role role) {
  return role == Role::kScaleA || role == Role::kScaleB || role == Role::kMetadata;
}

// A buffer that the launches see.
struct Buffer {
  Pointer pointer;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
};

struct Cook {
  const ir::Function& function;
  const Problem& problem;
  const target::Arch& arch;
  Contract contract;
  std::vector<emit::LaunchPlan> plans;
  ir::Arguments arguments = {};
  std::vector<std::optional<Buffer>> buffers = {};  // by ValueId
  const runtime::HostProgram* host = nullptr;       // while it runs
  Recipe recipe = {};

  [[nodiscard]] Error wrong(std::string reason) const {
    return {"the kernel does not fit", text(problem), std::move(reason)};
  }
  [[nodiscard]] Result<void> check_entry() const;
  [[nodiscard]] Result<void> check_gaps() const;
  Pointer reserve(DType dtype, const std::vector<std::int64_t>& shape);
  void lay_out_params();
  Result<void> allocate(ir::ValueId value, const std::vector<std::int64_t>& shape,
                        std::optional<double> initial);
  Result<void> launch(ir::OpId op);
  [[nodiscard]] Slot slot_of(const emit::ParamSlot& slot) const;
  [[nodiscard]] Result<MapRecipe> map_of(const emit::MapPlan& plan) const;
  Result<void> cook();
};

Result<void> Cook::check_entry() const {
  for (const ir::EntryCheck& check : function.checks) {
    if (ir::holds(check, contract.vars)) continue;
    return Unexpected{
        wrong(format("{}: {} is {} and {} is {}", check.message, function.text(check.left),
                     check.left.evaluate(contract.vars), function.text(check.right),
                     check.right.evaluate(contract.vars)))};
  }
  return {};
}

// Rows that are not where the declaration has them are seen through maps alone.
Result<void> Cook::check_gaps() const {
  for (const emit::LaunchPlan& plan : plans) {
    for (const emit::ParamSlot& slot : plan.slots) {
      if (slot.kind != emit::SlotKind::kParam) continue;
      const Bound& bound = *contract.params[slot.param];
      std::int64_t step = 1;
      for (std::size_t d = bound.shape.size(); d-- > 1;) {
        step *= bound.shape[d];
        if (bound.strides[d - 1] == step) continue;
        return Unexpected{wrong(
            format("it takes `{}` without gaps, dimension {} steps by {} elements and not by {}",
                   function.params[slot.param].name, d - 1, bound.strides[d - 1], step))};
      }
    }
  }
  return {};
}

Pointer Cook::reserve(DType dtype, const std::vector<std::int64_t>& shape) {
  const Pointer pointer{.role = Role::kWorkspace,
                        .offset = static_cast<std::int64_t>(recipe.workspace_bytes)};
  std::int64_t bytes = size_bytes(dtype);
  for (const std::int64_t extent : shape) bytes *= extent;
  const std::int64_t units = (bytes + kWorkspaceUnit - 1) / kWorkspaceUnit;
  recipe.workspace_bytes += static_cast<std::size_t>(units * kWorkspaceUnit);
  return pointer;
}

void Cook::lay_out_params() {
  buffers.resize(function.values.size());
  recipe.used.resize(kRoleCount);
  recipe.repeat_bytes.resize(kRoleCount);
  recipe.repeats = contract.batched ? 1 : problem.batch;
  const std::pair<Role, std::int64_t> spaced[] = {
      {Role::kA, problem.a_spacing.batch},
      {Role::kB, problem.b_spacing.batch},
      {Role::kC, problem.c_spacing.batch},
      {Role::kResidual, problem.residual_spacing.batch}};
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    if (!contract.params[i]) continue;
    const Bound& bound = *contract.params[i];
    const ir::ValueId value = function.params[i].value;
    const DType dtype = function.view_type(value).dtype;
    const Pointer pointer =
        bound.role == Role::kWorkspace ? reserve(dtype, bound.shape) : Pointer{.role = bound.role};
    buffers[value.index] = Buffer{pointer, dtype, bound.shape, bound.strides};
    recipe.used[index_of(bound.role)] = true;
    for (const auto& [role, elements] : spaced) {
      if (role == bound.role) recipe.repeat_bytes[index_of(role)] = elements * size_bytes(dtype);
    }
    if (!lies_whole(bound.role)) continue;
    std::int64_t bytes = size_bytes(dtype);
    for (const std::int64_t extent : bound.shape) bytes *= extent;
    recipe.repeat_bytes[index_of(bound.role)] = bytes;
  }
}

Result<void> Cook::allocate(ir::ValueId value, const std::vector<std::int64_t>& shape,
                            std::optional<double> initial) {
  std::optional<Buffer>& held = buffers[value.index];
  const DType dtype = function.view_type(value).dtype;
  if (initial) {
    return Unexpected{wrong(format("`{}` has an initial value", function.values[value].name))};
  }
  if (!elements_fit(dtype, shape)) {
    return Unexpected{wrong(format("`{}` is too large", function.values[value].name))};
  }
  if (!held || held->shape != shape) held = Buffer{reserve(dtype, shape), dtype, shape, {}};
  return {};
}

Slot Cook::slot_of(const emit::ParamSlot& slot) const {
  switch (slot.kind) {
    case emit::SlotKind::kMap: return {.source = SlotSource::kMap, .map = slot.map};
    case emit::SlotKind::kParam:
    case emit::SlotKind::kAlloc:
      return {.source = SlotSource::kPointer, .pointer = buffers[slot.value.index]->pointer};
    case emit::SlotKind::kScalar:
      if (slot.value == contract.alpha) return {.source = SlotSource::kAlpha, .dtype = slot.dtype};
      if (slot.value == contract.beta) return {.source = SlotSource::kBeta, .dtype = slot.dtype};
      break;
    case emit::SlotKind::kVar: break;
  }
  return {.bits = runtime::value_bits(slot, *host)};
}

Result<MapRecipe> Cook::map_of(const emit::MapPlan& plan) const {
  const Buffer& buffer = *buffers[plan.map.buffer.index];
  if (buffer.pointer.role != Role::kWorkspace && problem.alignment < kMapUnit) {
    return Unexpected{
        wrong(format("`{}` must begin at a multiple of {} bytes", plan.array.name, kMapUnit))};
  }
  runtime::TensorMapRequest request = runtime::map_request(plan, host->vars());
  request.dtype = buffer.dtype;
  if (request.shape == buffer.shape) request.strides = buffer.strides;
  const auto arguments = runtime::tensor_map_arguments(request);
  if (!arguments) return Unexpected{arguments.error()};
  return MapRecipe{plan.array.name, buffer.pointer, *arguments};
}

Result<void> Cook::launch(ir::OpId op) {
  const auto plan = std::ranges::find(plans, op, &emit::LaunchPlan::op);
  KILN_CHECK(plan != plans.end(), "operation {} has no launch plan", op.index);
  if (plan->slots.size() > kSlotsMax || plan->maps.size() > kMapsMax) {
    return Unexpected{wrong(format("`{}` takes {} parameters and {} maps, {} and {} are possible",
                                   plan->kernel_name, plan->slots.size(), plan->maps.size(),
                                   kSlotsMax, kMapsMax))};
  }
  auto launch = runtime::sized_launch(*plan, host->vars(), arch);
  if (!launch) return Unexpected{launch.error()};
  LaunchRecipe step{.launch = std::move(*launch), .slots = {}, .maps = {}};
  for (const emit::MapPlan& each : plan->maps) {
    auto map = map_of(each);
    if (!map) return Unexpected{map.error()};
    step.maps.push_back(std::move(*map));
  }
  for (const emit::ParamSlot& slot : plan->slots) step.slots.push_back(slot_of(slot));
  recipe.launches.emplace_back(std::move(step));
  return {};
}

Result<void> Cook::cook() {
  if (auto fits = check_entry(); !fits) return fits;
  if (auto fits = check_gaps(); !fits) return fits;
  lay_out_params();
  arguments.vars = contract.vars;
  arguments.params.resize(function.params.size());
  runtime::HostProgram program(function, arguments);
  host = &program;
  const auto done = program.run(
      {.allocate = [&](ir::ValueId value, const std::vector<std::int64_t>& shape,
                       std::optional<double> initial) { return allocate(value, shape, initial); },
       .launch = [&](ir::OpId op) { return launch(op); }});
  host = nullptr;
  if (done && program.returned().valid()) return Unexpected{wrong("it returns a value")};
  return done;
}

}  // namespace

std::string workspace_mistake(std::size_t needed, runtime::cuda::DevicePtr address,
                              std::size_t bytes) {
  if (needed == 0) return {};
  if (address == 0) return format("the workspace is null, {} bytes are needed", needed);
  if (bytes < needed) return format("the workspace has {} bytes, {} are needed", bytes, needed);
  const auto past = address % static_cast<runtime::cuda::DevicePtr>(kWorkspaceUnit);
  if (past == 0) return {};
  return format("the workspace begins {} bytes past a multiple of {}", past, kWorkspaceUnit);
}

Result<Recipe> make_recipe(const Program& program, const Problem& problem,
                           const target::Arch& arch) {
  const ir::Function& function = program.function();
  auto contract = bind_contract(function, problem);
  if (!contract) return Unexpected{contract.error()};
  Cook cook{.function = function,
            .problem = problem,
            .arch = arch,
            .contract = std::move(*contract),
            .plans = emit::plan_launches(program.module, function)};
  if (auto cooked = cook.cook(); !cooked) return Unexpected{cooked.error()};
  return std::move(cook.recipe);
}

}  // namespace kiln::gemm
