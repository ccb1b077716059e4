// What a read of a formula, `k[j, h / 2, d]`, finds on a box of its indices. Internal to this folder.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/formula_block.h"

namespace kiln::reference {

// One subscript of a read on a box: where it points, in the dimension of what is read.
struct Subscript {
  Space space;                    // the axes that it depends on, in the box's order
  std::vector<double> positions;  // whole numbers, one for each place of them
  std::int64_t begin = 0;         // the part of the dimension that the source has
  std::int64_t count = 0;
};

// At every place of `space` the element of `source`, a row-major block of the subscripts' counts; 0 without error where
// a subscript points outside of it.
[[nodiscard]] Values elements_at(const Values& source, const std::vector<Subscript>& subscripts,
                                 const Space& space);

}  // namespace kiln::reference
