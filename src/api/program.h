// A program as kiln/kiln.h hands it out: what the compiler made of it, and the same as data of C.
#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "api/diagnostics.h"
#include "io/program.h"

namespace kiln::api {

// The kernels of a module as data of C.
class KernelRows {
 public:
  void set(const ir::Module& module);
  [[nodiscard]] const std::vector<kiln_kernel>& rows() const { return rows_; }

 private:
  [[nodiscard]] kiln_parameter parameter(const ir::Function& function, const ir::Type& type,
                                         const std::string& name);
  [[nodiscard]] const char* const* keep_all(const std::vector<std::string>& texts);
  [[nodiscard]] kiln_kernel kernel(const ir::Module& module, const ir::Function& function);

  Texts texts_;
  std::deque<std::vector<const char*>> lists_;
  std::deque<std::vector<kiln_parameter>> parameters_;
  std::vector<kiln_kernel> rows_;
};

// What `[[tune(...)]]` names, as data of C.
class TunableRows {
 public:
  void set(const std::vector<io::Tunable>& tunables);
  [[nodiscard]] const std::vector<kiln_tunable>& rows() const { return rows_; }

 private:
  Texts texts_;
  std::deque<std::vector<const char*>> lists_;
  std::vector<kiln_tunable> rows_;
};

// What kiln_compile does; with a name, for the file's kernel of that name alone. `program` receives
// null where the file cannot be read.
[[nodiscard]] kiln_status compile_program(const io::ProgramOptions& how, const std::string& kernel,
                                          std::unique_ptr<kiln_program>& program);

// Notes the reason for kiln_last_error.
[[nodiscard]] kiln_status fail(kiln_status status, std::string reason);

}  // namespace kiln::api

struct kiln_program {
  std::string file;
  kiln::io::Program program;
  bool compiled = false;  // without errors
  kiln::api::DiagnosticRows diagnostics;
  kiln::api::KernelRows kernels;
  kiln::api::TunableRows tunables;
  mutable std::once_flag emitted;
  mutable std::string cuda;
};
