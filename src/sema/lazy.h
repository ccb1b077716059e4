// `&&`, `||` and `?:`, whose operands are not all evaluated: what reads memory or changes a scalar
// stands under an `if`, everything else is computed in any case.
//
//   i < n && x.at(i) > 0   =>   %c = alloc : cell<bool> from i < n
//                               if i < n { %v = read x[i]; set %c, %v > 0 }
//                               get %c
#pragma once

#include "sema/state.h"

namespace kiln::sema {

// `left && right` or `left || right`; the left side has been evaluated.
[[nodiscard]] Operand evaluate_logical(Sema& sema, const ast::BinaryExpr& expr, Operand left,
                                       Span span);
[[nodiscard]] Operand evaluate_conditional(Sema& sema, const ast::ConditionalExpr& expr, Span span);

}  // namespace kiln::sema
