// `kiln bench random`: thousands of problems drawn at random, each computed by the library on the
// GPU and checked to the last element.
#pragma once

#include "io/console.h"
#include "measure/options.h"
#include "measure/random_problem.h"

namespace kiln::measure {

// Is `random` what `options.program.file` names?
[[nodiscard]] bool is_random(const BenchOptions& options);

[[nodiscard]] io::Exit bench_random(const BenchOptions& options, io::Console& console);

// Why a kernel was refused, without what differs from problem to problem: numbers become N, the
// names of kernels go, and each reason stands once.
[[nodiscard]] std::string refusal_text(const Error& error);

}  // namespace kiln::measure
