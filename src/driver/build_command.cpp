// `kiln build`, and `kiln run` of a program that has `main`: check the tile functions, put their
// wrappers in their places, and let the host compiler do the rest.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "driver/commands.h"
#include "driver/host_compiler.h"
#include "host/program_text.h"
#include "io/program.h"
#include "support/escape.h"
#include "support/file.h"
#include "support/unfinished.h"
#include "syntax/parser.h"

namespace kiln::driver {

namespace {

namespace fs = std::filesystem;

// The program's functions, and what keeps their types.
struct Functions {
  std::vector<std::unique_ptr<io::Program>> programs;
  std::vector<host::TileFunction> functions;
};

bool is_error(const Diagnostic& diagnostic) { return diagnostic.severity == Severity::kError; }

// Whether all that is wrong is that extents are not known before the call.
bool lacks_extents_only(const Diagnostics& diags) {
  return std::ranges::all_of(diags.all(), [](const Diagnostic& diagnostic) {
    return !is_error(diagnostic) || diagnostic.id == DiagId::kExtentNotConstant;
  });
}

// The dimensions that the parameters name, each where it stands first.
std::vector<host::Constant> dimensions_of(const ast::Ast& tree, const ast::TileFunction& function) {
  std::vector<host::Constant> out;
  std::size_t tensor = 0;
  for (const ast::Param& param : function.params) {
    if (!param.type.shape) continue;
    for (std::size_t dim = 0; dim < param.type.shape->dims.size(); ++dim) {
      const auto* name = tree.as<ast::NameExpr>(param.type.shape->dims[dim].value);
      if (name == nullptr) continue;
      const bool known =
          std::ranges::any_of(out, [&](const auto& c) { return c.name == name->name; });
      if (!known) out.push_back({name->name, tensor, dim});
    }
    ++tensor;
  }
  return out;
}

// A function that is compiled at its calls, for the extents that it gets: its types are those that
// it has with some extents or other.
bool add_for_extents(const io::ProgramOptions& options, const ast::Ast& tree,
                     const ast::TileFunction& function, Functions& out) {
  const std::vector<host::Constant> constants = dimensions_of(tree, function);
  for (const int extent : {64, 128, 256, 1024, 32, 16, 8, 6, 4, 2, 1}) {
    io::ProgramOptions trial = options;
    for (const host::Constant& constant : constants) {
      trial.defines.push_back(format("{}={}", constant.name, extent));
    }
    auto program = std::make_unique<io::Program>();
    static_cast<void>(io::compile(trial, {.kernel = function.name.text}, *program));
    if (program->tile.functions.size() != 1) continue;
    out.functions.push_back({&program->tile.functions.front(), constants});
    out.programs.push_back(std::move(program));
    return true;
  }
  return false;
}

// Every tile function by itself; false when one of them does not compile.
bool add_one_by_one(const io::ProgramOptions& options, const ast::Ast& tree, Functions& out) {
  for (const ast::Region& region : tree.regions) {
    const auto* function = std::get_if<ast::TileFunction>(&region);
    if (function == nullptr || function->is_device) continue;
    auto program = std::make_unique<io::Program>();
    const auto exit = io::compile(options, {.kernel = function->name.text}, *program);
    if (!exit) return false;
    if (*exit == io::Exit::kFine) {
      out.functions.push_back({&program->tile.functions.front(), {}});
      out.programs.push_back(std::move(program));
      continue;
    }
    if (!lacks_extents_only(program->diags)) return false;
    if (!add_for_extents(options, tree, *function, out)) return false;
  }
  return true;
}

// All but that host code is left to the C++ compiler: here it is not left.
void show_all_but_host_code(io::Console& console, const io::Program& program, bool with_errors) {
  Diagnostics shown_ones;
  for (const Diagnostic& diagnostic : program.diags.all()) {
    if (diagnostic.id == DiagId::kHostCodeLeft || (is_error(diagnostic) && !with_errors)) continue;
    static_cast<void>(shown_ones.add(diagnostic));
  }
  io::show_briefly(console, shown_ones, program.sources);
}

// `--on`.
constexpr std::pair<std::string_view, host::On> kPlaces[] = {
    {"auto", host::On::kAuto}, {"sim", host::On::kSim}, {"gpu", host::On::kGpu}};

// What is built, with everything that was asked for in its full form.
struct Target {
  io::ProgramOptions program;
  host::On on = host::On::kAuto;
  std::vector<std::string> compiler;
  Installation installation;
};

Result<std::string, io::Exit> make_text(const Target& target, io::Console& console) {
  auto whole = std::make_unique<io::Program>();
  io::show_progress(console, "compiling tile functions");
  const io::Exit exit = io::compile(target.program, {}, *whole, console);
  Functions all;
  if (exit == io::Exit::kFine) {
    for (const ir::Function& function : whole->tile.functions)
      all.functions.push_back({&function, {}});
  } else if (exit != io::Exit::kWrong || !lacks_extents_only(whole->diags) ||
             !add_one_by_one(target.program, whole->tree, all)) {
    io::show_progress(console, "");
    show_all_but_host_code(console, *whole, true);
    return Unexpected{exit};
  }
  io::show_progress(console, "");
  show_all_but_host_code(console, *whole, false);
  return host::program_text({whole->sources, whole->tree, std::string(whole->arch->name), target.on,
                             target.program.defines, std::move(all.functions)});
}

// The host compiler's command line.
std::vector<std::string> compile_command(const Target& target, const std::string& text,
                                         const std::string& output,
                                         const std::vector<std::string>& flags) {
  const std::string folder = fs::path(target.program.file).parent_path().string();
  const std::string& include = target.installation.include;
  const std::string& library = target.installation.library_folder;
  std::vector<std::string> words = target.compiler;
  for (const char* flag : {"-std=c++20", "-O2", "-Wno-narrowing"}) words.emplace_back(flag);
  words.push_back("-isystem" + include);
  words.push_back("-isystem" + include + "/kiln/host/program");
  words.push_back("-isystem" + include + "/kiln/host/cuda");
  words.push_back("-iquote" + (folder.empty() ? "." : folder));
  for (const std::string& more : target.program.folders) words.push_back("-I" + more);
  for (const std::string& define : target.program.defines) words.push_back("-D" + define);
  words.insert(words.end(), {"-x", "c++", text, "-x", "none", "-o", output, "-L" + library,
                             "-lkiln", "-Wl,-rpath," + library, "-ldl", "-pthread"});
  words.insert(words.end(), flags.begin(), flags.end());
  return words;
}

Result<Target, io::Exit> prepare(const io::ProgramOptions& program, const std::string& on,
                                 const std::string& compiler, io::Console& console) {
  const auto* place = std::ranges::find(kPlaces, on, &std::pair<std::string_view, host::On>::first);
  if (place == std::end(kPlaces)) {
    Diagnostics diags;
    diags.report<diag::OptionChoice>({}, "--on", on, "auto, sim, gpu").emit();
    io::show(console, diags, {});
    return Unexpected{io::Exit::kUsage};
  }
  Target target;
  target.on = place->second;
  target.program = program;
  auto text = io::whole_text(program);
  if (!text) return io::environment_failed(console, text.error());
  target.program.text = std::move(text->text);
  auto words = find_compiler(compiler);
  if (!words) return io::environment_failed(console, words.error());
  target.compiler = std::move(*words);
  auto installation = find_installation();
  if (!installation) return io::environment_failed(console, installation.error());
  target.installation = std::move(*installation);
  return target;
}

// To `output`, which comes into being when everything went well.
io::Exit build_to(const Target& target, const std::string& output,
                  const std::vector<std::string>& flags, io::Console& console) {
  const auto text = make_text(target, console);
  if (!text) return text.error();
  console.err.flush();
  const TemporaryFolder folder;
  if (folder.path().empty()) {
    return io::environment_failed(console, {"cannot make a temporary folder", "", ""}).error;
  }
  const std::string source = folder.path() + "/program.cpp";
  const auto written = write_file(source, *text);
  if (!written) return io::environment_failed(console, written.error()).error;
  const std::string part = format("{}.part{}", output, getpid());
  const UnfinishedFile mark(part);
  io::show_progress(console, "compiling host code\r");  // what the compiler says goes over it
  const auto status = run_process(compile_command(target, source, part, flags));
  io::show_progress(console, "");
  if (!status) return io::environment_failed(console, status.error()).error;
  std::error_code code;
  if (*status != 0) {
    fs::remove(part, code);
    console.err << "error: the host compiler refuses " << shown(target.program.file) << "\n";
    return io::Exit::kWrong;
  }
  fs::rename(part, output, code);
  if (!code) return io::Exit::kFine;
  const std::string reason = code.message();
  fs::remove(part, code);
  return io::environment_failed(console, {"cannot write", output, reason}).error;
}

}  // namespace

io::Exit build(const BuildOptions& options, io::Console& console) {
  auto target = prepare(options.program, options.on, options.compiler, console);
  if (!target) return target.error();
  std::string output = options.output;
  if (output.empty()) output = fs::path(options.program.file).stem().string();
  return build_to(*target, output, options.flags, console);
}

bool is_whole_program(const RunOptions& options) {
  const bool asks = !options.kernel.empty() || !options.shapes.empty() || !options.inputs.empty() ||
                    !options.outputs.empty() || !options.expect.empty() ||
                    !options.references.empty() || !options.check.empty() || options.json;
  if (asks || options.program.file.ends_with(".kir")) return false;
  const auto text = io::whole_text(options.program);
  if (!text) return false;
  Sources sources;
  Diagnostics unheard;
  const FileId file = sources.add(options.program.file, text->text);
  return host::has_main(parse_file(sources, file, {}, unheard), sources);
}

int run_whole_program(const RunOptions& options, io::Console& console) {
  auto target = prepare(options.program, options.on, options.compiler, console);
  if (!target) return static_cast<int>(target.error());
  const TemporaryFolder folder;
  if (folder.path().empty()) {
    const Error error{"cannot make a temporary folder", "", ""};
    return static_cast<int>(io::environment_failed(console, error).error);
  }
  const std::string program = folder.path() + "/program";
  const io::Exit exit = build_to(*target, program, {}, console);
  if (exit != io::Exit::kFine) return static_cast<int>(exit);
  console.err.flush();
  console.out.flush();
  std::vector<std::string> words = {program};
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  const auto status = run_process(words);
  return status ? *status : static_cast<int>(io::environment_failed(console, status.error()).error);
}

}  // namespace kiln::driver
