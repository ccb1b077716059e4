#include "runtime/nvrtc.h"

#include <cstdlib>

#include "runtime/library.h"
#include "target/miscompiled.h"

namespace kiln::runtime {

namespace {

using Status = int;  // nvrtcResult; 0 is success
using Program = struct ProgramTag*;

// KILN_NVRTC(member, symbol, parameters): NVRTC's stable binary interface.
#define KILN_NVRTC_FUNCTIONS(KILN_NVRTC)                                                 \
  KILN_NVRTC(version, "nvrtcVersion", (int* major, int* minor))                          \
  KILN_NVRTC(create, "nvrtcCreateProgram",                                               \
             (Program * program, const char* text, const char* name, int header_count,   \
              const char* const* header_texts, const char* const* header_names))         \
  KILN_NVRTC(destroy, "nvrtcDestroyProgram", (Program * program))                        \
  KILN_NVRTC(compile, "nvrtcCompileProgram",                                             \
             (Program program, int option_count, const char* const* options))            \
  KILN_NVRTC(log_size, "nvrtcGetProgramLogSize", (Program program, std::size_t * bytes)) \
  KILN_NVRTC(log, "nvrtcGetProgramLog", (Program program, char* text))                   \
  KILN_NVRTC(cubin_size, "nvrtcGetCUBINSize", (Program program, std::size_t * bytes))    \
  KILN_NVRTC(cubin, "nvrtcGetCUBIN", (Program program, char* bytes))

struct Api {
#define KILN_NVRTC(member, symbol, parameters) Status(*member) parameters = nullptr;
  KILN_NVRTC_FUNCTIONS(KILN_NVRTC)
#undef KILN_NVRTC
  const char* (*error_text)(Status status) = nullptr;
  std::string path;  // of the library

  [[nodiscard]] bool is_from(int wanted_major, int wanted_minor) const {
    int major = 0;
    int minor = 0;
    if (version(&major, &minor) != 0) return false;
    return major > wanted_major || (major == wanted_major && minor >= wanted_minor);
  }
  // NVRTC documentation, "Caching".
  [[nodiscard]] bool keeps_results() const { return is_from(12, 9); }
  // Whether it compiles a program's kernels at the same time, on all cores: 12.4 does not know the option, 12.6 does.
  [[nodiscard]] bool splits_programs() const { return is_from(12, 6); }
  // "13.0"; empty when it does not say.
  [[nodiscard]] std::string version_text() const {
    int major = 0;
    int minor = 0;
    return version(&major, &minor) == 0 ? format("{}.{}", major, minor) : "";
  }
  [[nodiscard]] Result<void> check(Status status, const std::string& subject) const {
    if (status == 0) return {};
    return Unexpected{Error{"cannot compile", subject, error_text(status)}};
  }
};

Result<Api> open_api() {
  const Result<Library> library = Library::open("NVRTC", nvrtc_names());
  if (!library) return Unexpected{library.error()};
  Api api;
  api.path = library->path();
#define KILN_NVRTC(member, name, parameters)                       \
  {                                                                \
    const Result<void*> address = library->symbol(name);           \
    if (!address) return Unexpected{address.error()};              \
    api.member = reinterpret_cast<decltype(api.member)>(*address); \
  }
  KILN_NVRTC_FUNCTIONS(KILN_NVRTC)
#undef KILN_NVRTC
  const Result<void*> address = library->symbol("nvrtcGetErrorString");
  if (!address) return Unexpected{address.error()};
  api.error_text = reinterpret_cast<decltype(api.error_text)>(*address);
  return api;
}

std::string program_log(const Api& api, Program program) {
  std::size_t bytes = 0;
  if (api.log_size(program, &bytes) != 0 || bytes <= 1) return {};
  std::string log(bytes, '\0');
  if (api.log(program, log.data()) != 0) return {};
  log.resize(bytes - 1);  // without the closing zero
  return log;
}

// Its log: warnings, or as an error why it does not compile.
Result<std::string> run_compiler(const Api& api, Program program, const CompileRequest& request) {
  std::vector<const char*> options;
  for (const std::string& option : request.options) options.push_back(option.c_str());
  if (request.anew && api.keeps_results()) options.push_back("--no-cache");
  if (api.splits_programs()) options.push_back("--split-compile=0");
  const Status status = api.compile(program, static_cast<int>(options.size()), options.data());
  std::string log = program_log(api, program);
  if (status == 0) return log;
  return Unexpected{
      Error{"cannot compile", request.file_name, log.empty() ? api.error_text(status) : log}};
}

Result<Cubin> compile_program(const Api& api, Program program, const CompileRequest& request) {
  const std::string& file_name = request.file_name;
  Result<std::string> log = run_compiler(api, program, request);
  if (!log) return Unexpected{log.error()};
  Cubin out;
  out.log = std::move(*log);
  std::size_t bytes = 0;
  if (auto sized = api.check(api.cubin_size(program, &bytes), file_name); !sized) {
    return Unexpected{sized.error()};
  }
  out.bytes.resize(bytes);
  if (auto got = api.check(api.cubin(program, out.bytes.data()), file_name); !got) {
    return Unexpected{got.error()};
  }
  if (const std::string_view wrong = target::known_miscompilation(out.bytes); !wrong.empty()) {
    return Unexpected{Error{"cannot compile", file_name, std::string(wrong)}};
  }
  out.version = api.version_text();
  return out;
}

}  // namespace

std::vector<std::string> nvrtc_names() {
  return file_names({.name = "nvrtc", .versions = {"13", "12", "11.2"}});
}

Result<NvrtcFile> find_nvrtc() {
  const Result<Api> api = open_api();
  if (!api) return Unexpected{api.error()};
  return NvrtcFile{.version = api->version_text(), .path = api->path};
}

namespace {

// Where the toolkit's headers are, which NVRTC does not have of itself: a program's own CUDA may include
// them, and nothing else is included so. Empty: it does not, or there is no toolkit.
std::string toolkit_headers(const std::string& text) {
  if (text.find("\n#include <") == std::string::npos) return "";
  const char* home = std::getenv("CUDA_HOME");
  for (const std::string& root :
       {std::string(home == nullptr ? "" : home), std::string("/usr/local/cuda")}) {
    const std::string folder = root + "/include";
    if (!root.empty() && !file_state(folder + "/cuda_fp16.h").empty()) return folder;
  }
  return "";
}

}  // namespace

CompileRequest compile_request(std::string text, const target::Arch& arch, std::string file_name) {
  std::vector<std::string> options = {format("--gpu-architecture={}", arch.name), "--std=c++17"};
  const std::string headers = toolkit_headers(text);
  if (!headers.empty()) options.push_back(format("--include-path={}", headers));
  return {.text = std::move(text),
          .file_name = std::move(file_name),
          .options = std::move(options),
          .headers = emit::device_headers()};
}

namespace {

Result<Program> create_program(const Api& api, const CompileRequest& request) {
  std::vector<const char*> names;
  std::vector<const char*> texts;
  for (const emit::DeviceHeader& header : request.headers) {
    names.push_back(header.name);
    texts.push_back(header.text);
  }
  Program program = nullptr;
  const Status created = api.create(&program, request.text.c_str(), request.file_name.c_str(),
                                    static_cast<int>(names.size()), texts.data(), names.data());
  if (auto made = api.check(created, request.file_name); !made) return Unexpected{made.error()};
  return program;
}

}  // namespace

Result<Cubin> compile(const CompileRequest& request) {
  const Result<Api> api = open_api();
  if (!api) return Unexpected{api.error()};
  Result<Program> program = create_program(*api, request);
  if (!program) return Unexpected{program.error()};
  Result<Cubin> out = compile_program(*api, *program, request);
  api->destroy(&*program);
  return out;
}

Result<void> try_compile(const CompileRequest& request) {
  const Result<Api> api = open_api();
  if (!api) return Unexpected{api.error()};
  Result<Program> program = create_program(*api, request);
  if (!program) return Unexpected{program.error()};
  const Result<std::string> log = run_compiler(*api, *program, request);
  api->destroy(&*program);
  if (!log) return Unexpected{log.error()};
  return {};
}

}  // namespace kiln::runtime
