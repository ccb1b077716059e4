// Tiles that miss a part of a buffer, or lie past its end, and products of what does not belong
// together: mistakes in loop bounds, grids and indices that give legal programs with wrong results.
//
//   foreach k in [cdiv(K, 16) - 1]        every tile of `lhs` along K but the last one is read
//     ... lhs.subspan(16, 16).at(i, k)    -> loop-short
//   parallel i by cdiv(M, 16) + 1         the last block's tile starts after the last row
//     ... c.subspan(16, 16).at(i, j)      -> tile-past-end
//   mma.row.col acc, x, y                 with `b` [N, K]: x moves along K, y along N
//                                         -> contraction-mismatch
//
// All is proved from the index expressions of a function without errors, over the ranges of their
// variables. Element access counts as reaching its elements, and is never blamed itself: that
// stencils leave a border out is usual.
#pragma once

#include <vector>

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::coverage {

// Reports what holds for every launch.
void check_coverage(const ir::Function& function, Diagnostics& diags);

// Reports loops and grids that are too short for this launch: `vars` are the values of dimensions
// and integer parameters by VarId.
void check_coverage(const ir::Function& function, const std::vector<std::int64_t>& vars,
                    Diagnostics& diags);

// Reports what threads of a unit do together, at places that differ between them.
void check_unit_places(const ir::Function& function, Diagnostics& diags);

// Reports multicasts of which the blocks of a cluster ask different tiles.
void check_multicasts(const ir::Function& function, Diagnostics& diags);

// Reports products of what does not belong together, or whose place or accumulator is wrong.
void check_products(const ir::Function& function, Diagnostics& diags);

}  // namespace kiln::coverage
