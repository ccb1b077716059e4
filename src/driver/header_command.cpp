// `kiln emit --header`: a `.co` file as functions of C and C++, with machine code where a compiler of
// CUDA is there.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "driver/commands.h"
#include "driver/header_text.h"
#include "driver/host_compiler.h"
#include "emit/cuda/emit.h"
#include "emit/cuda/names.h"
#include "io/program.h"
#include "runtime/cached_compile.h"
#include "runtime/call.h"
#include "runtime/carried_code.h"
#include "support/escape.h"
#include "support/file.h"
#include "support/format.h"
#include "target/miscompiled.h"

namespace kiln::driver {

namespace {

namespace fs = std::filesystem;

// What compiles CUDA here, ahead of the program's run.
enum class Ahead : std::uint8_t { kAuto, kNvrtc, kNvcc, kNo };
constexpr std::pair<std::string_view, Ahead> kAheads[] = {
    {"auto", Ahead::kAuto}, {"nvrtc", Ahead::kNvrtc}, {"nvcc", Ahead::kNvcc}, {"no", Ahead::kNo}};

// One kernel as it will be compiled by the program that carries it.
struct Compiled {
  std::unique_ptr<io::Program> program;
  [[nodiscard]] const ir::Function& function() const { return program->decided.functions.front(); }
};

// Makes machine code; `nvcc` empty: with NVRTC.
class Coder {
 public:
  static Result<Coder> make(Ahead ahead);

  [[nodiscard]] bool is_idle() const { return !why_idle_.empty(); }
  [[nodiscard]] const std::string& why_idle() const { return why_idle_; }
  [[nodiscard]] Result<std::string> code_of(const runtime::CompileRequest& request,
                                            const target::Arch& arch) const;

 private:
  std::string nvcc_;
  std::string why_idle_;  // "": it is not
};

// Where nvcc is; "" for nowhere.
std::string find_nvcc() {
  std::vector<fs::path> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* home = std::getenv(variable); home != nullptr && *home != '\0') {
      folders.push_back(fs::path(home) / "bin");
    }
  }
  std::string path = std::getenv("PATH") != nullptr ? std::getenv("PATH") : "";
  for (std::size_t end = 0; !path.empty(); path.erase(0, end)) {
    end = path.find(':');
    folders.emplace_back(path.substr(0, end));
    end = end == std::string::npos ? path.size() : end + 1;
  }
  folders.emplace_back("/usr/local/cuda/bin");
  std::error_code code;
  for (const fs::path& folder : folders) {
    if (!folder.empty() && fs::exists(folder / "nvcc", code)) return (folder / "nvcc").string();
  }
  return "";
}

Result<Coder> Coder::make(Ahead ahead) {
  Coder coder;
  if (ahead == Ahead::kNo) {
    coder.why_idle_ = "`--ahead no`";
    return coder;
  }
  const auto nvrtc = runtime::find_nvrtc();
  if (ahead == Ahead::kNvrtc && !nvrtc) return Unexpected{nvrtc.error()};
  if (ahead != Ahead::kNvcc && nvrtc) return coder;
  coder.nvcc_ = find_nvcc();
  if (!coder.nvcc_.empty()) return coder;
  if (ahead == Ahead::kNvcc) {
    return Unexpected{Error{"cannot find nvcc", "", "it is not in PATH, and not below CUDA_HOME"}};
  }
  coder.why_idle_ = "there is neither NVRTC nor nvcc";
  return coder;
}

Result<std::string> code_by_nvcc(const std::string& nvcc, const runtime::CompileRequest& request,
                                 const target::Arch& arch) {
  const auto installation = find_installation();
  if (!installation) return Unexpected{installation.error()};
  const TemporaryFolder folder;
  if (folder.path().empty()) return Unexpected{Error{"cannot make a temporary folder", "", ""}};
  const std::string text = folder.path() + "/" + request.file_name;
  const std::string code = folder.path() + "/code.cubin";
  if (auto written = write_file(text, request.text); !written) return Unexpected{written.error()};
  const auto status = run_process({nvcc, "-cubin", format("-arch={}", arch.name), "-std=c++17",
                                   "-I" + installation->include, "-o", code, text});
  if (!status) return Unexpected{status.error()};
  if (*status != 0) return Unexpected{Error{"nvcc cannot compile", request.file_name, ""}};
  auto bytes = read_file(code);
  if (!bytes) return bytes;
  if (const std::string_view wrong = target::known_miscompilation(*bytes); !wrong.empty()) {
    return Unexpected{Error{"cannot compile", request.file_name, std::string(wrong)}};
  }
  return bytes;
}

Result<std::string> Coder::code_of(const runtime::CompileRequest& request,
                                   const target::Arch& arch) const {
  if (!nvcc_.empty()) return code_by_nvcc(nvcc_, request, arch);
  const auto settings = runtime::cache_settings();
  if (!settings) return Unexpected{settings.error()};
  auto compiled =
      runtime::compile_cached(request, runtime::Cache(*settings), runtime::CacheUse::kFindAndStore);
  if (!compiled) return Unexpected{compiled.error()};
  return std::move(compiled->cubin.bytes);
}

std::vector<std::string> names_in(const std::string& list) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    out.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

// The path as a word of a depfile.
std::string depfile_word(const std::string& path) {
  std::string out;
  for (const char c : path) {
    if (c == ' ' || c == '#') out += '\\';
    out += c;
    if (c == '$') out += '$';
  }
  return out;
}

// Whether functions of C++ can be in it; none is one.
bool is_name_space(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find("::"), text.size());
    const std::string_view name = text.substr(0, end);
    if (emit::kernel_name(name) != name || name == "kiln" || name == "std") return false;
    if (end + 2 == text.size()) return false;
    text.remove_prefix(end == text.size() ? end : end + 2);
  }
  return true;
}

// The making of one header and its source.
class HeaderCommand {
 public:
  HeaderCommand(const EmitCommandOptions& options, io::Console& console)
      : options_(options), console_(console) {}

  io::Exit run();

 private:
  io::Exit fail(const Error& error) { return io::environment_failed(console_, error).error; }
  // The file as it lies there, for all that is wrong with it.
  io::Exit check(const std::string& arch, bool is_first, std::vector<std::string>& kernels);
  // What the program will have of it.
  io::Exit compile_as_carried(const std::string& arch, const std::vector<std::string>& kernels);
  Result<void> add_code(const Compiled& compiled);
  io::Exit write();
  Result<void> write_depfile(const std::string& header) const;

  const EmitCommandOptions& options_;
  io::Console& console_;
  io::WholeText whole_;
  Coder coder_;
  CarriedFile file_;
  std::vector<Compiled> compiled_;
  std::size_t done_ = 0;  // kernels compiled as they are carried, for each architecture
};

io::Exit HeaderCommand::check(const std::string& arch, bool is_first,
                              std::vector<std::string>& kernels) {
  io::ProgramOptions how = options_.program;
  how.arch = arch;
  io::Program program;
  io::show_progress(console_, "checking " + arch);
  const io::Exit exit = io::compile(how, {}, program, console_);
  io::show_progress(console_, "");
  if (is_first || exit != io::Exit::kFine) {
    io::show_briefly(console_, program.diags, program.sources);
  }
  if (exit != io::Exit::kFine) return exit;
  file_.archs.emplace_back(program.arch->name);
  kernels.clear();
  for (const ir::Function& function : program.decided.functions) kernels.push_back(function.name);
  return exit;
}

Result<void> HeaderCommand::add_code(const Compiled& compiled) {
  const ir::Function& function = compiled.function();
  const target::Arch& arch = *compiled.program->arch;
  const std::string file_name = runtime::file_name_of(function);
  std::string text =
      emit::emit(compiled.program->decided, compiled.program->sources, {.file_name = file_name});
  const runtime::CompileRequest request =
      runtime::compile_request(std::move(text), arch, file_name);
  auto bytes = coder_.code_of(request, arch);
  if (!bytes) return Unexpected{bytes.error()};
  file_.codes.push_back({.kernel = function.name,
                         .arch = std::string(arch.name),
                         .key = runtime::code_key(request).hex(),
                         .bytes = std::move(*bytes)});
  return {};
}

io::Exit HeaderCommand::compile_as_carried(const std::string& arch,
                                           const std::vector<std::string>& kernels) {
  io::ProgramOptions how;
  how.file = file_.name;
  how.arch = arch;
  how.defines = options_.program.defines;
  how.text = whole_.text;
  for (const std::string& kernel : kernels) {
    const std::size_t all = kernels.size() * file_.archs.size();
    io::show_progress(console_, io::progress_bar("compiling " + kernel, done_++, all));
    Compiled compiled{std::make_unique<io::Program>()};
    const io::Exit exit = io::compile(how, {.kernel = kernel}, *compiled.program, console_);
    if (exit != io::Exit::kFine) {
      io::show_progress(console_, "");
      io::show_briefly(console_, compiled.program->diags, compiled.program->sources);
      return exit;
    }
    if (!coder_.is_idle()) {
      if (const auto added = add_code(compiled); !added) return fail(added.error());
    }
    if (arch == file_.archs.front()) compiled_.push_back(std::move(compiled));
  }
  return io::Exit::kFine;
}

Result<void> HeaderCommand::write_depfile(const std::string& header) const {
  std::string text = depfile_word(header) + ":";
  for (const std::string& file : whole_.files) text += " \\\n  " + depfile_word(file);
  return write_file(options_.depfile, text + "\n");
}

io::Exit HeaderCommand::write() {
  for (const Compiled& compiled : compiled_) {
    const Place place = compiled.program->sources.place(compiled.function().span);
    file_.kernels.push_back(&compiled.function());
    file_.places.push_back(format("{}:{}", place.file, place.line));
  }
  const fs::path header = options_.header;
  fs::path source = options_.source;
  if (source.empty()) source = fs::path(header).replace_extension(".c");
  if (source == header) {
    return fail({"cannot write", header.string(), "it is the header and the source as well"});
  }
  const auto done = write_file(header.string(), header_text(file_));
  if (!done) return fail(done.error());
  const auto sourced = write_file(source.string(), source_text(file_, header.filename().string()));
  if (!sourced) return fail(sourced.error());
  if (options_.depfile.empty()) return io::Exit::kFine;
  const auto listed = write_depfile(header.string());
  return listed ? io::Exit::kFine : fail(listed.error());
}

io::Exit HeaderCommand::run() {
  const auto* ahead =
      std::ranges::find(kAheads, options_.ahead, &std::pair<std::string_view, Ahead>::first);
  Diagnostics diags;
  if (ahead == std::end(kAheads)) {
    diags.report<diag::OptionChoice>({}, "--ahead", options_.ahead, "auto, nvrtc, nvcc, no").emit();
  } else if (!is_name_space(options_.name_space)) {
    diags.report<diag::OptionForm>({}, "--namespace", options_.name_space, "NAME or NAME::NAME")
        .help("the names are identifiers that C++, CUDA and kiln leave free")
        .emit();
  }
  if (diags.has_errors()) {
    io::show(console_, diags, {});
    return io::Exit::kUsage;
  }
  auto whole = io::whole_text(options_.program, io::Names::kInside);
  if (!whole) return fail(whole.error());
  whole_ = std::move(*whole);
  file_.name = fs::path(options_.program.file).filename().string();
  file_.text = whole_.text;
  file_.defines = options_.program.defines;
  file_.name_space = options_.name_space;
  std::vector<std::string> kernels;
  for (const std::string& arch : names_in(options_.program.arch)) {
    if (std::ranges::find(file_.archs, arch) != file_.archs.end()) continue;
    const io::Exit exit = check(arch, file_.archs.empty(), kernels);
    if (exit != io::Exit::kFine) return exit;
  }
  auto coder = Coder::make(ahead->second);
  if (!coder) return fail(coder.error());
  coder_ = std::move(*coder);
  if (coder_.is_idle() && ahead->second == Ahead::kAuto) {
    console_.err << "note: " << shown(file_.name)
                 << " is compiled when its kernels are called: " << coder_.why_idle() << "\n";
  }
  for (const std::string& arch : file_.archs) {
    const io::Exit exit = compile_as_carried(arch, kernels);
    if (exit != io::Exit::kFine) return exit;
  }
  io::show_progress(console_, "");
  return write();
}

}  // namespace

io::Exit emit_header(const EmitCommandOptions& options, io::Console& console) {
  return HeaderCommand(options, console).run();
}

}  // namespace kiln::driver
