// An explanation as text for people and as JSON for scripts.
//
//   to_text(explanation, sources)     tables; docs/explain.md reads one
//   to_json(explanation, sources)     the object of `kiln explain --json` (docs/cli.md)
#pragma once

#include <string>

#include "explain/cost/cost.h"
#include "support/source.h"

namespace kiln::explain {

[[nodiscard]] std::string to_text(const Explanation& explanation, const Sources& sources);
[[nodiscard]] std::string to_json(const Explanation& explanation, const Sources& sources);

[[nodiscard]] std::string time_text(double seconds);  // "463 us"

}  // namespace kiln::explain
