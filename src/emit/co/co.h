// The tile IR as text of the language: a program that `kiln check` accepts and that is the same program.
//
//   copy src=%6 dst=%lhs_s          =>   dma.copy lhs.subspan(16, 32).at(block_m, k) => lhs_s;
//   mma c=%mc a=%ma b=%mb ...       =>   mma.row.row mc, ma, mb;
//
// Values have the program's names; where two things of one function have the same one, the later is
// `name_1`. What was a template, a macro, a function or a condition on constants is gone: this is what
// became of it. The text decides nothing, so it is of modules of Form::kTile alone.
#pragma once

#include <string>

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::emit_co {

// Reports each operation that the language has no words for (co-unsayable).
[[nodiscard]] Checked<std::string> co_text(const ir::Module& module, Diagnostics& diags);

}  // namespace kiln::emit_co
