// The host part of a function, run for its launches: scalars are computed, buffers announced,
// kernels handed on in program order.
//
//   int n = cdiv(M, 64);            a scalar
//   f32 [M] tmp;                    allocate(tmp, [512])
//   parallel b by n : block {...}   launch(op), with n's value at hand
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "ir/arguments.h"
#include "ir/module.h"
#include "ir/printed.h"
#include "support/result.h"
#include "support/steps.h"

namespace kiln::runtime {

class HostProgram {
 public:
  struct Hooks {
    // A global buffer comes into being; `initial` is every element's value, none leaves it open.
    std::function<Result<void>(ir::ValueId, const std::vector<std::int64_t>& shape,
                               std::optional<double> initial)>
        allocate;
    std::function<Result<void>(ir::OpId)> launch;
  };

  HostProgram(const ir::Function& function, const ir::Arguments& arguments);

  // Runs it once, from the start. Errors: a hook's; an assertion of the program that fails; an
  // operation that only kernels can do; an element read or written here: what buffers hold is not
  // known before the launches have run; more than `steps_max` steps, where what is kept for later, a
  // launch, a buffer or a printed line, counts as a thousand.
  [[nodiscard]] Result<void> run(const Hooks& hooks, std::uint64_t steps_max = kStepsMax);

  // By VarId, as they are now: inside a hook, at that point of the program.
  [[nodiscard]] const std::vector<std::int64_t>& vars() const { return vars_; }
  // A scalar value or what a cell holds now.
  [[nodiscard]] double scalar(ir::ValueId value) const { return scalars_[value.index]; }
  // What the last run returned; invalid when nothing.
  [[nodiscard]] ir::ValueId returned() const { return returned_; }
  // What the last run printed outside of kernels.
  [[nodiscard]] const std::vector<ir::Printed>& printed() const { return printed_; }

 private:
  Result<void> region(ir::RegionId region);
  Result<void> step(ir::OpId id);
  Result<void> spend(std::uint64_t steps);
  Result<void> run_op(ir::OpId id, const ir::Parallel& op);
  Result<void> run_op(ir::OpId id, const ir::For& op);
  Result<void> run_op(ir::OpId id, const ir::Loop& op);
  Result<void> run_op(ir::OpId id, const ir::Break& op);
  Result<void> run_op(ir::OpId id, const ir::Continue& op);
  Result<void> run_op(ir::OpId id, const ir::If& op);
  Result<void> run_op(ir::OpId id, const ir::Return& op);
  Result<void> run_op(ir::OpId id, const ir::Alloc& op);
  Result<void> run_op(ir::OpId id, const ir::Subview& op);
  Result<void> run_op(ir::OpId id, const ir::Alias& op);
  Result<void> run_op(ir::OpId id, const ir::Const& op);
  Result<void> run_op(ir::OpId id, const ir::Index& op);
  Result<void> run_op(ir::OpId id, const ir::Bind& op);
  Result<void> run_op(ir::OpId id, const ir::Unary& op);
  Result<void> run_op(ir::OpId id, const ir::Binary& op);
  Result<void> run_op(ir::OpId id, const ir::Cast& op);
  Result<void> run_op(ir::OpId id, const ir::Choose& op);
  Result<void> run_op(ir::OpId id, const ir::Fma& op);
  Result<void> run_op(ir::OpId id, const ir::Get& op);
  Result<void> run_op(ir::OpId id, const ir::Set& op);
  Result<void> run_op(ir::OpId id, const ir::Assert& op);
  Result<void> run_op(ir::OpId id, const ir::Print& op);
  Result<void> run_op(ir::OpId id, const ir::Read& op);
  Result<void> run_op(ir::OpId id, const ir::Write& op);
  template <class Data>
  Result<void> run_op(ir::OpId id, const Data& op);
  // One trip of a loop; whether others may follow.
  Result<bool> trip(ir::RegionId body);
  void set(ir::OpId id, double value);

  const ir::Function& function_;
  const ir::Arguments& arguments_;
  const Hooks* hooks_ = nullptr;
  std::vector<std::int64_t> vars_;
  std::vector<double> scalars_;  // by ValueId; integers beyond 2^53 lose their last digits
  ir::ValueId returned_;
  std::vector<ir::Printed> printed_;
  bool stopped_ = false;
  std::uint64_t steps_max_ = 0;
  std::uint64_t steps_ = 0;
  enum class Leaving : std::uint8_t { kNothing, kTrip, kLoop };
  Leaving leaving_ = Leaving::kNothing;  // of the innermost loop
};

}  // namespace kiln::runtime
