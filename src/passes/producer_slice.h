// What threads that only start a loop's copies have to run of a kernel: the loops and conditions around the loop, and
// what says how often they run. Part of specialise.
//
//   int steps = cdiv(K, 64);              needed: a bound is made of it
//   sum = mma.fill.f32 0;                 not needed
//   foreach round in [rounds]             needed: it is around the loop
//     if (round * 132 + b < tiles)        needed
//       foreach k in [steps] { ... }      the loop
#pragma once

#include <optional>
#include <set>

#include "ir/module.h"
#include "passes/copies_ahead.h"

namespace kiln::passes {

// Adds the operations of the kernel that the loop's place and its copies need. `launch`'s body is that of the kernel with
// the `parallel`s inside of it taken away. An obstacle where the kernel computes one of them in a way that only its own
// threads can follow.
[[nodiscard]] std::optional<Obstacle> producer_slice(const ir::Function& function, ir::OpId launch,
                                                     ir::OpId loop, const LoopCopies& found,
                                                     std::set<ir::OpId>& out);

// The loops and conditions around an operation of the launch, outermost first.
[[nodiscard]] std::vector<ir::OpId> ancestors_of(const ir::Function& function, ir::OpId launch,
                                                 ir::OpId wanted);

}  // namespace kiln::passes
