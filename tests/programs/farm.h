// Samples evaluated by several processes, so that one which stops, hangs or spoils the GPU's
// context takes only itself along.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "programs/evaluate.h"

namespace kiln::programs {

struct Finding {
  std::uint64_t number = 0;
  std::string kind;
  std::string what;
  std::string detail;
};

struct FarmOptions {
  Stream stream;
  std::uint64_t first = 0;
  std::uint64_t count = 100;
  int jobs = 1;
  int seconds_max = 60;  // of one sample
  EvaluateOptions evaluate;
};

struct Harvest {
  std::uint64_t done = 0;
  std::int64_t compared = 0;
  std::int64_t not_compared = 0;
  std::map<std::string, std::uint64_t> census;  // in how many programs
  std::vector<Finding> findings;                // by number
};

[[nodiscard]] Harvest run_farm(const FarmOptions& options);

// The verdict of a process of its own.
[[nodiscard]] Verdict evaluate_apart(const Sample& sample, const EvaluateOptions& options,
                                     int seconds_max);

}  // namespace kiln::programs
