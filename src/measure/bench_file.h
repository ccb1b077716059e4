// `kiln bench FILE.co`: the kernel of a file on the problems of the command line.
//
//   bench_file({.program = {.file = "matmul.co"}, .shapes = {"M=64,N=64,K=64"}, ...}, console)
#pragma once

#include <deque>
#include <optional>

#include "io/assignments.h"
#include "io/console.h"
#include "io/program.h"
#include "ir/arguments.h"
#include "measure/bench_row.h"
#include "measure/options.h"
#include "measure/product.h"
#include "reference/formula.h"
#include "runtime/call.h"

namespace kiln::measure {

[[nodiscard]] io::Exit bench_file(const BenchOptions& options, io::Console& console);

// The rest of this file is what bench_file.cpp, which binds the problems, tells
// bench_file_measure.cpp, which measures them.

// One problem: what `--shape` and `--expect` say together. A plain product is checked by the einsum
// of the run; whatever else by the reference, which interprets the program, and by the formula.
struct FileProblem {
  std::string shape;  // as given
  ir::Arguments arguments;
  Tensor returned;  // type and shape of what the function returns, when that is no parameter
  std::vector<reference::Named> tensors;
  std::optional<ProductOf> product;
  std::optional<reference::BoundFormula> formula;
};

// One run of the command: everything that is the same for all of its problems.
struct FileBench {
  const BenchOptions& options;
  io::Program& program;
  io::Console& console;
  std::size_t kernel = 0;
  std::optional<reference::Einsum> einsum = {};  // what `--expect` says, where it is one product
  std::deque<FileProblem> problems = {};

  [[nodiscard]] const ir::Function& function() const { return program.decided.functions[kernel]; }
  void progress(const std::string& text) const;
  io::Stage<void> bind_problem(const std::vector<io::Assignment>& shapes, std::string text);
};

// The GPU, and the kernels on it.
struct FileDevice {
  runtime::Gpu gpu;
  runtime::Kernels kernels;
  runtime::LoadTimes loads;
};

// Measures one problem, checks its result and reports. No row: the result is wrong, which is in the
// diagnostics. Errors: what the driver says.
[[nodiscard]] Result<std::optional<BenchRow>> run_problem(FileDevice& device,
                                                          const FileBench& bench,
                                                          FileProblem& problem);

}  // namespace kiln::measure
