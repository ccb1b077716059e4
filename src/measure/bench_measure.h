// The times of a row: ours and the baseline's in turn, with the clocks meanwhile; and, where it is
// asked for, their energy.
#pragma once

#include <vector>

#include "measure/bench_row.h"
#include "measure/nvml.h"
#include "measure/options.h"
#include "measure/timing.h"

namespace kiln::measure {

// Fills in times, TFLOP/s, ratio, spread, clocks and power; with three contenders `dense_ratio`
// too; with --power energy. The row has its extents already. Ours comes first; then, where there are
// such, the baseline, and of a sparse problem the library that does the dense one. Errors: what the
// driver says; a contender that --graphs cannot capture; no energy to be had.
[[nodiscard]] Result<void> measure_row(runtime::Gpu& gpu, const BenchOptions& options,
                                       std::size_t sets, const std::vector<Contender>& contenders,
                                       BenchRow& row);

// Before anything is measured: with --power, whether the GPU says what it uses.
[[nodiscard]] Result<void> check_power(const runtime::Gpu& gpu, const BenchOptions& options);

// Fills in what `measure_row` does but for clocks and power, from times that were measured:
// [contender][repeat].
void fill_times(const std::vector<std::vector<double>>& seconds, BenchRow& row);

// The same of energy, from joules of a launch by contender; those of a third one are left out.
void fill_energy(const std::vector<double>& joules, BenchRow& row);

}  // namespace kiln::measure
