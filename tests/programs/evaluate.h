// One sample, three ways: the reference's bounds, the simulator under several schedules, and a GPU.
#pragma once

#include <set>
#include <string>

#include "programs/sample.h"

namespace kiln::programs {

enum class On : std::uint8_t { kSim, kNvrtc, kGpu };

struct EvaluateOptions {
  On on = On::kSim;  // kNvrtc: also compiled; kGpu: compiled, run and compared
  bool simulate = true;
  std::int64_t schedules = 3;
  int fills = 2;
};

// What disagreed. `kind` and `what` together say which disagreement it is: a shrunk program has
// the same; `detail` is for people.
struct Verdict {
  std::string kind = {};  // empty: all agree
  std::string what = {};
  std::string detail = {};
  std::int64_t compared = 0;          // elements
  std::int64_t not_compared = 0;      // of which nothing can be promised
  std::set<std::string> census = {};  // what the program is made of; only of those that compile
};

[[nodiscard]] Verdict evaluate(const Sample& sample, const EvaluateOptions& options);

}  // namespace kiln::programs
