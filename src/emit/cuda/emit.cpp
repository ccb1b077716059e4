#include "emit/cuda/emit.h"

#include <algorithm>

#include "emit/cuda/emit_op.h"
#include "emit/cuda/instruction.h"

namespace kiln::emit {

namespace {

std::string parameter_text(const ParamSlot& slot) {
  const bool pointer = slot.kind == SlotKind::kParam || slot.kind == SlotKind::kAlloc;
  return format("{}{}{} {}", pointer && !slot.written ? "const " : "", type_name(slot.dtype),
                pointer ? "*" : "", slot.name);
}

std::string parameters_text(const std::vector<ParamSlot>& slots) {
  return join(slots, ", ", parameter_text);
}

// The kernel's first lines, known only after its body was written.
std::vector<std::string> opening_lines(const Kernel& kernel) {
  const auto& parallel = std::get<ir::Parallel>(kernel.function.ops[kernel.plan.op].data);
  std::vector<std::string> lines;
  if (kernel.plan.shared_bytes > 0) {
    lines.push_back("extern __shared__ __align__(1024) unsigned char smem[];");
  }
  constexpr const char* kAxes[] = {"x", "y", "z"};
  for (std::size_t axis = 0; axis < parallel.vars.size(); ++axis) {
    const ir::VarId var = parallel.vars[axis];
    if (!kernel.uses.vars[var.index]) continue;
    lines.push_back(format("const int {} = blockIdx.{};", kernel.name(var), kAxes[axis]));
  }
  const std::string& thread = kernel.name(kernel.thread);
  if (kernel.needs_thread) lines.push_back(format("const int {} = threadIdx.x;", thread));
  if (kernel.needs_lane) {
    lines.push_back(format("const int {} = threadIdx.x % 32;", kernel.name(kernel.lane)));
  }
  return lines;
}

std::string launch_bounds(const LaunchPlan& plan, const target::Arch& arch) {
  return format("__launch_bounds__({})",
                plan.threads.constant().value_or(std::int64_t{arch.threads_per_block_max}));
}

// Aliases that the host part made are spelled again.
void emit_outer_aliases(Kernel& kernel) {
  for (std::uint32_t i = 0; i < kernel.function.ops.size(); ++i) {
    const ir::Op& op = kernel.function.ops[ir::OpId{i}];
    const auto* alias = std::get_if<ir::Alias>(&op.data);
    if (alias != nullptr && kernel.uses.live_ops[i] && !kernel.uses.inside[i]) {
      emit_op(kernel, op, *alias);
    }
  }
}

std::string kernel_text(Kernel& kernel, const target::Arch& arch) {
  const ir::Op& op = kernel.function.ops[kernel.plan.op];
  const auto& parallel = std::get<ir::Parallel>(op.data);
  kernel.out.open("");
  emit_outer_aliases(kernel);
  emit_region(kernel, parallel.body);
  std::string out =
      format("extern \"C\" __global__ void {}\n{}({}) {{\n", launch_bounds(kernel.plan, arch),
             kernel.plan.kernel_name, parameters_text(kernel.plan.slots));
  for (const std::string& line : opening_lines(kernel)) out += format("  {}\n", line);
  out += std::string_view(kernel.out.text()).substr(1);  // without the line of the opening
  return out + "}\n";
}

// Host variables that only the grid needs stand behind the kernel's own parameters.
std::vector<ParamSlot> launcher_slots(const ir::Function& function, const LaunchPlan& plan) {
  std::vector<ir::VarId> used;
  for (const ir::Expr& extent : plan.grid) extent.collect_vars(used);
  plan.threads.collect_vars(used);
  std::vector<ParamSlot> slots = plan.slots;
  NameTable names;
  for (const ParamSlot& slot : slots) names.claim(slot.name);
  for (const ir::VarId var : used) {
    if (std::ranges::any_of(slots, [&](const ParamSlot& slot) { return slot.var == var; }))
      continue;
    slots.push_back({.name = names.claim(function.vars[var].name), .var = var});
  }
  return slots;
}

// The host function that launches one kernel the way its plan says.
std::string launcher_text(const ir::Function& function, const LaunchPlan& plan,
                          const target::Arch& arch) {
  const std::vector<ParamSlot> slots = launcher_slots(function, plan);
  const VarFacts facts{
      .name = [&](ir::VarId var) { return std::ranges::find(slots, var, &ParamSlot::var)->name; },
      .never_negative = [](ir::VarId) { return false; },
  };
  const auto text = [&](const ir::Expr& expr) { return spell(expr, facts).text; };
  std::string out = format("cudaError_t launch_{}(\n    {}{}cudaStream_t stream = nullptr) {{\n",
                           plan.kernel_name, parameters_text(slots), slots.empty() ? "" : ", ");
  if (plan.shared_bytes > arch.smem_static_max) {
    out += format(
        "  const cudaError_t status = cudaFuncSetAttribute(\n"
        "      {}, cudaFuncAttributeMaxDynamicSharedMemorySize, {});\n"
        "  if (status != cudaSuccess) return status;\n",
        plan.kernel_name, plan.shared_bytes);
  }
  out += format("  const dim3 grid({});\n", join(plan.grid, ", ", text));
  out += format("  {}<<<grid, {}, {}, stream>>>({});\n", plan.kernel_name, text(plan.threads),
                plan.shared_bytes,
                join(plan.slots, ", ", [](const ParamSlot& slot) { return slot.name; }));
  return out + "  return cudaGetLastError();\n}\n";
}

std::string source_name(const ir::Module& module, const Sources& sources) {
  for (const ir::Function& function : module.functions) {
    if (function.span.valid()) return sources.place(function.span).file;
  }
  return "tile IR";
}

std::string opening_text(const ir::Module& module, const Sources& sources,
                         const Requirements& requirements) {
  const target::Arch& arch = *module.arch;
  std::string out = format(
      "// Made by kiln {} for {} from {}; changes belong there.\n"
      "// nvcc -std=c++17 -gencode=arch={},code={} -I<kiln>/include\n",
      KILN_VERSION, arch.name, source_name(module, sources), arch.compute, arch.name);
  for (const std::string& header : requirements.headers) {
    out += format("#include \"kiln/device/{}\"\n", header);
  }
  for (const target::Mma* mma : requirements.mmas) out += "\n" + wrapper(*mma);
  for (const target::Mma* mma : requirements.register_mmas) {
    out += "\n" + wrapper_with_registers(*mma);
  }
  for (const target::Copy* copy : requirements.copies) out += "\n" + wrapper(*copy);
  return out;
}

// Ends the reach of the #line directives above it.
std::string own_line(const std::string& text, const EmitOptions& options) {
  if (!options.line_directives) return "";
  const auto lines = std::ranges::count(text, '\n');
  return format("#line {} {}\n", lines + 2, quoted(options.file_name));
}

}  // namespace

std::string emit(const ir::Module& module, const Sources& sources, const EmitOptions& options) {
  KILN_CHECK(module.form == ir::Form::kDecided, "emitting a module that is not decided");
  KILN_CHECK(module.arch != nullptr, "emitting a module without an architecture");
  Requirements requirements{
      .headers = {"types.cuh"}, .mmas = {}, .register_mmas = {}, .copies = {}};
  std::vector<std::string> kernels;
  std::string launchers;
  for (const ir::Function& function : module.functions) {
    for (const LaunchPlan& plan : plan_launches(module, function)) {
      Kernel kernel(function, plan, sources, requirements, options.line_directives);
      kernels.push_back(kernel_text(kernel, *module.arch));
      launchers += "\n" + launcher_text(function, plan, *module.arch);
    }
  }
  if (launchers.find("kiln::") != std::string::npos) requirements.headers.insert("math.cuh");
  std::string out = opening_text(module, sources, requirements);
  for (const std::string& kernel : kernels) {
    out += "\n" + kernel;
    out += own_line(out, options);
  }
  if (launchers.empty()) return out;
  return out + "\n#ifndef __CUDACC_RTC__\n// On the host: pointers are device pointers." +
         launchers + "#endif\n";
}

}  // namespace kiln::emit
