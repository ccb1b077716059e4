// What arithmetic costs: which units work on the values of an operation, and how often.
//
//   %12 = unary kind=exp operand=%11 : f32, executed 64 times by warps
//     work_of(...)[special functions] == 64, [FP32] == 7 * 64
//   reduce of 32 values of each lane to 1, then between 32 lanes
//     31 + 5 additions and 5 shuffles, each time
//
// How often is the simulator's; what one takes is what nvcc makes of the CUDA that kiln emits, along
// its usual path: see the rows of work.cpp. Addresses are not counted, nor is what is kept from one
// operation for another.
#pragma once

#include <array>
#include <vector>

#include "ir/module.h"
#include "sim/sim.h"
#include "target/arch.h"

namespace kiln::explain {

// Instructions of warps, by unit.
class Work {
 public:
  [[nodiscard]] std::int64_t& operator[](target::Unit unit) {
    return counts_[static_cast<std::size_t>(unit)];
  }
  [[nodiscard]] std::int64_t operator[](target::Unit unit) const {
    return counts_[static_cast<std::size_t>(unit)];
  }
  [[nodiscard]] std::int64_t sum() const;
  void add(const Work& other, std::int64_t times = 1);

 private:
  std::array<std::int64_t, target::kUnits.size()> counts_ = {};
};

// How many elements of a tile that an apply goes through share one value of an operation in it.
//
//   apply frag=%p 64x64 { %a = element frag=%s 64x64; %b = element frag=%sum 64x1; 1 / %b; ... }
//     the quotient is one for each of the lane's rows: as many elements as a row has in a lane share it
class Repeats {
 public:
  explicit Repeats(const ir::Function& function);
  [[nodiscard]] std::int64_t of(ir::OpId op) const { return repeats_[op.index]; }

 private:
  void enter(const ir::Function& function, const ir::Apply& apply);

  std::vector<std::int64_t> repeats_;   // by OpId, at least 1
  std::vector<std::int64_t> distinct_;  // by ValueId: values of each lane; 0: one for all
};

// Of all executions that `counts` has, of which `repeats` share their result.
[[nodiscard]] Work work_of(const ir::Function& function, const ir::Op& op,
                           const sim::Counters& counts, std::int64_t repeats = 1);

// Cycles of one SM that a unit is busy with so many instructions.
[[nodiscard]] double busy_cycles(const target::Arch& arch, target::Unit unit, double instructions);

}  // namespace kiln::explain
