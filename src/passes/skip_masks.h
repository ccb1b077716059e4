// Leaves out masks on tiles that they do not change.
//
//   apply s: s = 64 * n + col < T ? s : -inf     =>     if (64 * n + 63 >= T) apply s: ...
//
// Attention asks of each score whether its key exists, or may be seen, and that matters on the last tile of a row alone.
// A mask is an `apply` that writes an element where it was, or another value, by comparisons of numbers that rise or fall
// evenly with the element's row and column, joined by `&&`, `||` and `!`. So one question for the tile, asked of its
// corners, says that none of its elements can change. Where a number may pass the end of 32 bits, which it does by beginning
// again at the other end, the question is asked in 64 bits, and such a tile is one that can change.
//
// Runs behind group-products: waits for the tile then stand in front of the question.
#pragma once

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::passes {

Checked<bool> skip_masks(ir::Module& module, Diagnostics& diags);

}  // namespace kiln::passes
