// What `kiln run` says about a run.
#pragma once

#include <string>
#include <vector>

#include "driver/execute.h"
#include "reference/compare.h"

namespace kiln::driver {

struct OutputReport {
  std::string name;
  reference::Comparison comparison;
};

struct RunReport {
  std::string kernel;
  std::string arch;
  std::vector<std::pair<std::string, std::int64_t>> shape;  // dimensions and integer parameters
  std::vector<OutputReport> outputs;
};

// The object of `run --json` (design.md 11). What a place cannot count is null.
[[nodiscard]] std::string report_json(const RunReport& report, const Execution& execution);

// A few lines for people.
[[nodiscard]] std::string report_text(const RunReport& report, const Execution& execution,
                                      const reference::Outcome& reference);

// The simulator's findings, results outside their bound and failed assertions as diagnostics.
void report_findings(const ir::Function& function, const RunReport& report,
                     const Execution& execution, const reference::Outcome& reference,
                     Diagnostics& diags);

}  // namespace kiln::driver
