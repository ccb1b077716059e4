#include "gemm/program.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

#include "diag/render.h"
#include "gemm/kernel_files.h"
#include "passes/pass_table.h"
#include "sema/sema.h"
#include "syntax/parser.h"

namespace kiln::gemm {

namespace {

constexpr std::string_view kFunction = "gemm";
constexpr std::string_view kFolder = "kernels/";

// "gemm_skinny_sm90" has `gemm`, "attention_sm90" has `attention`.
std::string function_of(const std::string& kernel) { return kernel.substr(0, kernel.find('_')); }

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
  return passes::run_passes(program.module, diags).has_value() && !diags.has_errors();
}

}  // namespace

namespace {

Result<std::unique_ptr<Program>> compile_text(const Choice& choice, const target::Arch& arch,
                                              const KernelFile& file, std::string_view name) {
  auto program = std::make_unique<Program>();
  ParseOptions options;
  options.read_included = read_part;
  for (const auto& [define, value] : choice.defines) {
    options.definitions.push_back({define, value});
  }
  Diagnostics diags;
  if (!decide(*program, program->sources.add(file.name, file.text), options, arch, diags)) {
    return Unexpected{
        Error{"cannot compile", gemm::text(choice), render_all(diags, program->sources)}};
  }
  const auto& functions = program->module.functions;
  const auto found = std::ranges::find(functions, name, &ir::Function::name);
  if (found == functions.end()) {
    return Unexpected{Error{"cannot use", file.name, format("it has no function `{}`", name)}};
  }
  program->index = static_cast<std::size_t>(found - functions.begin());
  return program;
}

}  // namespace

Result<std::unique_ptr<Program>> compile(const Choice& choice, const target::Arch& arch) {
  const KernelFile* file = kernel_file(choice.kernel + ".co");
  if (file == nullptr) {
    return Unexpected{Error{"the library has no kernel", choice.kernel,
                            format("it has {}", join(kernel_files(), ", ",
                                                     [](const KernelFile& f) { return f.name; }))}};
  }
  const std::string path = format("{}{}", kFolder, file->name);
  return compile_text(choice, arch, {path.c_str(), file->text}, function_of(choice.kernel));
}

Result<std::unique_ptr<Program>> compile(const Choice& choice, const target::Arch& arch,
                                         const std::string& file, const std::string& text) {
  return compile_text(choice, arch, {file.c_str(), text.c_str()}, kFunction);
}

namespace {

using TunedValues = std::map<std::string, std::vector<int>, std::less<>>;  // by parameter

TunedValues read_tuned_values(const KernelFile& file) {
  Sources sources;
  Diagnostics diags;
  ParseOptions options;
  options.read_included = read_part;
  const FileId id = sources.add(format("{}{}", kFolder, file.name), file.text);
  const ast::Ast tree = parse_file(sources, id, options, diags);
  TunedValues out;
  for (const ast::Region& region : tree.regions) {
    const auto* function = std::get_if<ast::TileFunction>(&region);
    if (function == nullptr || function->name.text != kFunction) continue;
    for (const ast::TemplateParam& param : function->templ.params) {
      for (const ast::ExprId value : param.tune) {
        const std::string text(sources.text(tree[value].span));
        out[param.name.text].push_back(std::atoi(text.c_str()));
      }
    }
  }
  return out;
}

}  // namespace

std::span<const int> tuned_values(std::string_view kernel, std::string_view parameter) {
  // Each kernel is read when first asked for; what was read stays where it is.
  static std::mutex mutex;
  static std::map<std::string, TunedValues, std::less<>> read;
  const std::scoped_lock lock(mutex);
  auto values = read.find(kernel);
  if (values == read.end()) {
    const KernelFile* file = kernel_file(std::string(kernel) + ".co");
    if (file == nullptr) return {};
    values = read.emplace(kernel, read_tuned_values(*file)).first;
  }
  const auto found = values->second.find(parameter);
  if (found == values->second.end()) return {};
  return found->second;
}

}  // namespace kiln::gemm
