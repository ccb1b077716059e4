// `kiln bench`: a suite, the kernel of a file, or a plot of what was measured.
#include "driver/bench_file.h"
#include "driver/bench_plot.h"
#include "driver/bench_suite.h"
#include "driver/commands.h"

namespace kiln::driver {

Exit bench(const BenchOptions& options, Console& console) {
  if (!options.plot.empty()) return bench_plot(options, console);
  if (is_suite(options.program.file)) return bench_suite(options, console);
  return bench_file(options, console);
}

}  // namespace kiln::driver
