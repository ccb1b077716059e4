// What other attributes would do to a kernel's time, by the model of time.
//
//   options.shapes = explain(program, 0, options, diags)->shapes;
//   Advice advice = try_attributes(program, 0, options);
//   advice.trials[0]      {.attribute = "[[pipeline(4, producer)]]", .seconds = 2.75e-4}
//
// The passes are run on copies of the program with the attribute. What they refuse is left out.
#pragma once

#include <vector>

#include "io/explained.h"

namespace kiln::io {

struct Advice {
  std::vector<explain::Trial> trials;  // best first
  std::optional<ir::Module> best;      // the decided program with the first of them
};

// Loops that copy from global to shared memory get `[[pipeline]]` with several numbers, with and without
// a producer; the best of them, and the program as it is, get `[[persistent]]`, and what is fastest then orders of its
// tiles, which are advised where they pay.
[[nodiscard]] Advice try_attributes(const Program& program, std::size_t kernel,
                                    const ExplainOptions& options);

}  // namespace kiln::io
