// What the operations of a function touch, and where in the root buffer: input of the checks in
// coverage.h.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "ir/module.h"

namespace kiln::coverage {

// One operation's use of one view.
struct TileAccess {
  ir::OpId op;
  ir::ValueId view;
  ir::ResolvedView at;            // in the root buffer
  std::vector<ir::Expr> extents;  // by root dimension
  bool writes = false;
  bool is_tile = false;      // of a copy, load or store; else a single element
  bool conditional = false;  // under an `if`
  ir::OpId inthreads = {};   // the region whose threads do it, if one
  // Through another shape of the buffer: `at` has the dimensions of the buffer itself, and its
  // origin says no more than which variables the place depends on.
  bool reshaped = false;
  bool anywhere = false;  // which elements it is, only the program knows: any of them
};

// All uses in the order of the program; a copy reads, then writes.
[[nodiscard]] std::vector<TileAccess> accesses_of(const ir::Function& function);

// By operation: the For operations around it, outermost first.
[[nodiscard]] std::map<ir::OpId, std::vector<ir::OpId>> loops_around(const ir::Function& function);

// Where a view was written.
[[nodiscard]] Span view_span(const ir::Function& function, const TileAccess& access);

// The buffer's name, for messages.
[[nodiscard]] std::string root_name(const ir::Function& function, ir::ValueId root);

// The largest (or least) value of an expression, in launch-time values. `attained`: some instance
// has exactly that value, when the loops run at all; else it is only a bound.
struct Extreme {
  ir::Expr value;
  bool attained = true;
};

// The values that the variables of a function's loops and parallels take.
class Ranges {
 public:
  explicit Ranges(const ir::Function& function);

  [[nodiscard]] std::optional<Extreme> largest(const ir::Expr& expr) const;
  [[nodiscard]] std::optional<Extreme> least(const ir::Expr& expr) const;

  // The largest value over `var`, every other variable being at its least.
  [[nodiscard]] std::optional<Extreme> largest_along(const ir::Expr& expr, ir::VarId var) const;

  // The loop and parallel variables of an expression.
  [[nodiscard]] std::vector<ir::VarId> stepping(const ir::Expr& expr) const;

  // Those of them that have more than one value. Axes of two `parallel`s inside of a block that
  // number the same threads count as one variable.
  [[nodiscard]] std::vector<ir::VarId> moving(const ir::Expr& expr) const;

  // How many values the variable takes, when they are 0, 1, 2, ...
  [[nodiscard]] std::optional<ir::Expr> count(ir::VarId var) const;

  // Indices have only the values that the threads of the `inthreads` region have.
  [[nodiscard]] Ranges within(ir::OpId inthreads) const;

  // Whether the variable is an axis of a `parallel` inside of a block.
  [[nodiscard]] bool is_unit(ir::VarId var) const { return units_.contains(var); }

 private:
  struct Range {
    ir::Expr first;
    ir::Expr last;
    bool dense = true;  // takes `last` as well
  };
  [[nodiscard]] std::optional<Extreme> extreme(ir::Expr expr, bool upper) const;

  const ir::Function* function_;
  std::map<ir::VarId, Range> ranges_;
  std::set<ir::VarId> units_;
  std::map<ir::VarId, ir::VarId> same_;  // the first axis that numbers the same threads
};

// The number that multiplies `var` alone in a sum; 0 when there is none.
[[nodiscard]] std::int64_t coefficient_of(const ir::Expr& expr, ir::VarId var);

}  // namespace kiln::coverage
