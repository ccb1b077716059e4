// The syntax tree as compact S-expressions, for tests and for looking at.
//
//   mma.row.row mc, ma.chunkat(_, k), mb;    (mma row row mc (view ma chunkat(_ k)) mb)
//
// Everything the tree holds is shown except spans, so two texts that print alike mean the same.
#pragma once

#include <string>

#include "syntax/ast.h"

namespace kiln::ast {

[[nodiscard]] std::string print(const Ast& tree, ExprId id);  // "-" for an invalid id
[[nodiscard]] std::string print(const Ast& tree, StmtId id);
[[nodiscard]] std::string print(const Ast& tree, const Region& region);

// One region per line.
[[nodiscard]] std::string print(const Ast& tree);

}  // namespace kiln::ast
