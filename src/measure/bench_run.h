// Problems of a suite, measured one after the other.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "measure/bench_machine.h"
#include "measure/bench_row.h"

namespace kiln::measure {

// `run(bench, problem)` gives a row, or none where it has shown what is wrong; `label(problem)` names it. A row is shown,
// kept in `bench.rows` and written as soon as it is there. A problem that fails is told, and the others go on; a file
// that cannot be written ends all.
template <class Bench, class Problem, class Label, class Run>
Result<void> run_problems(Bench& bench, const std::vector<Problem>& problems, const Label& label,
                          const Run& run) {
  const std::string& path = bench.options.json;
  for (const Problem& problem : problems) {
    const auto row = run(bench, problem);
    bench.progress("");
    if (!row) {
      bench.console.err << "error: " << label(problem) << ": " << row.error().text() << "\n";
      bench.failed = true;
      continue;
    }
    if (!*row) continue;
    bench.console.out << to_text(**row) << std::flush;
    bench.rows.push_back(**row);
    if (path.empty()) continue;
    if (auto written = append_to_file(path, to_json(**row)); !written) return written;
  }
  return {};
}

}  // namespace kiln::measure
