// Semantic analysis: syntax tree -> tile IR.
//
// Resolves names, infers the levels of `parallel`, types expressions, proves what can be proved
// about shapes, infers the tiles of accumulators backwards from the `mma` that uses them, and
// refuses what is wrong or has no meaning yet. All independent mistakes of a file are reported in
// one run.
#pragma once

#include "diag/diagnostics.h"
#include "ir/module.h"
#include "syntax/ast.h"
#include "target/arch.h"

namespace kiln::sema {

// The module in Form::kTile, or Reported when there was any error.
[[nodiscard]] Checked<ir::Module> analyse(const ast::Ast& ast, const target::Arch& arch,
                                          const Sources& sources, Diagnostics& diags);

}  // namespace kiln::sema
