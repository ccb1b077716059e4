// Decides which sums stay in parts while a loop adds to them: each lane keeps its own, and they meet
// where the sum is read.
//
//   for { reduce frag=%l_sum source=%s kind=sum;  apply frag=%l { l = l + l_sum } }
//   read %l
//   =>
//   fill frag=%l_apart value=0                     a column for each lane that has a part of a row
//   for { reduce frag=%l_sum source=%s kind=sum parts=4;  apply frag=%l_apart { l_apart += l_sum } }
//   reduce frag=%l_met source=%l_apart kind=sum;  apply frag=%l { l = l + l_met };  fill frag=%l_apart
//   read %l
//
// Where a vote asks sums that are made for such a sum (`l += fresh; if (__any(fresh > 5)) ..`), and the program lets it, lanes
// vote about their parts.
//
// What scales the sum scales the parts as well, and what sets it anew sets them to zero. Of a scale that is infinite an
// empty part makes a NaN, as of a sum that is zero.
//
// Runs after assign-registers, which says which lanes have parts.
#pragma once

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::passes {

Checked<bool> keep_parts(ir::Module& module, Diagnostics& diags);

}  // namespace kiln::passes
