// The kernels of a module, one after the other: what most passes go through.
#pragma once

#include "ir/module.h"

namespace kiln::passes {

// Calls `step(function, launch)` for each kernel launch of the module, in order. `launch` is an
// operation of kind Parallel; the step may add operations.
template <class Step>
void for_each_launch(ir::Module& module, Step&& step) {
  for (ir::Function& function : module.functions) {
    for (const ir::OpId launch : ir::launches(function)) step(function, launch);
  }
}

// The region that the launch's threads run.
[[nodiscard]] inline ir::RegionId body_of(const ir::Function& function, ir::OpId launch) {
  return std::get<ir::Parallel>(function.ops[launch].data).body;
}

}  // namespace kiln::passes
