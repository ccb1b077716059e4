// How long a launch takes on the architecture's reference part, and what it is bound by.
//
//   Prediction p = predict(arch, steps, facts);
//   p.seconds, p.clock_ghz        463 us at 1.75 GHz
//   p.bound == Limit::kCopies     waiting for asynchronous copies: more of them ahead would help
//
// A model: sm.h runs the blocks of the busiest SM; this adds what the SMs share (the second-level cache, DRAM, the
// power), the waves, and the start of a kernel. docs/time-model.md says what is in it.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "explain/time/sm.h"

namespace kiln::explain {

// What a launch is, beside the steps of its middle block.
struct LaunchFacts {
  std::int64_t blocks = 1;  // of one execution
  std::int64_t times = 1;
  std::int64_t resident = 1;  // blocks that an SM holds
  double bytes_read = 0;      // of global memory, that all blocks of one execution ask for
  double bytes_written = 0;
  double bytes_read_once = 0;  // of the buffers
  double bytes_from_dram =
      0;  // that are read, as far as is known which tiles are worked on at once
  double bytes_written_once = 0;
  double scale = 1;  // of the mean block to what the trace has of the middle one
};

// What a launch would be faster with.
enum class Limit : std::uint8_t {
  kTensor,
  kDram,
  kCache,  // bytes from the second-level cache to the SMs
  kShared,
  kUnit,
  kIssue,
  kLatency,  // of copies and loads that too little hides
  kStart,    // of the kernel and its blocks
};
[[nodiscard]] std::string_view name(Limit limit);  // "latency"

struct Prediction {
  double seconds = 0;  // of all executions
  double clock_ghz = 0;
  double cycles = 0;  // of the busiest SM, one execution
  bool power_limited = false;
  Limit bound = Limit::kLatency;
  // For each limit the part of the time that goes if it is half as strict, most first.
  std::vector<std::pair<Limit, double>> gains;
  double scale = 1;             // as LaunchFacts has it
  SmRun run;                    // of the blocks that were run
  std::int64_t on_busiest = 0;  // blocks of the busiest SM
};

// Without gains there is no bound.
[[nodiscard]] Prediction predict(const target::Arch& arch, const target::Timing& timing,
                                 const BlockSteps& steps, const LaunchFacts& facts,
                                 bool with_gains = true);

}  // namespace kiln::explain
