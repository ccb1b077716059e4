#include "driver/host_compiler.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "support/format.h"

extern char** environ;

namespace kiln::driver {

namespace fs = std::filesystem;

namespace {

constexpr int kSignalled = 128;

bool is_program(const fs::path& path) {
  std::error_code code;
  return fs::is_regular_file(path, code) && access(path.c_str(), X_OK) == 0;
}

// Whether a shell would find it.
bool is_found(const std::string& name) {
  if (name.find('/') != std::string::npos) return is_program(name);
  const char* folders = std::getenv("PATH");
  std::istringstream list(folders != nullptr ? folders : "");
  std::string folder;
  while (std::getline(list, folder, ':')) {
    if (is_program(fs::path(folder.empty() ? "." : folder) / name)) return true;
  }
  return false;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

}  // namespace

Result<Installation> find_installation() {
  std::error_code code;
  const fs::path self = fs::read_symlink("/proc/self/exe", code);
  const fs::path root = self.parent_path().parent_path();
  const fs::path include = root / "include";
  if (!fs::exists(include / "kiln" / "co.h", code)) {
    return Unexpected{Error{"cannot find the headers of kiln", include.string(),
                            "`kiln/co.h` is not there: install kiln with `cmake --install`"}};
  }
  for (const char* folder : {KILN_LIBRARY_FOLDER, "lib", "lib64"}) {
    const fs::path library = root / folder;
    if (fs::exists(library / "libkiln.so", code)) {
      return Installation{include.string(), library.string()};
    }
  }
  return Unexpected{Error{"cannot find the library of kiln", (root / "lib").string(),
                          "`libkiln.so` is not there: build the target `kiln_shared`, or install "
                          "kiln with `cmake --install`"}};
}

Result<std::vector<std::string>> find_compiler(const std::string& asked) {
  const char* variable = std::getenv("CXX");
  const bool by_variable = asked.empty() && variable != nullptr && *variable != '\0';
  if (!asked.empty() || by_variable) {
    std::vector<std::string> words = words_of(by_variable ? variable : asked);
    if (!words.empty() && is_found(words.front())) return words;
    return Unexpected{Error{"cannot find the host compiler", by_variable ? variable : asked,
                            by_variable ? "that is what CXX says; `--compiler` names another one"
                                        : "that is what `--compiler` says"}};
  }
  for (const char* name : {"c++", "g++", "clang++"}) {
    if (is_found(name)) return std::vector<std::string>{name};
  }
  return Unexpected{Error{"cannot find a host compiler", "c++, g++, clang++",
                          "none of them is in PATH; CXX or `--compiler` names one"}};
}

Result<int> run_process(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], nullptr, nullptr, argv.data(), environ);
  if (error != 0) {
    return Unexpected{Error{"cannot start", words.front(), std::strerror(error)}};
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return Unexpected{Error{"cannot wait for", words.front(), ""}};
  }
  return WIFSIGNALED(status) ? kSignalled + WTERMSIG(status) : WEXITSTATUS(status);
}

TemporaryFolder::TemporaryFolder() {
  std::error_code code;
  const fs::path base = fs::temp_directory_path(code);
  if (code) return;
  std::string path = (base / "kiln-XXXXXX").string();
  if (mkdtemp(path.data()) != nullptr) path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code code;
  if (!path_.empty()) fs::remove_all(path_, code);
}

}  // namespace kiln::driver
