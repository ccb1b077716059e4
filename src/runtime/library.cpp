#include "runtime/library.h"

#include <dlfcn.h>
#include <glob.h>

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

Result<void*> Library::symbol(const char* name) const {
  void* address = dlsym(handle_, name);
  if (address != nullptr) return address;
  return Unexpected{Error{"cannot find a function in", name_, format("it has no `{}`", name)}};
}

}  // namespace kiln::runtime
