// What `kiln run` says about a run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "diag/diagnostics.h"
#include "driver/dump.h"
#include "driver/statement.h"
#include "io/integer_inputs.h"
#include "io/sample.h"
#include "reference/compare.h"

namespace kiln::driver {

struct OutputReport {
  std::string name;
  reference::Comparison comparison;
  std::int64_t unwritten = 0;  // elements that the simulated kernel did not write
  std::vector<std::int64_t> first_unwritten = {};  // coordinates
  std::optional<bool> stated = {};  // whether `--expect` is about it; none without `--expect`
  bool only_narrow = false;         // nothing could hide but for narrow inputs
  bool interpreted = true;          // the reference interpreter said something of it
  std::string reference = {};       // the file of `--ref`, where there is one

  // Whether anything but itself would have been found.
  [[nodiscard]] bool compared() const {
    return comparison.not_compared - comparison.unstated + comparison.left_out <
           comparison.elements;
  }
  // Whether `--expect` says something of an element.
  [[nodiscard]] bool held_to_formula() const {
    return stated.value_or(false) && comparison.unstated < comparison.elements;
  }
};

struct RunReport {
  std::string kernel;
  std::string arch;
  std::vector<std::pair<std::string, std::int64_t>> shape;  // dimensions and integer parameters
  std::vector<OutputReport> outputs;
  bool integers = false;                     // the inputs are those of `--fill integers`
  std::vector<io::NarrowInput> narrow = {};  // integer inputs that a narrower type would have held
  std::optional<io::NeedlessRounding> needless = {};  // that `--expect` does not state
  // Of a sample: how many blocks the reference interpreted, of how many. Else 0.
  std::int64_t blocks_compared = 0;
  std::int64_t blocks = 0;
  io::Check asked = io::Check::kBySize;
  std::vector<DumpRequest> dumps = {};
  std::vector<std::string> printed = {};  // by the program: place, thread and text of each line
  std::int64_t prints_dropped = 0;        // lines that were too many
  std::string whole = {};                 // why no sample could be taken
  std::string gave_up = {};  // why the run ended before the program; then there are no outputs
};

// The object of `run --json` (design.md 11). What a place cannot count is null.
[[nodiscard]] std::string report_json(const RunReport& report,
                                      const backends::Execution& execution);

// A few lines for people.
[[nodiscard]] std::string report_text(const RunReport& report, const backends::Execution& execution,
                                      const reference::Outcome& reference);

// What a run found, as diagnostics: the simulator's findings, results outside their bound, and
// assertions that failed.
void report_findings(const ir::Function& function, const RunReport& report,
                     const backends::Execution& execution, const reference::Outcome& reference,
                     Diagnostics& diags);

}  // namespace kiln::driver
