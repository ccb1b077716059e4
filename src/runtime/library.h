// Shared libraries opened at run time: kiln links neither the CUDA driver nor NVRTC.
//
//   Library::open("the CUDA driver", {"libcuda.so.1"})
//   library->symbol("cuInit")
#pragma once

#include <string>
#include <vector>

#include "support/result.h"

namespace kiln::runtime {

// A library stays open until the process ends: both vendors' libraries keep threads and state of
// their own that do not survive being unloaded. Copies name the same library.
class Library {
 public:
  // The first of `names` that opens. A name is what dlopen takes, or a path with the wildcards of
  // glob(7). Errors: none opens; the reason holds the loader's words for the last one that exists.
  static Result<Library> open(const std::string& what, const std::vector<std::string>& names);

  // Errors: the library has no such symbol (it is too old).
  [[nodiscard]] Result<void*> symbol(const char* name) const;
  [[nodiscard]] const std::string& name() const { return name_; }
  // The file it was opened from; empty when the loader does not say.
  [[nodiscard]] std::string path() const;

 private:
  Library(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  void* handle_;
  std::string name_;
};

// Where toolkits and Python wheels put a library of CUDA's: for Library::open.
struct CudaLibrary {
  std::string name;                   // "nvrtc": libnvrtc.so
  std::vector<std::string> versions;  // of the file's name: libnvrtc.so.13
};
[[nodiscard]] std::vector<std::string> file_names(const CudaLibrary& library);

// Size and time of change of a file, as text; empty when there is none.
[[nodiscard]] std::string file_state(const std::string& path);

// A text that becomes another when Library::open(names) may find another file: what the loader goes
// by, and the files that the names stand for. Costs some tens of microseconds, and opens no
// library.
[[nodiscard]] std::string search_state(const std::vector<std::string>& names);

}  // namespace kiln::runtime
