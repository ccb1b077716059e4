#include "emit/cuda/launch_plan.h"

#include <algorithm>

#include "emit/cuda/names.h"
#include "emit/cuda/uses.h"
#include "support/format.h"

namespace kiln::emit {

using ir::Function;
using ir::Param;
using ir::ValueId;
using ir::VarId;

namespace {

DType scalar_dtype(const ir::Type& type) {
  if (const auto* scalar = std::get_if<ir::ScalarType>(&type)) return scalar->dtype;
  if (const auto* cell = std::get_if<ir::CellType>(&type)) return cell->dtype;
  return DType::kS32;
}

// Index variables are computed with as int, or as long long when they were declared wider.
DType var_dtype(const Function& function, VarId var) {
  for (const Param& param : function.params) {
    if (param.var == var && info(scalar_dtype(function.type(param.value))).bits > 32) {
      return DType::kS64;
    }
  }
  for (const ir::Op& op : function.ops) {
    const auto* bind = std::get_if<ir::Bind>(&op.data);
    if (bind == nullptr || bind->var != var) continue;
    return info(scalar_dtype(function.type(bind->value))).bits > 32 ? DType::kS64 : DType::kS32;
  }
  return DType::kS32;
}

template <class T>
bool contains(const std::vector<T>& items, const T& item) {
  return std::ranges::find(items, item) != items.end();
}

ParamSlot value_slot(const Function& function, const KernelUses& uses, ValueId value) {
  ParamSlot slot{.name = function.values[value].name, .value = value};
  if (const auto* view = std::get_if<ir::ViewType>(&function.type(value))) {
    slot.kind = SlotKind::kAlloc;
    slot.dtype = view->dtype;
    slot.written = uses.written_roots[value.index];
  } else {
    slot.kind = SlotKind::kScalar;
    slot.dtype = scalar_dtype(function.type(value));
  }
  return slot;
}

ParamSlot var_slot(const Function& function, VarId var) {
  return {.kind = SlotKind::kVar,
          .name = function.vars[var].name,
          .dtype = var_dtype(function, var),
          .var = var};
}

ParamSlot buffer_slot(const Function& function, const KernelUses& uses, ValueId buffer) {
  ParamSlot slot = value_slot(function, uses, buffer);
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    if (function.params[i].value != buffer) continue;
    slot.kind = SlotKind::kParam;
    slot.name = function.params[i].name;
    slot.param = i;
  }
  return slot;
}

// The maps of the kernel's bulk copies, in the order of their first uses.
std::vector<MapPlan> maps_of(const Function& function, const KernelUses& uses) {
  std::vector<MapPlan> maps;
  for (const ir::OpId id : uses.bulk_copies) {
    ir::TensorMap map =
        ir::in_buffer_order(ir::tensor_map_of(function, std::get<ir::Copy>(function.ops[id].data)));
    if (std::ranges::find(maps, map, &MapPlan::map) != maps.end()) continue;
    ParamSlot array = buffer_slot(function, uses, map.buffer);
    maps.push_back({.map = std::move(map), .array = std::move(array)});
  }
  return maps;
}

// Maps, then parameters in the user's order, then buffers and scalars of the host part, then
// dimensions.
std::vector<ParamSlot> slots_of(const Function& function, const KernelUses& uses,
                                const std::vector<MapPlan>& maps, std::string_view kernel) {
  std::vector<ParamSlot> slots;
  for (std::size_t i = 0; i < maps.size(); ++i) {
    slots.push_back(
        {.kind = SlotKind::kMap, .name = format("{}_map", maps[i].array.name), .map = i});
  }
  std::vector<ValueId> given;
  std::vector<VarId> given_vars;
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    const Param& param = function.params[i];
    if (param.var.valid() && contains(uses.outer_vars, param.var)) {
      slots.push_back(var_slot(function, param.var));
      given_vars.push_back(param.var);
    }
    if (!contains(uses.outer_values, param.value)) continue;
    slots.push_back(value_slot(function, uses, param.value));
    given.push_back(param.value);
    slots.back().name = param.name;
    slots.back().param = i;
    if (slots.back().kind == SlotKind::kAlloc) slots.back().kind = SlotKind::kParam;
  }
  for (const ValueId value : uses.outer_values) {
    if (!contains(given, value)) slots.push_back(value_slot(function, uses, value));
  }
  for (const VarId var : uses.outer_vars) {
    if (!contains(given_vars, var)) slots.push_back(var_slot(function, var));
  }
  NameTable names;
  names.claim(kernel);  // its launcher has to mean the kernel by it
  for (ParamSlot& slot : slots) slot.name = names.claim(slot.name);
  return slots;
}

LaunchPlan plan_launch(const Function& function, ir::OpId launch, NameTable& kernel_names) {
  const auto& parallel = std::get<ir::Parallel>(function.ops[launch].data);
  const KernelUses uses = kernel_uses(function, launch);
  std::vector<MapPlan> maps = maps_of(function, uses);
  const std::string kernel =
      kernel_names.claim_kernel(parallel.name.empty() ? function.name : parallel.name);
  LaunchPlan plan{.op = launch,
                  .kernel_name = kernel,
                  .slots = slots_of(function, uses, maps, kernel),
                  .maps = std::move(maps),
                  .cluster = parallel.cluster_shape,
                  .threads = parallel.threads,
                  .threads_max = parallel.threads.constant().value_or(parallel.threads_max),
                  .bounds = parallel.bounds,
                  .registers_max = parallel.registers_max,
                  .shared_bytes = parallel.shared_more + parallel.shared_bytes,
                  .shared_max = parallel.shared_max,
                  .opts_in = parallel.opts_in,
                  .overlaps = parallel.overlaps,
                  .admits_next = parallel.admits_next,
                  .cooperative = parallel.cooperative};
  for (const VarId var : parallel.vars) plan.grid.push_back(function.vars[var].extent);
  return plan;
}

}  // namespace

std::int64_t LaunchPlan::cluster_blocks() const {
  std::int64_t blocks = 1;
  for (const std::int64_t extent : cluster) blocks *= extent;
  return blocks;
}

std::vector<LaunchPlan> plan_launches(const ir::Module& module, const Function& function) {
  NameTable kernel_names;
  std::vector<LaunchPlan> plans;
  for (const Function& each : module.functions) {
    for (const ir::OpId launch : ir::launches(each)) {
      LaunchPlan plan = plan_launch(each, launch, kernel_names);
      if (&each == &function) plans.push_back(std::move(plan));
    }
  }
  return plans;
}

}  // namespace kiln::emit
