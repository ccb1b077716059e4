#include "io/program.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "backends/device.h"
#include "io/assignments.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "sema/sema.h"
#include "support/escape.h"
#include "support/file.h"
#include "syntax/parser.h"

namespace kiln::io {

namespace {

constexpr std::size_t kSourceBytesMax = std::size_t{1} << 26;
constexpr std::string_view kIrSuffix = ".kir";

namespace fs = std::filesystem;

// Whether `path` lies in the folder, both without links and dots.
bool is_inside(const fs::path& folder, const fs::path& path) {
  const auto [end, at] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end() || (end->empty() && std::next(end) == folder.end());
}

// What `#include` may reach: the folder of the file that is compiled, and those of `-I`.
class Inclusion {
 public:
  explicit Inclusion(const ProgramOptions& options) {
    folders_.push_back(fs::path(options.file).parent_path());
    for (const std::string& folder : options.folders) folders_.emplace_back(folder);
  }

  // A path is taken from the folder of the file that includes, then from those of `-I`.
  [[nodiscard]] Result<IncludedFile> read(std::string_view from, std::string_view name) const {
    std::vector<fs::path> places = {fs::path(from).parent_path()};
    places.insert(places.end(), folders_.begin() + 1, folders_.end());
    std::optional<Error> failure;
    for (const fs::path& place : places) {
      const fs::path path = (place / name).lexically_normal();
      auto text = read_allowed(path);
      if (text) return IncludedFile{path.string(), std::move(*text)};
      if (!failure) failure = text.error();
    }
    return Unexpected{*std::move(failure)};
  }

  // The path from the folder that it was found in.
  [[nodiscard]] std::string inside(const std::string& path) const {
    for (const fs::path& folder : folders_) {
      const fs::path here = folder.empty() ? fs::path(".") : folder;
      const fs::path out = fs::path(path).lexically_proximate(here);
      if (!out.empty() && *out.begin() != ".." && out.is_relative()) return out.generic_string();
    }
    return fs::path(path).filename().string();
  }

 private:
  [[nodiscard]] Result<std::string> read_allowed(const fs::path& path) const {
    const Error outside{"it leads out of the folder of the compiled file and those of `-I`", "",
                        ""};
    std::error_code code;
    const fs::path here = fs::current_path(code);
    // First by the name alone, so that nothing outside is even looked at; then behind its links.
    if (!allowed(
            here, [&](const fs::path& p) { return (here / p).lexically_normal(); }, path)) {
      return Unexpected{outside};
    }
    const auto resolved = [&](const fs::path& p) { return fs::weakly_canonical(here / p, code); };
    if (!allowed(here, resolved, path)) return Unexpected{outside};
    return read_file(path.string(), kSourceBytesMax);
  }

  template <class Place>
  [[nodiscard]] bool allowed(const fs::path& here, Place&& place, const fs::path& path) const {
    const fs::path wanted = place(path);
    return std::ranges::any_of(folders_, [&](const fs::path& folder) {
      return is_inside(place(folder.empty() ? here : folder), wanted);
    });
  }

  std::vector<fs::path> folders_;
};

// The name in `#include "name.co"`, if the line is that.
std::string_view included_name(std::string_view line) {
  const auto skip = [&](std::string_view word) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (!line.starts_with(word)) return false;
    line.remove_prefix(word.size());
    return true;
  };
  if (!skip("#") || !skip("include") || !skip("\"")) return "";
  const std::string_view name = line.substr(0, line.find('"'));
  return name.ends_with(".co") ? name : "";
}

// Texts in the places of their `#include`s.
class Joining {
 public:
  Joining(const Inclusion& inclusion, Names names) : inclusion_(inclusion), names_(names) {}

  // What cannot be read stays as it is: it may stand where no compiler looks.
  std::string text_of(const IncludedFile& file, int depth = 0);
  [[nodiscard]] std::string name_of(const std::string& path) const {
    return names_ == Names::kInside ? inclusion_.inside(path) : path;
  }
  // That were read so far, each once.
  [[nodiscard]] const std::vector<std::string>& files() const { return files_; }

 private:
  const Inclusion& inclusion_;
  Names names_;
  std::vector<std::string> files_;
};

std::string Joining::text_of(const IncludedFile& file, int depth) {
  constexpr int kDepthMax = 32;
  if (std::ranges::find(files_, file.name) == files_.end()) files_.push_back(file.name);
  std::string out;
  std::int64_t number = 0;
  std::string_view rest = file.text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end);
    ++number;
    const std::string_view name = included_name(line);
    const auto included = name.empty() || depth == kDepthMax
                              ? Result<IncludedFile>(Unexpected{Error{}})
                              : inclusion_.read(file.name, name);
    if (!included) {
      out += line;
      continue;
    }
    out += format("#line 1 \"{}\"\n", escape_for(Medium::kString, name_of(included->name)));
    out += text_of(*included, depth + 1);
    out +=
        format("\n#line {} \"{}\"\n", number + 1, escape_for(Medium::kString, name_of(file.name)));
  }
  return out;
}

std::vector<Tunable> tunables_of(const ast::Ast& tree, const Sources& sources) {
  std::vector<Tunable> out;
  for (const ast::Region& region : tree.regions) {
    const auto* function = std::get_if<ast::TileFunction>(&region);
    if (function == nullptr || function->is_device) continue;
    for (const ast::TemplateParam& param : function->templ.params) {
      if (param.tune.empty()) continue;
      out.push_back({function->name.text, param.name.text, {}});
      for (const ast::ExprId value : param.tune) {
        out.back().values.emplace_back(sources.text(tree[value].span));
      }
    }
  }
  return out;
}

// Leaves out the other kernels of a file; functions that kernels call stay.
void keep_only(ast::Ast& tree, const std::string& kernel) {
  const auto kernel_of = [](const ast::Region& region) {
    const auto* function = std::get_if<ast::TileFunction>(&region);
    return function == nullptr || function->is_device ? nullptr : function;
  };
  const auto is_other = [&](const ast::Region& region) {
    const ast::TileFunction* function = kernel_of(region);
    return function != nullptr && function->name.text != kernel;
  };
  const auto is_it = [&](const ast::Region& region) {
    return kernel_of(region) != nullptr && !is_other(region);
  };
  if (std::ranges::any_of(tree.regions, is_it)) std::erase_if(tree.regions, is_other);
}

Checked<bool> analyse(Program& program, FileId file, const ParseOptions& options,
                      const CompileOptions& how) {
  program.tree = parse_file(program.sources, file, options, program.diags);
  ast::Ast& tree = program.tree;
  if (!how.kernel.empty()) keep_only(tree, how.kernel);
  program.tunables = tunables_of(tree, program.sources);
  auto module = sema::analyse(tree, *program.arch, program.sources, program.diags);
  if (!module) return Unexpected{module.error()};
  program.tile = std::move(*module);
  program.decided = program.tile;
  return passes::run_passes(program.decided, program.diags, how.passes);
}

// IR text, as `kiln ir` prints it: read, checked against the IR's rules, and decided from where it
// stands. It names its own architecture.
Checked<bool> read_ir(Program& program, FileId file, CompileOptions how) {
  how.passes.read_from = Span{file, 0, 0};
  auto module = ir::parse(program.sources, file, program.diags);
  if (!module) return Unexpected{module.error()};
  for (const std::string& mistake : ir::verify(*module)) {
    program.diags.report<diag::IrInvalid>({file, 0, 0}, mistake).emit();
  }
  if (program.diags.has_errors()) return program.diags.failed();
  program.tile = std::move(*module);
  program.arch = program.tile.arch;
  program.decided = program.tile;
  return passes::run_passes(program.decided, program.diags, how.passes);
}

}  // namespace

Checked<const target::Arch*> choose_arch(const std::string& name, Diagnostics& diags) {
  if (name.empty()) {
    const target::Arch* machine = backends::device_arch();
    return machine != nullptr ? machine : &target::default_arch();
  }
  const target::Arch* arch = target::find_arch(name);
  if (arch != nullptr) return arch;
  return diags.report<diag::OptionChoice>({}, "--arch", name, target::arch_names()).emit();
}

Result<Exit> compile(const ProgramOptions& options, const CompileOptions& how, Program& program) {
  const auto arch = choose_arch(options.arch, program.diags);
  if (!arch) return Exit::kUsage;
  program.arch = *arch;
  auto definitions = parse_definitions(options.defines, program.diags);
  if (!definitions) return Exit::kUsage;
  auto text =
      options.text ? Result<std::string>(*options.text) : read_file(options.file, kSourceBytesMax);
  if (!text) return Unexpected{text.error()};
  const FileId file = program.sources.add(options.file, std::move(*text));
  const Inclusion inclusion(options);
  const auto read_included = [&](std::string_view from, std::string_view name) {
    return inclusion.read(from, name);
  };
  const auto done =
      options.file.ends_with(kIrSuffix)
          ? read_ir(program, file, how)
          : analyse(program, file,
                    {.definitions = std::move(*definitions), .read_included = read_included}, how);
  return done && !program.diags.has_errors() ? Exit::kFine : Exit::kWrong;
}

Result<WholeText> whole_text(const ProgramOptions& options, Names names) {
  const Inclusion inclusion(options);
  auto text =
      options.text ? Result<std::string>(*options.text) : read_file(options.file, kSourceBytesMax);
  if (!text) return Unexpected{text.error()};
  Joining joining(inclusion, names);
  WholeText whole;
  whole.text = joining.text_of({options.file, std::move(*text)});
  whole.files = joining.files();
  return whole;
}

Exit compile(const ProgramOptions& options, const CompileOptions& how, Program& program,
             Console& console) {
  const auto exit = compile(options, how, program);
  return exit ? *exit : environment_failed(console, exit.error()).error;
}

Checked<std::size_t> choose_kernel(const Program& program, const std::string& file,
                                   const std::string& name, Diagnostics& diags, Use use) {
  const std::vector<ir::Function>& functions = program.decided.functions;
  std::vector<std::string> names;
  for (const ir::Function& function : functions) names.push_back(function.name);
  const std::string list = join(names, ", ", [](const auto& n) { return format("`{}`", n); });
  if (functions.empty()) return diags.report<diag::KernelNone>({}, file).emit();
  if (name.empty() && functions.size() == 1) return std::size_t{0};
  if (name.empty()) {
    return diags.report<diag::KernelAmbiguous>({}, file, functions.size())
        .help("choose one {}: {}", is_call(use) ? "by its name" : "with `--kernel`", list)
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

}  // namespace kiln::io
