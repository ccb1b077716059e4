// One random problem on the GPU: computed on normal values and on small integers, by way of plans,
// and checked.
//
//   RandomRun run(device);
//   auto faults = run.check({.problem = problem, .plan = plan, .numerics = weakest(function)});
//   faults->empty()    every element within its bound, nothing else written, the same bits twice
#pragma once

#include <string>
#include <vector>

#include "gemm/plan.h"
#include "measure/random_device.h"
#include "measure/random_problem.h"

namespace kiln::measure {

// A problem and what computes it.
struct RandomCase {
  const RandomProblem& problem;
  const gemm::Plan& plan;
  const gemm::Plan* first = nullptr;  // of its first rows alone; none: they are not compared
  reference::EinsumNumerics numerics = {};
};

class RandomRun {
 public:
  // `device` must outlive it.
  explicit RandomRun(RandomDevice& device) : device_(device) {}

  // Runs the problem in all ways and checks the results: a line for each thing that is wrong. Waits
  // once. Errors: what the driver says.
  [[nodiscard]] Result<std::vector<std::string>> check(const RandomCase& one);

 private:
  // What a call reads and writes, kept from problem to problem.
  struct Slots {
    Operand a;
    Operand b;
    Operand c;
    Operand again;  // C of a second start, or of the first rows
    Operand before;
    Operand bias;
    Operand residual;
    Operand a_scale;
    Operand b_scale;
    Operand group_of_tile;
    Operand rows_of_group;
    Operand first_scale;  // a_scale of the first rows
    Operand workspace;
  };
  enum class Stage : std::uint8_t { kNormal, kExact };

  Result<void> place(const RandomCase& one);
  Result<void> fill(const RandomCase& one, Stage stage);
  Result<void> fill_c(const RandomCase& one, Stage stage, Operand& c);
  Result<void> start(const gemm::Plan& plan, const RandomCase& one, Stage stage, const Operand& c);
  Result<void> run_twice(const RandomCase& one);
  Result<void> run_first_rows(const RandomCase& one);
  Result<void> run_stage(const RandomCase& one, Stage stage);
  Result<void> check_zones();
  [[nodiscard]] bench::Problem to_check(const RandomCase& one, Stage stage) const;
  [[nodiscard]] gemm::Operands operands(const RandomCase& one, Stage stage, const Operand& c) const;

  RandomDevice& device_;
  Slots slots_ = {};
};

// How far sums may be from their value: the formula of docs/numbers.md, and a rounding to f32 for
// each thing that the kernel does with sums on their way.
[[nodiscard]] bench::Bound random_bound(const gemm::Problem& problem, const gemm::Choice& choice,
                                        const reference::EinsumNumerics& numerics);

// A power of two of the same sign that is near, so that products with it are exact.
[[nodiscard]] double exact_factor(double factor);

}  // namespace kiln::measure
