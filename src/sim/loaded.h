// Which loads the values of a warp come from: a trace says what waits for them.
//
//   %b = read view=%bias index=[j]           entry 7 loads
//   %c = binary add %a %b                    %c comes from entry 7
//   set_element frag=%acc value=%c           so does %acc
//   store frag=%acc                          entry 9 needs entry 7
//
// Another read of `bias` in between needs nothing of it, and is on its way at the same time.
#pragma once

#include <vector>

#include "sim/trace.h"

namespace kiln::sim {

class Loaded {
 public:
  using Needs = std::array<std::uint32_t, 2>;  // as TraceEntry::needs

  Loaded() = default;
  explicit Loaded(const ir::Function& function);

  // The warp executes the operation.
  void execute(const ir::Op& op);
  // What the operation just executed needs; an entry that waits for it calls `met` behind.
  [[nodiscard]] const Needs& needs() const { return needs_; }
  void met();
  // What it loads comes from this entry.
  void comes_from(const ir::Op& op, std::uint32_t entry, bool global);
  // Whether it only moves registers, an array of one thread among them.
  [[nodiscard]] bool stays_in_registers(const ir::Op& op) const;

 private:
  [[nodiscard]] Needs& of(ir::ValueId value);
  template <class Visit>
  void for_each_written(const ir::Op& op, Visit&& visit);

  const ir::Function* function_ = nullptr;
  std::vector<Needs> values_;  // by ValueId: of scalars, tiles, cells and local arrays
  Needs needs_ = {TraceEntry::kNone, TraceEntry::kNone};
  Needs control_ = needs_;  // of what decides which instructions come next
};

}  // namespace kiln::sim
