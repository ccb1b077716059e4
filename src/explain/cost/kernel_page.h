// The page of `kiln explain --html`: when a block does what, what the kernel costs, and which
// thread holds which element of its matrix instructions. It needs nothing but itself.
#pragma once

#include <string>
#include <vector>

#include "explain/cost/cost.h"
#include "explain/cost/lanes.h"
#include "support/source.h"

namespace kiln::explain {

struct KernelPage {
  const Explanation& explanation;
  const std::vector<BlockView>& blocks;  // of each launch of the explanation, in its order
  const ir::Function& function;
  const Sources& sources;
  std::string change = {};            // that the program does not have: "[[pipeline(4)]] at line 3"
  const KernelPage* after = nullptr;  // the kernel with the change that pays most; drawn below
};

[[nodiscard]] std::string to_html(const KernelPage& page);

// The blocks of the launches that the outcome has traces of; `outcome` is the explanation's.
[[nodiscard]] std::vector<BlockView> view_blocks(const Explanation& explanation,
                                                 const ir::Function& function,
                                                 const sim::Outcome& outcome);

}  // namespace kiln::explain
