// The IR's rules: one list, checked after every pass.
#pragma once

#include <string>
#include <vector>

#include "ir/module.h"

namespace kiln::ir {

struct Rule {
  std::string_view name;  // "copy-ranks-agree"
  Form from;              // holds from this form on
  // The mistakes found in one function, as sentences naming the operation.
  void (*check)(const Module&, const Function&, std::vector<std::string>& mistakes);
};
[[nodiscard]] const std::vector<Rule>& rules();

// The operations that read shared memory which threads wrote together, with no barrier since. In a
// finished function there are none.
[[nodiscard]] std::vector<OpId> reads_without_barrier(const Function& function);

// Every broken rule of the module's form and below: "copy-ranks-agree: copy %3 ... ".
[[nodiscard]] std::vector<std::string> verify(const Module& module);

}  // namespace kiln::ir
