// Lets as many blocks as run at once go through all tiles of a kernel marked `[[persistent]]`, and takes tiles in the
// order that `[[order(columns, 8)]]` says.
//
//   parallel block i < a, j < b persistent      =>   parallel block block < 132
//     work(i, j)                                       for round in [cdiv(a * b, 132)]
//                                                        tile = 132 * round + block
//                                                        if (tile < a * b)
//                                                          i = mod(tile, a); j = tile / a
//                                                          work(i, j)
//
// Without an order tiles come as blocks of a grid do, the first variable fastest. With `columns, 8` the second
// variable goes through 8 columns of tiles, row by row, then through the next 8: tiles that run at once then share
// more of what they read, and find it in the second-level cache. `rows, 8` is the same of rows, `hilbert` goes along a
// Hilbert curve (tile_order.h). An order without `[[persistent]]` gives each tile a block of its own, by its number.
//
// How many blocks run at once follows from the architecture's part (`Arch::sms`), from threads and shared memory, and
// from an estimate of registers; `[[launch_bounds(_, n)]]` says it instead. The program is right with any number.
//
// Runs first: loops of a pipeline inside then are loops in a loop over tiles, and their loads go on from one tile to
// the next. Shared buffers and events are there once, in front of the loop.
//
// Errors: persistent-kernel, for what belongs to a block that works on one tile.
#pragma once

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::passes {

Checked<bool> persist(ir::Module& module, Diagnostics& diags);

}  // namespace kiln::passes
