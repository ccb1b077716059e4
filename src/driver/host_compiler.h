// The C++ compiler of the machine, and what it needs of an installed kiln.
#pragma once

#include <string>
#include <vector>

#include "support/result.h"

namespace kiln::driver {

// Where kiln's headers and its library are: beside the folder of the program that runs.
struct Installation {
  std::string include;
  std::string library_folder;
};
[[nodiscard]] Result<Installation> find_installation();

// The words of `--compiler`, else of CXX, else the first of c++, g++ and clang++ that there is.
[[nodiscard]] Result<std::vector<std::string>> find_compiler(const std::string& asked);

// Runs a program with the streams of this process, and waits for it. The value is its exit code, 128
// and the signal's number when one ended it. Errors: it cannot be started.
[[nodiscard]] Result<int> run_process(const std::vector<std::string>& words);

// A folder of its own, removed with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  // Empty: none could be made.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace kiln::driver
