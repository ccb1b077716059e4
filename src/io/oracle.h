// What a run's outputs should be: by the reference, which interprets the program, all of its blocks
// or a sample; and by the user's formula (`--expect`).
//
//   auto formula = read_expect(text, function, arguments, returned, program);   legal?
//   const Oracle oracle{.program = program, .check = Check::kSample};
//   const Said said = by_program(oracle, arguments);
//   auto expected = by_formula(oracle, said, *formula);
#pragma once

#include <string>
#include <vector>

#include "backends/backend.h"
#include "io/program.h"
#include "io/sample.h"
#include "reference/formula.h"

namespace kiln::io {

// Reads a formula and holds it against the kernel's tensors, which must outlive what comes back; so
// must `returned`, which stands for the function's returned value.
[[nodiscard]] Checked<reference::BoundFormula> read_expect(const std::string& text,
                                                           const ir::Function& function,
                                                           const ir::Arguments& arguments,
                                                           Tensor& returned, Program& program);

// Who is asked, and how far.
struct Oracle {
  const Program& program;
  std::size_t function = 0;  // of the program's modules
  backends::Limits limits = {};
  Check check = Check::kBySize;
  std::uint64_t seed = 0;  // of the sample
};

struct Said {
  backends::Interpreted interpreted = {};
  std::string whole = {};  // why no sample of blocks could be taken
};

// What the outputs should be by the program itself.
[[nodiscard]] Said by_program(const Oracle& oracle, const ir::Arguments& arguments);

// What they should be by the formula: all of them where that is cheap or the program was interpreted
// whole, else a sample of what the program knows. An error: not enough memory.
[[nodiscard]] Result<std::vector<reference::Output>> by_formula(
    const Oracle& oracle, const Said& said, const reference::BoundFormula& formula);

}  // namespace kiln::io
