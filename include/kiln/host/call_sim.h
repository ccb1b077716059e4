// A call of a tile function in the simulator: with all checks, and what they find named by the
// call's line. Included by call.h.
#pragma once

#include "kiln/host/one_call.h"

namespace kiln::host {

inline void Call::simulate() {
  check_places(true);
  const kiln_program* program = compiled().find(function_, constants(), site_);
  const kiln_call call = call_of();
  const kiln_status status = kiln_simulate(program, &call, &report_);
  if (status != KILN_OK) {
    refuse(report_ != nullptr ? kiln_report_text(report_) : kiln_last_error(), 1);
  }
  std::cout << kiln_report_printed(report_) << std::flush;
  std::size_t count = 0;
  const kiln_diagnostic* found = kiln_report_diagnostics(report_, &count);
  std::string text;
  bool has_results = true;
  for (std::size_t i = 0; i < count; ++i) {
    text += std::string("\n") + found[i].text;
    const std::string id = found[i].id;
    has_results = has_results && id != "cuda-not-run" && id != "too-many-steps";
  }
  const kiln_findings findings = kiln_report_findings(report_);
  if (!text.empty()) say(site_, std::string("in this call of `") + function_.name + "`" + text);
  if (findings.ok == 0) host::findings().add();
  if (!has_results) stop(site_, "the program ends here: the call has no results", 1);
  if (findings.deadlocks != 0) stop(site_, "the program ends here: the call came to no end", 1);
}

}  // namespace kiln::host
