// Which operations steer: decide which others run, in which threads, how often, and where they reach.
//
//   %n = read view=%counts index=[b]       steers, and so does what writes `counts`
//   bind var=n value=%n
//   for k < n {
//     %x = read view=%lhs index=[k]        does not: its value goes to memory that nobody looks at
//     write view=%out index=[k] value=%x   nor does this
//   }
//
// What the others compute may be left out where only their number matters.
#pragma once

#include <vector>

#include "ir/module.h"

namespace kiln::ir {

// By OpId. Structure, jumps, whatever orders others and whatever changes what is known always steer;
// so does what they depend on, through registers, cells and memory, wherever in it.
[[nodiscard]] std::vector<bool> steering(const Function& function);

}  // namespace kiln::ir
