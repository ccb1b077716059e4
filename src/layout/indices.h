// All indices of a layout at once: what layout(0), layout(1), ... give, an addition for each.
//
//   indices_of(parse_layout("(2,3):(3,1)"))     {0, 3, 1, 4, 2, 5}
#pragma once

#include <vector>

#include "kiln/layout.h"

namespace kiln {

// size(layout) of them; none of a layout that is not valid.
[[nodiscard]] std::vector<Index> indices_of(const Layout& layout);

}  // namespace kiln
