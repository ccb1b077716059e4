// Views whose elements lie as the program says and not as the buffer's shape does: `.span_as`,
// `.sqz` and explicit strides. Each gives the new view, or nullopt after a report.
#pragma once

#include "sema/state.h"

namespace kiln::sema {

// The elements of `base`, which must lie in one piece, in the shape `extents`.
[[nodiscard]] std::optional<ir::ValueId> span_as(Sema& sema, ir::ValueId base,
                                                 const std::vector<ir::Expr>& extents, Span span);

// By dimension: whether its extent is the constant 1.
[[nodiscard]] std::vector<bool> ones_of(const std::vector<ir::Expr>& shape);
// `base` without the dimensions that `dropped` names, all of them of extent 1; of a single element one stays.
[[nodiscard]] std::optional<ir::ValueId> squeeze(Sema& sema, ir::ValueId base,
                                                 const std::vector<bool>& dropped, Span span);

// `shape` elements, `strides` apart, from element `origin` of `base` on.
struct StridedWindow {
  std::vector<ir::Expr> origin;
  std::vector<ir::Expr> shape;
  std::vector<ir::Expr> strides;
};
[[nodiscard]] std::optional<ir::ValueId> restride(Sema& sema, ir::ValueId base,
                                                  const StridedWindow& window, Span span);

}  // namespace kiln::sema
