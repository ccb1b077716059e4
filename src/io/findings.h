// What the simulator and the reference interpreter found, as diagnostics and as words.
//
//   report_findings(*execution.sim, diags);     error[race]: ..., with both places
//   findings_text(*execution.sim)               "  1 race, 0 deadlocks, 0 uninitialised reads, ..."
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "diag/diagnostics.h"
#include "io/use.h"
#include "ir/module.h"
#include "ir/printed.h"
#include "reference/interpreter.h"
#include "sim/sim.h"

namespace kiln::io {

// The simulator's findings as diagnostics.
// `use` says whose words help is given in: a command's, or a call's.
void report_findings(const sim::Outcome& outcome, Use use, Diagnostics& diags);

// Why the interpreter gave up, and an assertion that failed, unless somebody else has found one.
struct InterpretedFor {
  Use use = Use::kRun;
  bool assertion_found = false;
};
void report_interpreted(const ir::Function& function, const reference::Outcome& reference,
                        const InterpretedFor& by, Diagnostics& diags);

// A line that counts them.
[[nodiscard]] std::string findings_text(const sim::Outcome& sim);

// What the program printed, each line with its place and its thread.
[[nodiscard]] std::vector<std::string> printed_lines(const std::vector<ir::Printed>& printed,
                                                     const Sources& sources);

// Where the output is declared; the function when that has no place.
[[nodiscard]] Span span_of_output(const ir::Function& function, const std::string& output);

// Where the first of the marked elements of a tensor is.
[[nodiscard]] std::vector<std::int64_t> first_coordinates(const std::vector<bool>& marked,
                                                          const std::vector<std::int64_t>& shape);

// "1 race", "2 races".
[[nodiscard]] std::string amount(std::int64_t count, std::string_view one,
                                 std::string_view many = {});

// "12.3 us".
[[nodiscard]] std::string time_text(double seconds);

}  // namespace kiln::io
