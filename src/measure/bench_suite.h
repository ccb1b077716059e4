// `kiln bench SUITE`: every problem of a suite by the library's kernels, beside the vendor's.
#pragma once

#include "io/console.h"
#include "measure/bench_suites.h"
#include "measure/options.h"

namespace kiln::measure {

// `options.program.file` is a suite's name.
[[nodiscard]] io::Exit bench_suite(const BenchOptions& options, io::Console& console);

// The suite's problems that --only and --shape keep. Reports options that go with a file alone, a
// mistake in them, and when they keep none.
[[nodiscard]] Checked<std::vector<gemm::Problem>> chosen_cases(const BenchOptions& options,
                                                               Diagnostics& diags);

}  // namespace kiln::measure
