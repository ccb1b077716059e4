// Writes a BlockTrace while a block runs. The interpreter asks for it at five places, each time
// only if there is one: Machine::tracer is null otherwise.
#pragma once

#include <span>

#include "sim/loaded.h"
#include "sim/machine.h"
#include "sim/trace.h"

namespace kiln::sim {

class Tracer {
 public:
  Tracer(const Machine& machine, BlockTrace& out);

  // Around each instruction of a warp. `happened`: it was executed, not put off.
  void begin(Warp& warp, const Instruction& at);
  void end(bool happened);

  // What the instruction just begun does.
  void waits(std::uint32_t slot, std::int64_t phase);
  void arrives(std::uint32_t block, std::uint32_t slot, std::int64_t phase);
  void starts_load(std::uint32_t slot);
  // Its number; kNone where the trace is cut.
  [[nodiscard]] std::uint32_t current() const { return current_; }

  // A box of an earlier entry's load counts for a phase.
  void lands(std::uint32_t entry, std::uint32_t block, std::uint32_t slot, std::int64_t phase);
  // The warps have met at the barrier that each came to last.
  void meet(std::span<const std::uint32_t> warps);

 private:
  void follow(const Instruction& at);
  void pass(std::uint32_t warp, ir::OpId op);
  void hand_over_passed();
  [[nodiscard]] bool describe(const Warp& warp, const Instruction& at, TraceEntry& entry) const;

  const Machine& machine_;
  BlockTrace& out_;
  std::uint32_t current_ = TraceEntry::kNone;
  bool tracing_ = false;  // an instruction that has an entry
  bool meets_ = false;    // it is a barrier of several warps
  TraceEntry entry_;
  std::size_t arrivals_before_ = 0;
  Traffic before_;
  std::vector<Loaded> loaded_;                    // by warp
  std::vector<std::vector<TracePassed>> passed_;  // by warp: since its last entry
  std::vector<std::int64_t> copies_;              // by warp: asynchronous ones so far
  std::vector<std::uint32_t> last_barrier_;       // by warp: its entry
  std::uint32_t meetings_ = 0;
};

}  // namespace kiln::sim
