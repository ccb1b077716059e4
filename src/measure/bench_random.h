// `kiln bench random`: thousands of problems drawn at random, each computed by the library on the
// GPU and checked to the last element.
#pragma once

#include "io/console.h"
#include "measure/options.h"
#include "measure/random_problem.h"
#include "measure/random_report.h"

namespace kiln::measure {

// Is `random` what `options.program.file` names?
[[nodiscard]] bool is_random(const BenchOptions& options);

[[nodiscard]] io::Exit bench_random(const BenchOptions& options, io::Console& console);

}  // namespace kiln::measure
