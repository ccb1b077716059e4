// What the user says an output should be, by a formula (`--expect`) or by an array (`--ref`).
//
//   Statements said;
//   read_expect(options.expect, function, arguments, program, said)    before the run: is it legal?
//   ... the program runs, the reference interprets it, or a sample of its blocks ...
//   said.expected = io::by_formula(...)                                what does the formula say?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "driver/options.h"
#include "io/assignments.h"
#include "io/console.h"
#include "io/expect.h"
#include "io/program.h"
#include "reference/formula.h"
#include "reference/interpreter.h"

namespace kiln::driver {

// An array that an output is compared with.
struct Reference {
  std::string path;
  reference::Output output;
};

struct Statements {
  std::optional<reference::BoundFormula> formula = {};
  Tensor returned = {};  // what the formula calls the function's returned value
  std::vector<reference::Output> expected = {};  // by the formula, once evaluated
  std::vector<Reference> references = {};
  // Of the program, where it has one: its roundings are then no reason to allow more.
  std::optional<io::NeedlessRounding> needless = {};

  // What is expected of an output; null: nothing.
  [[nodiscard]] const reference::Output* expected_of(const std::string& output) const;
  [[nodiscard]] const Reference* reference_of(const std::string& output) const;
};

// Reads `--expect` and holds it against the kernel's tensors, which must outlive what is said.
[[nodiscard]] Checked<void> read_expect(const std::string& text, const ir::Function& function,
                                        const ir::Arguments& arguments, io::Program& program,
                                        Statements& said);

// `--tolerance A,R`: an element may differ by A + R * |ref|.
struct Tolerance {
  double absolute = 0;
  double relative = 0;
};
[[nodiscard]] Checked<std::optional<Tolerance>> parse_tolerance(const RunOptions& options,
                                                                Diagnostics& diags);

// Reads the arrays of `--ref`. Without a tolerance an array's element and the output's are allowed
// to be the same real number, each rounded to its type.
struct ReferenceRequest {
  const std::vector<io::Assignment>& files;
  const std::optional<Tolerance>& tolerance;
  const std::vector<reference::Output>& outputs;  // the function's, for their shapes and types
};
[[nodiscard]] io::Stage<void> read_references(const ReferenceRequest& request,
                                              const ir::Function& function, io::Program& program,
                                              io::Console& console, Statements& said);

}  // namespace kiln::driver
