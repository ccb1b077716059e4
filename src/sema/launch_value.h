// Integers that are computed of what the call knows, as formulas of that.
//
//   int rows = BYTES / WIDTH;  parallel r by rows : block    // floordiv(BYTES, WIDTH) blocks
//
// C divides towards zero and a formula rounds down: the same where neither side is negative, which the
// call checks.
#pragma once

#include "sema/state.h"

namespace kiln::sema {

// `expr` of what is known at the launch; nothing where it depends on data or on an index.
[[nodiscard]] std::optional<ir::Expr> launch_value(Sema& sema, const ir::Expr& expr, Span span);

}  // namespace kiln::sema
