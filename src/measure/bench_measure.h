// The times of a row: ours and the baseline's in turn, with the clocks meanwhile.
#pragma once

#include <vector>

#include "measure/bench_row.h"
#include "measure/nvml.h"
#include "measure/options.h"
#include "measure/timing.h"

namespace kiln::measure {

// Who is measured: ours first; then, where there are such, the baseline, and of a sparse problem
// the library that does the dense one.
using Contenders = std::vector<Start>;

// Fills in times, TFLOP/s, ratio, spread, clocks and power; with three contenders `dense_ratio`
// too. The row has its extents already. Errors: what the driver says.
[[nodiscard]] Result<void> measure_row(runtime::Gpu& gpu, const BenchOptions& options,
                                       std::size_t sets, const Contenders& contenders,
                                       BenchRow& row);

// Fills in what `measure_row` does but for clocks and power, from times that were measured:
// [contender][repeat].
void fill_times(const std::vector<std::vector<double>>& seconds, BenchRow& row);

}  // namespace kiln::measure
