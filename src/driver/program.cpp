#include "driver/program.h"

#include <filesystem>

#include "driver/assignments.h"
#include "driver/machine.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "sema/sema.h"
#include "support/file.h"
#include "syntax/parser.h"

namespace kiln::driver {

namespace {

constexpr std::size_t kSourceBytesMax = std::size_t{1} << 26;
constexpr std::string_view kDefaultArch = "sm_90a";
constexpr std::string_view kIrSuffix = ".kir";

// A path is taken from the folder of the file that includes.
Result<IncludedFile> read_beside(std::string_view from, std::string_view name) {
  const auto path = (std::filesystem::path(from).parent_path() / name).lexically_normal();
  auto text = read_file(path.string(), kSourceBytesMax);
  if (!text) return Unexpected{text.error()};
  return IncludedFile{path.string(), std::move(*text)};
}

Checked<bool> analyse(Program& program, FileId file, const ParseOptions& options,
                      const CompileOptions& how) {
  const ast::Ast tree = parse_file(program.sources, file, options, program.diags);
  auto module = sema::analyse(tree, *program.arch, program.sources, program.diags);
  if (!module) return Unexpected{module.error()};
  program.tile = std::move(*module);
  program.decided = program.tile;
  return passes::run_pipeline(program.decided, program.diags, how.pipeline);
}

// IR text, as `kiln ir` prints it: read, checked against the IR's rules, and decided from where it
// stands. It names its own architecture.
Checked<bool> read_ir(Program& program, FileId file, CompileOptions how) {
  how.pipeline.read_from = Span{file, 0, 0};
  auto module = ir::parse(program.sources, file, program.diags);
  if (!module) return Unexpected{module.error()};
  for (const std::string& mistake : ir::verify(*module)) {
    program.diags.report<diag::IrInvalid>({file, 0, 0}, mistake).emit();
  }
  if (program.diags.has_errors()) return program.diags.failed();
  program.tile = std::move(*module);
  program.arch = program.tile.arch;
  program.decided = program.tile;
  return passes::run_pipeline(program.decided, program.diags, how.pipeline);
}

}  // namespace

Checked<const target::Arch*> choose_arch(const std::string& name, Diagnostics& diags) {
  if (name.empty()) {
    const target::Arch* machine = machine_arch();
    return machine != nullptr ? machine : target::find_arch(kDefaultArch);
  }
  const target::Arch* arch = target::find_arch(name);
  if (arch != nullptr) return arch;
  return diags.report<diag::OptionChoice>({}, "--arch", name, target::arch_names()).emit();
}

Exit compile(const ProgramOptions& options, const CompileOptions& how, Program& program,
             Console& console) {
  const auto arch = choose_arch(options.arch, program.diags);
  if (!arch) return Exit::kUsage;
  program.arch = *arch;
  auto definitions = parse_definitions(options.defines, program.diags);
  if (!definitions) return Exit::kUsage;
  auto text = read_file(options.file, kSourceBytesMax);
  if (!text) return environment_failed(console, text.error()).error;
  const FileId file = program.sources.add(options.file, std::move(*text));
  const auto done =
      options.file.ends_with(kIrSuffix)
          ? read_ir(program, file, how)
          : analyse(program, file,
                    {.definitions = std::move(*definitions), .read_included = read_beside}, how);
  return done && !program.diags.has_errors() ? Exit::kFine : Exit::kWrong;
}

Checked<std::size_t> choose_kernel(const Program& program, const std::string& file,
                                   const std::string& name, Diagnostics& diags) {
  const std::vector<ir::Function>& functions = program.decided.functions;
  std::vector<std::string> names;
  for (const ir::Function& function : functions) names.push_back(function.name);
  const std::string list = join(names, ", ", [](const auto& n) { return format("`{}`", n); });
  if (functions.empty()) return diags.report<diag::KernelNone>({}, file).emit();
  if (name.empty() && functions.size() == 1) return std::size_t{0};
  if (name.empty()) {
    return diags.report<diag::KernelAmbiguous>({}, file, functions.size())
        .help("choose one with `--kernel`: {}", list)
        .emit();
  }
  for (std::size_t i = 0; i < functions.size(); ++i) {
    if (functions[i].name == name) return i;
  }
  const std::string guess = did_you_mean(name, names);
  return diags.report<diag::KernelUnknown>({}, name)
      .help_if(guess.empty() ? format("the file has {}", list) : guess)
      .emit();
}

}  // namespace kiln::driver
