// A map of the target table as arithmetic on the lane's number.
//
//   lanes of C of m16n8k16: (4,8):(32,1) on 16 rows   =>   row = lane / 4,  col = 2 * (lane % 4)
//
// The part of a place that depends on the lane and the part that depends on the register are
// separate sums, so that the first is computed once and the second is a constant after unrolling.
#pragma once

#include <span>

#include "ir/expr.h"
#include "kiln/layout.h"

namespace kiln::emit {

struct PlaceExpr {
  ir::Expr row = 0;
  ir::Expr col = 0;
};

// The element of a column-major `rows`-row tile that `layout` sends `coordinate` to.
[[nodiscard]] PlaceExpr place_of(const Layout& layout, int rows, const ir::Expr& coordinate);

// The (row, column) of matrix number `which`, from a list of such pairs whose length is a power of
// two. Each bit of the number must move the matrix by the same distance wherever it is set.
[[nodiscard]] PlaceExpr matrix_place(std::span<const std::int64_t> pairs, const ir::Expr& which);

}  // namespace kiln::emit
