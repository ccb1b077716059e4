// Partial sums that begin with a product: where a tile that is scaled into another is filled with 0, and a
// product follows in any case, that one need not add to it.
//
//   fill frag=%part value=0                        left out
//   for s in [4] { mma c=%part }                   mma(part, a, b, s > 0)
//   scale c=%c partial=%part
//
// Where a sum is filled once, ptxas sees by itself that its registers are 0. But of partial sums that follow
// each other it makes the next one's zeros while the last one's products are on their way, in registers of
// their own: then there are too few.
#pragma once

#include <map>
#include <set>

#include "ir/module.h"

namespace kiln::emit {

struct FirstProducts {
  // A product is the first one of its sum in the first trip of the loop with this variable; always, if
  // that is not valid.
  struct First {
    ir::VarId var;
    std::int64_t lower = 0;
  };
  std::set<const ir::Op*> fills;  // that are left out
  std::map<const ir::Op*, First> products;
};
[[nodiscard]] FirstProducts first_products(const ir::Function& function, ir::OpId launch);

}  // namespace kiln::emit
