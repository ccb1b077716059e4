// A shape or a tuple made of another one's elements.
//
//   s : [4, 8, 16];    u : s[(0) * (1), 2];       [32, 2]
//   t = {7, 9};        v = t{(1), (0)};           {9, 7}
//   x of f32 [M, N]    w : x[(1), (0)];           [N, M]
#pragma once

#include "sema/state.h"

namespace kiln::sema {

// Whether the brackets behind it derive, and do not subscript an array.
[[nodiscard]] bool derives(const Sema& sema, const Operand& base,
                           const ast::SubscriptExpr& subscript);
[[nodiscard]] Operand derive(Sema& sema, Operand base, const ast::SubscriptExpr& subscript,
                             Span span);
// `(i)`: that element of what is derived from; elsewhere the number i.
[[nodiscard]] Operand derived_index(Sema& sema, const ast::DerivedIndexExpr& index, Span span);

struct PositionSpans {
  Span position;
  Span whole;
};
// One integer of a shape or tuple; reports a position that it lacks.
[[nodiscard]] Operand element_of(Sema& sema, const Operand& list, std::int64_t position,
                                 const PositionSpans& at);

}  // namespace kiln::sema
