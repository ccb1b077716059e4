#include "emit/cuda/launcher.h"

#include <algorithm>

#include "emit/cuda/launch_size.h"
#include "emit/cuda/names.h"
#include "support/escape.h"
#include "support/format.h"

namespace kiln::emit {

namespace {

bool is_pointer(const ParamSlot& slot) {
  return slot.kind == SlotKind::kParam || slot.kind == SlotKind::kAlloc;
}

std::string parameter_text(const ParamSlot& slot) {
  if (slot.kind == SlotKind::kMap) {
    return format("const __grid_constant__ kiln::TensorMap {}", slot.name);
  }
  return format("{}{}{} {}", is_pointer(slot) && !slot.written ? "const " : "",
                type_name(slot.dtype), is_pointer(slot) ? "*" : "", slot.name);
}

// A map's buffer stands where the user's order has it, or behind the parameters.
void add_array(std::vector<ParamSlot>& slots, const ParamSlot& array) {
  if (std::ranges::find(slots, array.value, &ParamSlot::value) != slots.end()) return;
  const auto at = std::ranges::find_if(slots, [&](const ParamSlot& slot) {
    return slot.kind != SlotKind::kParam ||
           (array.kind == SlotKind::kParam && slot.param > array.param);
  });
  slots.insert(at, array);
}

std::vector<ir::VarId> host_vars(const LaunchPlan& plan) {
  std::vector<ir::VarId> used;
  for (const ir::Expr& extent : plan.grid) extent.collect_vars(used);
  plan.threads.collect_vars(used);
  plan.shared_bytes.collect_vars(used);
  for (const MapPlan& map : plan.maps) {
    for (const ir::Expr& extent : map.map.extents) extent.collect_vars(used);
    for (const ir::Expr& extent : map.map.shape) extent.collect_vars(used);
  }
  return used;
}

bool is_same(const ParamSlot& a, const ParamSlot& b) {
  return a.kind == b.kind && a.value == b.value && a.var == b.var && a.map == b.map;
}

// The names of a launcher: its parameters, the slots that it passes on to the kernel, its own.
struct Host {
  std::vector<ParamSlot> parameters;  // what the kernel takes, but arrays instead of their maps;
                                      // then what only the grid or the maps need
  std::vector<ParamSlot> passed;      // as the kernel has them
  std::string grid = {};              // what the launcher declares itself: named after the user's
  std::string status = {};
  std::string arguments = {};  // of a cooperative launch
  std::string shared = {};     // bytes of shared memory, where the launch says how many
};

Host host_of(const ir::Function& function, const LaunchPlan& plan) {
  NameTable names;
  names.claim(plan.kernel_name);
  names.claim(launcher_name(plan.kernel_name));
  Host host{.parameters = {}, .passed = plan.slots};
  for (ParamSlot& slot : host.passed) slot.name = names.claim(slot.name);
  std::ranges::copy_if(host.passed, std::back_inserter(host.parameters),
                       [](const ParamSlot& slot) { return slot.kind != SlotKind::kMap; });
  for (const MapPlan& map : plan.maps) add_array(host.parameters, map.array);
  for (ParamSlot& slot : host.parameters) {
    const bool named = std::ranges::any_of(
        host.passed, [&](const ParamSlot& passed) { return is_same(passed, slot); });
    if (!named) slot.name = names.claim(slot.name);
  }
  for (const ir::VarId var : host_vars(plan)) {
    if (std::ranges::find(host.parameters, var, &ParamSlot::var) != host.parameters.end()) continue;
    host.parameters.push_back({.name = names.claim(function.vars[var].name), .var = var});
  }
  host.grid = names.claim("grid");
  host.status = names.claim("status");
  host.arguments = names.claim("arguments");
  host.shared = names.claim("shared_bytes");
  return host;
}

// Makes the map of one slot.
std::string map_text(const MapPlan& plan, const std::string& name, const Host& host) {
  const LaunchSizes sizes(host.parameters);
  const ir::TensorMap& map = plan.map;
  const std::string& array =
      std::ranges::find(host.parameters, map.buffer, &ParamSlot::value)->name;
  const std::string box =
      join(map.box, ", ", [](std::int64_t extent) { return format("{}", extent); });
  return format(
      "  kiln::TensorMap {};\n"
      "  {} = kiln::make_tensor_map(\n"
      "      {}, {}, kiln::MapShape<{}>{{{{{}}}, {{{}}}, {{{}}}}}, kiln::MapPattern{{{}, {}}});\n"
      "  if ({} != cudaSuccess) return {};\n",
      name, host.status, name, array, map.box.size(), sizes.list(map.shape),
      sizes.list(map.extents), box, map.swizzle, map.promotion, host.status, host.status);
}

// What CUDA refuses by itself is left to it; only what might look like a small grid is compared.
std::string grid_text(const LaunchPlan& plan, const LaunchSizes& sizes, const target::Arch& arch) {
  std::vector<std::string> axes;
  for (std::size_t axis = 0; axis < plan.grid.size(); ++axis) {
    axes.push_back(sizes.limited(plan.grid[axis], target::blocks_along(arch, axis)));
  }
  return join(axes, ", ", [](const std::string& text) { return text; });
}

// Whether the host part writes elements of the buffer, between launches.
bool is_written_outside(const ir::Function& function, ir::RegionId region, ir::ValueId buffer) {
  const std::vector<ir::OpId>& ops = function.regions[region].ops;
  return std::ranges::any_of(ops, [&](ir::OpId id) {
    const ir::Op& op = function.ops[id];
    if (op.kind() == ir::OpKind::kParallel) return false;
    const auto* write = std::get_if<ir::Write>(&op.data);
    if (write != nullptr && ir::root_of(function, write->view) == buffer) return true;
    const ir::Regions inner = ir::regions_of(op);
    return std::ranges::any_of(
        inner, [&](ir::RegionId each) { return is_written_outside(function, each, buffer); });
  });
}

// The caller allocates what the host part declares, says what it starts as, and writes what it
// writes.
std::string notes_on_values(const ir::Function& function, const std::vector<ParamSlot>& slots) {
  std::string out;
  for (const ParamSlot& slot : slots) {
    const bool is_buffer = slot.kind == SlotKind::kAlloc || slot.kind == SlotKind::kParam;
    if (is_buffer && is_written_outside(function, function.body, slot.value)) {
      out += format("// The caller also writes the elements of {} that the host part writes.\n",
                    slot.name);
    }
    const auto* alloc =
        slot.kind == SlotKind::kAlloc ? function.def_as<ir::Alloc>(slot.value) : nullptr;
    if (alloc == nullptr || !alloc->initial.valid()) continue;
    out += format(
        "// Before the first launch every element of {} has to be what its declaration says.\n",
        slot.name);
  }
  return out;
}

std::string operand_text(const LaunchSizes& sizes, const ir::Expr& expr) {
  const bool is_one = expr.constant() || expr.as_var();
  return is_one ? sizes.text(expr) : format("({})", sizes.text(expr));
}

// When the check fails.
std::string failure_text(const LaunchSizes& sizes, const ir::EntryCheck& check) {
  const std::string left = operand_text(sizes, check.left);
  const std::string right = operand_text(sizes, check.right);
  switch (check.relation) {
    case ir::Relation::kEqual: return format("{} != {}", left, right);
    case ir::Relation::kLessEqual: return format("{} > {}", left, right);
    case ir::Relation::kDivides:
      return check.left.constant() ? format("{} % {} != 0", right, left)
                                   : format("{} == 0 || {} % {} != 0", left, right, left);
  }
  return {};
}

// What the program asks of its dimensions and parameters, but for what the launch itself is limited
// to, and what speaks of what this launcher does not get.
std::string checks_text(const ir::Function& function, const LaunchPlan& plan,
                        const LaunchSizes& sizes) {
  std::vector<ir::Expr> limited = plan.grid;
  limited.push_back(plan.threads);
  limited.push_back(plan.shared_bytes);
  std::vector<std::string> seen;
  std::string out;
  for (const ir::EntryCheck& check : function.checks) {
    const bool is_seen_to = check.relation == ir::Relation::kLessEqual && check.right.constant() &&
                            std::ranges::find(limited, check.left) != limited.end();
    if (is_seen_to || !sizes.knows(check.left) || !sizes.knows(check.right)) continue;
    const std::string failure = failure_text(sizes, check);
    if (std::ranges::find(seen, failure) != seen.end()) continue;
    seen.push_back(failure);
    out += format("  // {}\n  if ({}) return cudaErrorInvalidValue;\n",
                  escape_for(Medium::kComment, check.message), failure);
  }
  return out;
}

}  // namespace

std::string parameters_text(const std::vector<ParamSlot>& slots) {
  return join(slots, ", ", parameter_text);
}

std::string launcher_text(const ir::Function& function, const LaunchPlan& plan,
                          const target::Arch& arch) {
  const Host host = host_of(function, plan);
  const std::vector<ParamSlot>& slots = host.parameters;
  const LaunchSizes sizes(slots);
  std::string out = notes_on_values(function, slots);
  out += format("cudaError_t {}(\n    {}{}cudaStream_t stream = nullptr) {{\n",
                launcher_name(plan.kernel_name), parameters_text(slots), slots.empty() ? "" : ", ");
  out += checks_text(function, plan, sizes);
  const bool sized = plan.shared_bytes.constant().has_value();
  const std::string shared = sized ? sizes.text(plan.shared_bytes) : format("int({})", host.shared);
  if (!sized) {
    out += format(
        "  const long long {} = {};\n"
        "  if ({} > {}) return cudaErrorInvalidConfiguration;\n",
        host.shared, sizes.text(plan.shared_bytes), host.shared, plan.shared_max);
  }
  if (plan.opts_in || !plan.maps.empty())
    out += format("  cudaError_t {} = cudaSuccess;\n", host.status);
  if (plan.opts_in) {
    out += format(
        "  {} = cudaFuncSetAttribute(\n"
        "      {}, cudaFuncAttributeMaxDynamicSharedMemorySize, {});\n"
        "  if ({} != cudaSuccess) return {};\n",
        host.status, plan.kernel_name, shared, host.status, host.status);
  }
  for (const ParamSlot& slot : host.passed) {
    if (slot.kind == SlotKind::kMap) {
      out += map_text(plan.maps[slot.map], slot.name, host);
    }
  }
  out += format("  const dim3 {}({});\n", host.grid, grid_text(plan, sizes, arch));
  const std::string threads = sizes.limited(plan.threads, plan.threads_max);
  if (plan.cooperative) {
    out += format("  void* {}[] = {{{}}};\n", host.arguments,
                  join(host.passed, ", ",
                       [](const ParamSlot& slot) { return format("(void*)&{}", slot.name); }));
    return out + format("  return cudaLaunchCooperativeKernel({}, {}, {}, {}, {}, stream);\n}}\n",
                        plan.kernel_name, host.grid, threads, host.arguments, shared);
  }
  out += format("  {}<<<{}, {}, {}, stream>>>({});\n", plan.kernel_name, host.grid, threads, shared,
                join(host.passed, ", ", [](const ParamSlot& slot) { return slot.name; }));
  return out + "  return cudaGetLastError();\n}\n";
}

}  // namespace kiln::emit
