#include "driver/commands.h"

#include <algorithm>

#include "diag/render.h"
#include "emit/co/co.h"
#include "emit/cuda/emit.h"
#include "io/program.h"
#include "ir/print.h"
#include "support/escape.h"
#include "target/atoms.h"

namespace kiln::driver {

namespace {

constexpr std::string_view kBeforePasses = "sema";
constexpr std::string_view kAllPasses = "all";
// What the IR is printed as.
constexpr std::string_view kIrText = "ir";
constexpr std::string_view kLanguage = "co";

std::string pass_names() {
  return join(passes::pass_table(), ", ",
              [](const passes::Pass& pass) { return std::string(pass.name); });
}

bool is_pass(std::string_view name) {
  const auto all = passes::pass_table();
  return name == kBeforePasses || name == kAllPasses ||
         std::any_of(all.begin(), all.end(), [&](const auto& pass) { return pass.name == name; });
}

// A usage mistake that stands alone: reports it and ends the command.
template <class D, class... Args>
io::Exit usage(io::Console& console, Args&&... args) {
  Diagnostics diags;
  diags.report<D>({}, std::forward<Args>(args)...).emit();
  io::show(console, diags, {});
  return io::Exit::kUsage;
}

// The passes behind which the module is still one that the language can say.
std::vector<std::string_view> passes_of_tile_form() {
  std::vector<std::string_view> out = {kBeforePasses};
  for (const passes::Pass& pass : passes::pass_table()) {
    if (pass.holds == ir::Form::kTile) out.push_back(pass.name);
  }
  return out;
}

io::Exit ir_as_program(const IrOptions& options, io::Console& console) {
  const auto all = passes_of_tile_form();
  const std::string_view after = options.after.empty() ? all.back() : options.after;
  if (std::ranges::find(all, after) == all.end()) {
    const std::string names = join(all, ", ", [](std::string_view name) { return name; });
    return usage<diag::OptionChoice>(console, "--as co --after", options.after, names);
  }
  const bool before = after == kBeforePasses;
  io::CompileOptions how;
  if (!before) how.passes.stop_after = after;
  io::Program program;
  io::Exit exit = io::compile(options.program, how, program, console);
  if (exit != io::Exit::kFine) {
    io::show_briefly(console, program.diags, program.sources);
    return exit;
  }
  const auto text = emit_co::co_text(before ? program.tile : program.decided, program.diags);
  io::show_briefly(console, program.diags, program.sources);
  return text ? io::write_text(console, "", *text) : io::Exit::kWrong;
}

}  // namespace

io::Exit check(const CheckOptions& options, io::Console& console) {
  io::Program program;
  const io::Exit exit = io::compile(options.program, {}, program, console);
  if (options.json && exit != io::Exit::kEnvironment && exit != io::Exit::kUsage) {
    console.out << render_json(program.diags, program.sources);
    return exit;
  }
  io::show(console, program.diags, program.sources);
  if (exit == io::Exit::kFine) {
    const std::size_t count = program.tile.functions.size();
    console.out << format("{}: fine for {} ({} kernel{})\n", shown(options.program.file),
                          program.arch->name, count, count == 1 ? "" : "s");
  }
  return exit;
}

io::Exit emit(const EmitCommandOptions& options, io::Console& console) {
  if (!options.header.empty()) return emit_header(options, console);
  io::Program program;
  const io::Exit exit = io::compile(options.program, {}, program, console);
  io::show_briefly(console, program.diags, program.sources);
  if (exit != io::Exit::kFine) return exit;
  emit::EmitOptions how;
  if (!options.output.empty()) how.file_name = options.output;
  return io::write_text(console, options.output, emit::emit(program.decided, program.sources, how));
}

io::Exit ir(const IrOptions& options, io::Console& console) {
  if (options.as == kLanguage) return ir_as_program(options, console);
  if (options.as != kIrText) {
    return usage<diag::OptionChoice>(console, "--as", options.as,
                                     format("{}, {}", kIrText, kLanguage));
  }
  if (!options.after.empty() && !is_pass(options.after)) {
    return usage<diag::OptionChoice>(console, "--after", options.after,
                                     format("{}, {}, {}", kBeforePasses, pass_names(), kAllPasses));
  }
  const bool all = options.after == kAllPasses;
  const bool before = options.after == kBeforePasses;
  std::string text;
  io::CompileOptions how;
  if (!all && !before) how.passes.stop_after = options.after;
  how.passes.after_each = [&](std::string_view pass, const ir::Module& module) {
    if (all) text += format("// after {}\n", pass) + ir::print(module);
  };
  io::Program program;
  const io::Exit exit = io::compile(options.program, how, program, console);
  io::show_briefly(console, program.diags, program.sources);
  if (exit != io::Exit::kFine) return exit;
  if (all) text = format("// after {}\n", kBeforePasses) + ir::print(program.tile) + text;
  if (!all) text = ir::print(before ? program.tile : program.decided);
  return io::write_text(console, "", text);
}

io::Exit atoms(const AtomsOptions& options, io::Console& console) {
  const target::Arch* arch = nullptr;
  if (!options.arch.empty()) {
    arch = target::find_arch(options.arch);
    if (arch == nullptr) {
      return usage<diag::OptionChoice>(console, "--arch", options.arch, target::arch_names());
    }
  }
  console.out << (options.json ? target::atoms_json(arch) : target::atoms_text(arch));
  return io::Exit::kFine;
}

}  // namespace kiln::driver
