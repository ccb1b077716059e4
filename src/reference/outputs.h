// What a function gives back to its caller.
//
//   __co__ auto f(f32 [N] x, f32 [N]& y, global f32 [N] z) { f32 [N] w; ...; return w; }
//   writing x, y and z gives back y, z and w; x is a copy of the caller's, which nobody sees again
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/module.h"

namespace kiln::reference {

struct OutputSlot {
  std::string name;  // the user's, where there is one
  ir::ValueId value;
  std::optional<std::size_t> param;  // none: what the function returns
};

// Written parameters that are `global` or have `&`, in order, then the returned value, unless it is
// one of those parameters.
[[nodiscard]] std::vector<OutputSlot> output_slots(const ir::Function& function);

}  // namespace kiln::reference
