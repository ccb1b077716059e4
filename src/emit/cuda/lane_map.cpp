#include "emit/cuda/lane_map.h"

#include <bit>
#include <numeric>

#include "ir/registers.h"
#include "support/check.h"

namespace kiln::emit {

using ir::Expr;

namespace {

// floor(expr / divisor), with (x / a) / b written x / (a * b) and 2x / 2a written x / a.
Expr divided(const Expr& expr, Index divisor) {
  const std::int64_t common = std::gcd(expr.known_divisor(), divisor);
  if (common > 1) return divided(floor_div(expr, Expr(common)), divisor / common);
  if (expr.terms().size() == 1 && expr.terms()[0].coefficient == 1 &&
      expr.terms()[0].atoms.size() == 1) {
    const ir::Atom& atom = expr.terms()[0].atoms[0];
    if (atom.kind == ir::AtomKind::kFloorDiv && atom.right->constant()) {
      return floor_div(*atom.left, Expr(*atom.right->constant() * divisor));
    }
  }
  return floor_div(expr, Expr(divisor));
}

void add(PlaceExpr& place, int rows, const Expr& digit, Index stride) {
  if (stride % rows == 0) {
    place.col = place.col + digit * Expr(stride / rows);
  } else {
    place.row = place.row + digit * Expr(stride);
  }
}

}  // namespace

PlaceExpr place_of(const Layout& layout, int rows, const Expr& coordinate) {
  PlaceExpr place;
  Index before = 1;  // product of the extents already used
  for (int leaf = 0; leaf < layout.leaves; ++leaf) {
    const Index extent = layout.extents[leaf];
    const Index stride = layout.strides[leaf];
    const bool last = leaf == layout.leaves - 1;
    const Expr rest = divided(coordinate, before);
    const Expr digit = last ? rest : mod(rest, Expr(extent));
    before *= extent;
    if (extent == 1) continue;
    if (stride >= rows || stride * extent <= rows) {
      add(place, rows, digit, stride);
      continue;
    }
    // The leaf runs down a column and on into the next ones.
    KILN_CHECK(rows % stride == 0, "a stride of {} in a tile of {} rows", stride, rows);
    const Index down = rows / stride;
    add(place, rows, mod(digit, Expr(down)), stride);
    add(place, rows, divided(digit, down), rows);
  }
  return place;
}

PlaceExpr matrix_place(std::span<const std::int64_t> pairs, const Expr& which) {
  const std::size_t count = pairs.size() / 2;
  KILN_CHECK(ir::lie_by_bits(pairs), "{} matrices are not where their numbers' bits put them",
             count);
  PlaceExpr place{Expr(pairs[0]), Expr(pairs[1])};
  for (std::size_t bit = 1; bit < count; bit *= 2) {
    const std::int64_t down = pairs[2 * bit] - pairs[0];
    const std::int64_t right = pairs[2 * bit + 1] - pairs[1];
    const Expr rest = divided(which, static_cast<Index>(bit));
    const Expr digit = 2 * bit == count ? rest : mod(rest, Expr(2));
    place.row = place.row + digit * Expr(down);
    place.col = place.col + digit * Expr(right);
  }
  return place;
}

}  // namespace kiln::emit
