#include "runtime/library.h"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace kiln::runtime {

namespace {

// The paths a pattern stands for, newest version last in name and first in the list; a plain name
// stands for itself.
std::vector<std::string> expanded(const std::string& pattern) {
  if (pattern.find_first_of("*?[") == std::string::npos) return {pattern};
  std::vector<std::string> out;
  glob_t found{};
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (std::size_t i = found.gl_pathc; i-- > 0;) out.emplace_back(found.gl_pathv[i]);
  }
  globfree(&found);
  return out;
}

// Folders below which Pythons have their packages: the environment that is active, that of the first
// `python3` on the PATH, the user's own, the system's.
std::vector<std::string> python_roots() {
  std::vector<std::string> roots;
  const auto add = [&](const std::string& root) {
    if (std::ranges::find(roots, root) == roots.end()) roots.push_back(root);
  };
  const auto set = [](const char* variable) -> std::string_view {
    const char* value = std::getenv(variable);
    return value == nullptr ? "" : value;
  };
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (!set(variable).empty()) add(std::string(set(variable)));
  }
  for (std::string_view rest = set("PATH"); !rest.empty();) {
    const std::string folder(rest.substr(0, rest.find(':')));
    rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
    if (!folder.ends_with("/bin") || access((folder + "/python3").c_str(), X_OK) != 0) continue;
    add(folder.substr(0, folder.size() - std::string_view("/bin").size()));
    break;
  }
  if (!set("HOME").empty()) add(std::string(set("HOME")) + "/.local");
  add("/usr/local");
  add("/usr");
  return roots;
}

}  // namespace

Result<Library> Library::open(const std::string& what, const std::vector<std::string>& names) {
  std::string reason;
  for (const std::string& pattern : names) {
    for (const std::string& name : expanded(pattern)) {
      void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle != nullptr) return Library(handle, name);
      const char* text = dlerror();
      if (reason.empty() && text != nullptr) reason = text;
    }
  }
  return Unexpected{Error{"cannot open", what, reason}};
}

std::vector<std::string> file_names(const CudaLibrary& library) {
  const std::string file = format("lib{}.so", library.name);
  std::vector<std::string> names = {file};
  for (const std::string& version : library.versions) names.push_back(file + "." + version);
  const char* home = std::getenv("CUDA_HOME");
  if (home != nullptr && *home != '\0') names.push_back(format("{}/lib64/{}*", home, file));
  names.push_back(format("/usr/local/cuda/lib64/{}*", file));
  for (const std::string& root : python_roots()) {
    names.push_back(format("{}/lib/python3*/*-packages/nvidia/*/lib/{}*", root, file));
  }
  return names;
}

std::string file_state(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return {};
  return format("{} {}.{:09}", info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

std::string search_state(const std::vector<std::string>& names) {
  const char* folders = std::getenv("LD_LIBRARY_PATH");
  std::string text = folders == nullptr ? "" : folders;
  std::string_view rest = text;
  std::string states = "\n";
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    states += file_state(std::string(rest.substr(0, end))) + "\n";
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  text += states + file_state("/etc/ld.so.cache");
  for (const std::string& pattern : names) {
    for (const std::string& name : expanded(pattern)) {
      text += format("\n{} {}", name, file_state(name));
    }
  }
  return text;
}

std::string Library::path() const {
  const link_map* map = nullptr;
  return dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "";
}

Result<void*> Library::symbol(const char* name) const {
  void* address = dlsym(handle_, name);
  if (address != nullptr) return address;
  return Unexpected{Error{"cannot find a function in", name_, format("it has no `{}`", name)}};
}

}  // namespace kiln::runtime
