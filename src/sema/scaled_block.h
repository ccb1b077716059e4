// The sums that `mma.scale` scales. Products go to their accumulator, until a `mma.scale` in the same
// block of statements turns those in front of it to a sum of their own. Internal to this folder.
//
//   foreach k in [2] {                     for var=k upper=2 body={
//     mma.row.row c, a, b;           =>      %c_part = alloc ...    fill frag=%c_part value=0
//     mma.scale c, s.at(k), 2.0f;            mma c=%c_part ...
//   }                                        scale c=%c partial=%c_part ...
//                                          }
#pragma once

#include <optional>

#include "sema/state.h"

namespace kiln::sema {

// The statements from here on are those of a block. It ends with `leave_block`, in the same region.
void enter_block(Sema& sema);
void leave_block(Sema& sema);

// The operation, of the innermost region, is a product on the accumulator, or fills it.
void note_product(Sema& sema, ir::ValueId acc, ir::OpId op);

// The sum of the products on the accumulator in the block since its last `mma.scale` or fill.
// Nothing where there are none.
[[nodiscard]] std::optional<ir::ValueId> take_products(Sema& sema, ir::ValueId acc, Span span);

// A sum, zeroed here, for products on the accumulator, whose shape is known.
[[nodiscard]] ir::ValueId open_partial(Sema& sema, ir::ValueId acc, Span span);

}  // namespace kiln::sema
