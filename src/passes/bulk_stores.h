// Tiles that a kernel with a producer copies out of shared memory: the hardware can, while the consumers go on.
// Part of specialise.
//
//   store sum => o_s; copy o_s => o       =>       store sum => o_s; copy bulk o_s => o; bulk_wait
#pragma once

#include <vector>

#include "ir/module.h"
#include "passes/bulk_instead.h"

namespace kiln::passes {

struct BulkStores {
  std::vector<ir::OpId> copies;
  std::vector<RowCondition> conditions;  // which have to hold at launch
};

// Those of the launch that its threads make and the hardware may make: whole buffers, to a tensor that the kernel
// touches nowhere else, in loops to another place each time. `known` holds already.
[[nodiscard]] BulkStores bulk_stores(const ir::Function& function, ir::OpId launch,
                                     const std::vector<RowCondition>& known);

// Gives them to the hardware. Each has a wait behind it, which delay-bulk-waits moves to where it is needed.
void store_in_bulk(ir::Function& function, const std::vector<ir::OpId>& copies);

}  // namespace kiln::passes
