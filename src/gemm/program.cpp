#include "gemm/program.h"

#include <algorithm>
#include <filesystem>

#include "diag/render.h"
#include "gemm/kernel_files.h"
#include "passes/pipeline.h"
#include "sema/sema.h"
#include "syntax/parser.h"

namespace kiln::gemm {

namespace {

constexpr std::string_view kFunction = "gemm";
constexpr std::string_view kFolder = "kernels/";

// Kernels include each other's parts; `from` is a file of kernels/ too.
Result<IncludedFile> read_part(std::string_view from, std::string_view name) {
  const auto path = (std::filesystem::path(from).parent_path() / name).lexically_normal().string();
  const bool here = path.starts_with(kFolder);
  const KernelFile* file = here ? kernel_file(path.substr(kFolder.size())) : nullptr;
  if (file == nullptr) return Unexpected{Error{"the library has no file", path, ""}};
  return IncludedFile{path, file->text};
}

// Whether it compiled; else `diags` say why not.
bool decide(Program& program, FileId file, const ParseOptions& options, const target::Arch& arch,
            Diagnostics& diags) {
  const ast::Ast tree = parse_file(program.sources, file, options, diags);
  auto module = sema::analyse(tree, arch, program.sources, diags);
  if (!module) return false;
  program.module = std::move(*module);
  return passes::run_pipeline(program.module, diags).has_value() && !diags.has_errors();
}

}  // namespace

Result<std::unique_ptr<Program>> compile(const Choice& choice, const target::Arch& arch) {
  const KernelFile* file = kernel_file(choice.kernel + ".co");
  if (file == nullptr) {
    return Unexpected{Error{"the library has no kernel", choice.kernel,
                            format("it has {}", join(kernel_files(), ", ",
                                                     [](const KernelFile& f) { return f.name; }))}};
  }
  return compile(choice, arch, format("{}{}", kFolder, file->name), file->text);
}

Result<std::unique_ptr<Program>> compile(const Choice& choice, const target::Arch& arch,
                                         const std::string& file, const std::string& text) {
  auto program = std::make_unique<Program>();
  ParseOptions options;
  options.read_included = read_part;
  for (const auto& [name, value] : choice.defines) options.definitions.push_back({name, value});
  Diagnostics diags;
  if (!decide(*program, program->sources.add(file, text), options, arch, diags)) {
    return Unexpected{
        Error{"cannot compile", gemm::text(choice), render_all(diags, program->sources)}};
  }
  const auto& functions = program->module.functions;
  const auto found = std::ranges::find(functions, kFunction, &ir::Function::name);
  if (found == functions.end()) {
    return Unexpected{Error{"cannot use", file, format("it has no function `{}`", kFunction)}};
  }
  program->index = static_cast<std::size_t>(found - functions.begin());
  return program;
}

}  // namespace kiln::gemm
