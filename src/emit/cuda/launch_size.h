// Sizes as the launcher computes them on the host: grid, threads, shapes of tensor maps. Parameters
// are ints; where their sums and products might leave an int, the text is in 64 bits.
//
//   text(cdiv(M, 16))               "kiln::cdiv(M, 16)"           never more than M
//   text(M * N)                     "kiln::wide_product(M, N)"    saturated at 2^60
//   limited(M * N, 65535)           "kiln::launchable(kiln::wide_product(M, N), 65535)"    else 0,
//                                   with which CUDA refuses to launch
#pragma once

#include <string>
#include <vector>

#include "emit/cuda/launch_plan.h"
#include "emit/cuda/spell.h"

namespace kiln::emit {

class LaunchSizes {
 public:
  // Variables by the names of these parameters, which outlive it.
  explicit LaunchSizes(const std::vector<ParamSlot>& slots);
  LaunchSizes(const LaunchSizes&) = delete;
  LaunchSizes& operator=(const LaunchSizes&) = delete;

  // Whether all of its variables are parameters.
  [[nodiscard]] bool knows(const ir::Expr& expr) const;
  [[nodiscard]] std::string text(const ir::Expr& expr) const;
  [[nodiscard]] std::string list(const std::vector<ir::Expr>& exprs) const;
  // A number of blocks or threads; 0 in place of one that is not from 1 to `most`, where a
  // conversion to 32 bits could hide that.
  [[nodiscard]] std::string limited(const ir::Expr& expr, std::int64_t most) const;

 private:
  [[nodiscard]] const ParamSlot& slot(ir::VarId var) const;
  // Whether the value and all that its text computes on the way are ints, for any ints.
  [[nodiscard]] bool is_int(const ir::Expr& expr) const;
  [[nodiscard]] bool is_int(const ir::Atom& atom) const;
  [[nodiscard]] std::string wide_text(const ir::Term& term) const;
  [[nodiscard]] std::string wide_text(const ir::Atom& atom) const;

  const std::vector<ParamSlot>& slots_;
  VarFacts facts_;
};

}  // namespace kiln::emit
