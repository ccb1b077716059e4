#include "passes/pair_elements.h"

#include "ir/registers.h"
#include "passes/for_each_launch.h"

namespace kiln::passes {

Checked<bool> pair_elements(ir::Module& module, Diagnostics&) {
  for_each_launch(module, [](ir::Function& function, ir::OpId launch) {
    ir::walk(function, body_of(function, launch), [&](ir::OpId id) {
      auto* apply = std::get_if<ir::Apply>(&function.ops[id].data);
      if (apply != nullptr) apply->pairs = ir::goes_in_pairs(function, *apply);
    });
  });
  return true;
}

}  // namespace kiln::passes
