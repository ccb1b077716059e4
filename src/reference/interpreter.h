// The reference interpreter: runs the undecided tile IR in fp64 and says, for every element of
// every output, what it should be and how far a correct machine may be from it.
//
//   Outcome outcome = interpret(function, arguments, numerics);
//   outcome.outputs[0].expected[i], outcome.outputs[0].bound[i]
//
// It knows no hardware: a fragment is a matrix, a barrier is nothing, a copy moves elements. All
// instances of a parallel level advance together, one operation at a time; blocks run one after
// another. Decided attributes are never read.
//
// The bound is the program's own (running error analysis). A contraction gives
//   (K/k + 2) * u * sum |a||b| + the error of the operands
// with u the roundoff and k the depth of the instruction that will do it, which is all that the
// caller must supply (Numerics). Sums of integers that the accumulator holds exactly have error 0,
// so a lost tile of integers cannot hide.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "ir/arguments.h"
#include "ir/module.h"
#include "support/memory_budget.h"
#include "support/steps.h"

namespace kiln::reference {

// How a matrix instruction adds: `roundoff` is the largest relative error of one accumulation,
// `depth` how many products it adds at once (the k of its shape).
struct Accumulation {
  double roundoff = 0;
  std::int64_t depth = 1;
  // Sums of integers are exact while their magnitudes add up to no more than this, and to no more
  // than the accumulator's type holds.
  double exact_integers = std::numeric_limits<double>::infinity();
};

// Asked once for each Mma operation of the function.
using Numerics = std::function<Accumulation(ir::OpId)>;

// One f32 rounding for each product: right, and loose, when nothing is known of the hardware.
[[nodiscard]] Numerics f32_numerics();

struct Output {
  std::string name;
  std::optional<std::size_t> param;  // none: the function's returned value
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  // By element, row-major. An infinite bound: nothing can be expected there (see Number).
  std::vector<double> expected;
  std::vector<double> bound;
  std::vector<double> rest = {};  // of 64-bit integers (see Number); empty: all 0
  // How far another evaluation of the same output in fp64 may be from `expected`: no machine's
  // error. Empty: not known.
  std::vector<double> slack = {};
  // The elements that something is known of, where a sample was computed; empty: all.
  std::vector<bool> known = {};
  // What the program rounds does not widen the bound: a tolerance that the user asked for, or the
  // program's roundings are the mistake.
  bool is_final = false;

  // Whether nothing is known of any of its elements.
  [[nodiscard]] bool is_unknown() const {
    return !known.empty() && std::find(known.begin(), known.end(), true) == known.end();
  }
};

// Elements of an output, row-major.
struct ElementRun {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

struct FailedAssert {
  ir::OpId op;
  std::string message;
};

// Why a run ended before the program did.
struct GaveUp {
  ir::OpId op;           // the loop
  bool endless = false;  // it cannot end; else the limit on steps is reached
  std::string message;
};

struct Outcome {
  std::vector<Output> outputs;  // in the order of output_slots (outputs.h)
  std::optional<FailedAssert> failed_assert;
  // Not empty: everybody waited for events here and nobody could go on, so the run ended early and
  // says nothing about the outputs.
  std::vector<ir::OpId> stuck_at;
  // In both cases the outputs say nothing.
  std::optional<GaveUp> gave_up;
  std::optional<Error> out_of_memory;
  // The part of a typical sum of products that one instruction's products are, at the least of all
  // accumulators: 0.01 of the sum of many. Infinite without products.
  double step_share = std::numeric_limits<double>::infinity();
  // Whether some sum of products has more bits than a bf16: else rounding it to one changes
  // nothing.
  bool long_sums = false;
  std::size_t open_branches = 0;     // conditions that rounding could turn either way
  std::size_t undecided = 0;         // branches and places of which nothing is known
  std::size_t outside_accesses = 0;  // element accesses outside their buffer
  std::int64_t blocks = 0;           // of all launches
  std::int64_t blocks_run = 0;       // fewer, of a sample
  std::uint64_t work = 0;            // about as many as nanoseconds
};

// How far a run is.
struct Progress {
  std::uint64_t steps = 0;
  std::int64_t blocks_run = 0;
  std::int64_t blocks = 0;
};

// What a run may take. A step is one operation of up to 32 instances.
struct Limits {
  std::uint64_t steps_max = kStepsMax;
  MemoryBudget* memory = nullptr;  // beside the parameters' values; null: no limit
  std::function<void(const Progress&)> progress = {};  // called now and then
  // The blocks to run, in order: a sample of those of the only launch (see why_not_sampled). Then
  // outputs have `known`. Empty: all of them.
  std::vector<std::int64_t> blocks = {};
};

// Why a sample of blocks says nothing of the outputs: each must write what it writes without what
// others write. Empty: it does.
[[nodiscard]] std::string why_not_sampled(const ir::Function& function);

// Runs the whole function. The arguments are only read; tensors must have the shapes that the
// parameters' types have under `arguments.vars` (KILN_CHECK). Costs about 1 ns a multiply-add.
[[nodiscard]] Outcome interpret(const ir::Function& function, const ir::Arguments& arguments,
                                const Numerics& numerics, const Limits& limits = {});

}  // namespace kiln::reference
