#include "emit/cuda/emit.h"

#include <algorithm>
#include <cctype>

#include "emit/cuda/emit_op.h"
#include "emit/cuda/instruction.h"
#include "emit/cuda/launcher.h"
#include "ir/cuda_text.h"
#include "support/escape.h"

namespace kiln::emit {

namespace {

// The kernel's first lines, known only after its body was written.
std::vector<std::string> opening_lines(Kernel& kernel) {
  const auto& parallel = std::get<ir::Parallel>(kernel.function.ops[kernel.plan.op].data);
  std::vector<std::string> lines;
  if (kernel.needs_shared || !kernel.plan.shared_bytes.is(0)) {
    lines.push_back("extern __shared__ __align__(1024) unsigned char smem[];");
  }
  constexpr const char* kAxes[] = {"x", "y", "z"};
  for (std::size_t axis = 0; axis < parallel.vars.size(); ++axis) {
    const ir::VarId var = parallel.vars[axis];
    if (!kernel.uses.vars[var.index]) continue;
    lines.push_back(format("const int {} = blockIdx.{};", kernel.name(var), kAxes[axis]));
  }
  for (std::size_t axis = 0; axis < parallel.cluster.size(); ++axis) {
    const ir::VarId var = parallel.cluster[axis];
    if (!kernel.uses.vars[var.index]) continue;
    lines.push_back(format("const int {} = blockIdx.{} % {};", kernel.name(var), kAxes[axis],
                           kernel.plan.cluster[axis]));
  }
  const std::string& thread = kernel.name(kernel.thread);
  if (kernel.needs_thread) lines.push_back(format("const int {} = threadIdx.x;", thread));
  if (kernel.needs_lane) {
    lines.push_back(
        format("const int {} = threadIdx.x % {};", kernel.name(kernel.lane), target::kWarpLanes));
  }
  if (kernel.needs_warp) {
    lines.push_back(format("const int {} = kiln::warp_index();", kernel.name(kernel.warp)));
  }
  for (std::string& line : meeting_opening(kernel)) lines.push_back(std::move(line));
  if (kernel.plan.overlaps) {
    kernel.requirements.headers.insert("launch.cuh");
    if (kernel.plan.admits_next) lines.emplace_back("kiln::admit_next_launch();");
    lines.emplace_back("kiln::await_earlier_launches();");
  }
  return lines;
}

std::string attributes_text(const LaunchPlan& plan) {
  const std::string bounds =
      join(plan.bounds, ", ", [](std::int64_t bound) { return format("{}", bound); });
  const std::string out = plan.bounds.empty() ? format("__maxnreg__({})", plan.registers_max)
                                              : format("__launch_bounds__({})", bounds);
  if (plan.cluster_blocks() == 1) return out;
  std::vector<std::int64_t> blocks = plan.cluster;
  blocks.resize(3, 1);
  return out + format(" __cluster_dims__({}, {}, {})", blocks[0], blocks[1], blocks[2]);
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

std::string kernel_text(Kernel& kernel) {
  const ir::Op& op = kernel.function.ops[kernel.plan.op];
  const auto& parallel = std::get<ir::Parallel>(op.data);
  for (const std::vector<ir::VarId>& vars :
       {kernel.uses.outer_vars, parallel.vars, parallel.cluster}) {
    for (const ir::VarId var : vars) {
      if (kernel.uses.vars[var.index] && !kernel.is_wide(var)) kernel.shorthands.add_var(var);
    }
  }
  kernel.out.open("");
  emit_outer_aliases(kernel);
  emit_region(kernel, parallel.body);
  for (const std::string& line : meeting_closing(kernel)) kernel.out.line(line);
  std::string out =
      format("extern \"C\" __global__ void {}\n{}({}) {{\n", attributes_text(kernel.plan),
             kernel.plan.kernel_name, parameters_text(kernel.plan.slots));
  for (const std::string& line : opening_lines(kernel)) out += format("  {}\n", line);
  out += std::string_view(kernel.out.text()).substr(1);  // without the line of the opening
  return out + "}\n";
}

// How often the text says a name.
std::ptrdiff_t count_of(std::string_view name, std::string_view text) {
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  std::ptrdiff_t count = 0;
  for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    const bool begins = at == 0 || !is_part(text[at - 1]);
    const std::size_t end = at + name.size();
    count += begins && (end == text.size() || !is_part(text[end])) ? 1 : 0;
  }
  return count;
}

// The names that a kernel's text repeats, with their places: what is said once is not named, but for
// what more rounds would find.
std::vector<Shorthand> repeated_names(const ir::Function& function, const LaunchPlan& plan,
                                      const Sources& sources) {
  std::vector<Shorthand> names;
  for (std::size_t i = 0; i < function.named.size(); ++i) names.push_back({.index = i});
  constexpr int kRoundsMax = 6;
  bool all_repeat = false;
  for (int round = 0; round < kRoundsMax && !all_repeat && !names.empty(); ++round) {
    Requirements requirements;
    for (Shorthand& name : names) name = {.index = name.index};
    Kernel kernel(function, plan, sources, requirements, {.names = std::move(names)});
    std::string text = kernel_text(kernel);
    for (const Shorthand& name : kernel.shorthands.all()) {
      if (name.used) text += "\n" + kernel.spelled_as_it_is(name.value).text;
    }
    names.clear();
    for (const Shorthand& name : kernel.shorthands.all()) {
      const bool repeats = name.used && count_of(kernel.name(name.var), text) > 1;
      if (repeats) names.push_back({.index = name.index, .place = name.place});
    }
    all_repeat = names.size() == kernel.shorthands.all().size();
  }
  return names;
}

std::string source_name(const ir::Module& module, const Sources& sources) {
  for (const ir::Function& function : module.functions) {
    if (function.span.valid()) return sources.place(function.span).file;
  }
  return "tile IR";
}

// The texts of the program that go into the file as they are.
template <class Visit>
void for_each_text(const ir::Module& module, Visit&& visit) {
  for (const ir::CudaPart& part : module.cuda) visit(std::string_view(part.text));
  for (const ir::Function& function : module.functions) {
    for (const ir::Op& op : function.ops) {
      const auto* cuda = std::get_if<ir::Cuda>(&op.data);
      if (cuda != nullptr) visit(std::string_view(cuda->text));
    }
  }
}

// The element types that these texts call by the language's names.
std::string types_named(const ir::Module& module) {
  std::set<std::string_view> named;
  for_each_text(module, [&](std::string_view text) {
    for (const std::string& word : ir::names_in_cpp(text)) {
      const auto dtype = dtype_from_name(word);
      const bool is_ours = dtype && *dtype != DType::kBool;
      if (is_ours && name(*dtype) == word) named.insert(name(*dtype));
    }
  });
  std::string out;
  for (const std::string_view type : named) out += format("\nusing kiln::{};", type);
  return out.empty() ? out : out + "\n";
}

// What the program says in CUDA between its functions.
std::string cuda_text(const ir::Module& module, const Sources& sources, bool line_directives) {
  std::string out;
  for (const ir::CudaPart& part : module.cuda) {
    out += "\n";
    if (line_directives && part.span.valid()) {
      const Place place = sources.place(part.span);
      out += format("#line {} {}\n", place.line, quoted(place.file));
    }
    out += part.text;
    if (!part.text.ends_with('\n')) out += "\n";
  }
  return out;
}

std::string opening_text(const ir::Module& module, const Sources& sources,
                         const Requirements& requirements) {
  const target::Arch& arch = *module.arch;
  std::string out = format(
      "// Made by kiln {} for {} from {}; changes belong there.\n"
      "// nvcc -std=c++17 -gencode=arch={},code={} -I<kiln>/include\n",
      KILN_VERSION, arch.name, escape_for(Medium::kComment, source_name(module, sources)),
      arch.compute, arch.name);
  for (const std::string& header : requirements.headers) {
    out += format("#include \"kiln/device/{}\"\n", header);
  }
  for (const auto& [name, text] : requirements.wrappers) out += "\n" + text;
  return out + types_named(module);
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
  Requirements requirements{.headers = {"types.cuh"}, .wrappers = {}};
  std::vector<std::string> kernels;
  std::string launchers;
  for (const ir::Function& function : module.functions) {
    for (const LaunchPlan& plan : plan_launches(module, function)) {
      Kernel kernel(function, plan, sources, requirements,
                    {options.line_directives, repeated_names(function, plan, sources)});
      kernels.push_back(kernel_text(kernel));
      launchers += "\n" + launcher_text(function, plan, *module.arch);
    }
  }
  if (launchers.find("kiln::") != std::string::npos) requirements.headers.insert("math.cuh");
  if (!module.cuda.empty()) requirements.headers.insert("foreign.cuh");
  std::string out = opening_text(module, sources, requirements);
  if (!module.cuda.empty()) {
    out += cuda_text(module, sources, options.line_directives);
    out += own_line(out, options);
  }
  for (const std::string& kernel : kernels) {
    out += "\n" + kernel;
    out += own_line(out, options);
  }
  if (launchers.empty()) return out;
  return out + "\n#ifndef __CUDACC_RTC__\n// On the host: pointers are device pointers." +
         launchers + "#endif\n";
}

}  // namespace kiln::emit
