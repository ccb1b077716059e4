// Results of `kiln bench` as a picture: a bar for each problem, as long as its ratio to the
// baseline, in groups by suite, with a line at 1.
//
//   dense, geometric mean 1.012             0   0.2   0.4   0.6   0.8   1.0   1.2
//   M=1024,N=1024,K=1024  f16 * f16 -> f16  ==============================|==  1.061
//   M=2048,N=2048,K=2048  f16 * f16 -> f16  =========================     |    0.983
//
// The same rows make the same picture on every machine: all coordinates are integers.
#pragma once

#include <string>
#include <vector>

#include "io/console.h"
#include "measure/bench_row.h"
#include "measure/options.h"

namespace kiln::measure {

// A standalone SVG without scripts or fonts of its own. Of a problem that was measured several
// times the last row counts.
[[nodiscard]] std::string plot_svg(const std::vector<BenchRow>& rows);

// The last row of each problem, in the place of its first one.
[[nodiscard]] std::vector<BenchRow> latest_rows(const std::vector<BenchRow>& rows);

// The command `kiln bench --plot FILE`.
[[nodiscard]] io::Exit bench_plot(const BenchOptions& options, io::Console& console);

}  // namespace kiln::measure
