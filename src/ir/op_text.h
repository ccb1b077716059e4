// One operation on one line, as print() writes it but without its regions: what mistakes quote.
//
//   op_text(function, id) == "%ma = alloc name=\"ma\" : frag<A, f16, 16x16>"
#pragma once

#include <string>

#include "ir/module.h"

namespace kiln::ir {

[[nodiscard]] std::string op_text(const Function& function, OpId op);

}  // namespace kiln::ir
