// A block's trace as the steps of its warps, each with what it takes of the SM: the input of sm.h.
//
//   BlockSteps steps = steps_of(function, arch, timing, trace, works);
//   steps.warps[4][2]     a wait for generation 0
//   steps.generations[0]  complete when two steps have arrived
//
// The works have for each operation what one execution of a warp takes.
#pragma once

#include <array>
#include <vector>

#include "ir/module.h"
#include "sim/trace.h"
#include "target/arch.h"
#include "target/timing.h"

namespace kiln::explain {

// Of one operation, executed once by one warp.
struct WorkEach {
  std::array<float, target::kUnits.size()> cycles = {};  // of a quarter's units
  float instructions = 0;
  float latency = 0;  // of shuffles and quotients, one after the other
};

struct Step {
  static constexpr std::uint32_t kNone = sim::TraceEntry::kNone;

  sim::TraceKind kind = sim::TraceKind::kElement;
  bool loads = false;
  ir::OpId op;
  WorkEach before;   // what the warp computes first
  float slots = 0;   // instructions of its own
  float tensor = 0;  // cycles of the quarter's tensor core
  float shared = 0;  // cycles of shared memory, and of the path to it
  float read = 0;    // bytes of global memory
  float written = 0;
  float stored = 0;                                     // with what they do not fill of each sector
  std::uint32_t group = 0;                              // as TraceEntry::group
  std::uint32_t number = 0;                             // of the step among the block's
  std::array<std::uint32_t, 2> needs = {kNone, kNone};  // steps of the same warp
  std::uint32_t waits_for = kNone;                      // a generation
  std::uint32_t meeting = kNone;
  std::uint32_t arrives_begin = 0;  // BlockSteps::arrivals[begin..end): generations
  std::uint32_t arrives_end = 0;
};

struct BlockSteps {
  std::uint32_t blocks = 1;  // of the cluster: an SM each
  std::uint32_t warps_each = 1;
  std::uint32_t count = 0;
  std::vector<std::vector<Step>> warps;
  std::vector<std::uint32_t> generations;  // how many arrivals complete each
  std::vector<std::uint32_t> meetings;     // how many warps meet at each
  std::vector<std::uint32_t> arrivals;
};

[[nodiscard]] BlockSteps steps_of(const ir::Function& function, const target::Arch& arch,
                                  const target::Timing& timing, const sim::BlockTrace& trace,
                                  const std::vector<WorkEach>& works);

}  // namespace kiln::explain
