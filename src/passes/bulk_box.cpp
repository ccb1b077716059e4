#include "passes/bulk_box.h"

#include <algorithm>
#include <numeric>

#include "ir/prove.h"
#include "ir/shared_layout.h"
#include "target/copy.h"

namespace kiln::passes {

namespace {

// The shared side of a copy, with the buffer's rows counted through.
struct Tile {
  std::vector<std::int64_t> shape;    // of the view
  std::vector<std::int64_t> strides;  // rows of the buffer, by dimension of the view but the last
  ir::SharedShape buffer;
  ir::Expr row;   // where the view begins
  ir::Expr byte;  // in that row
  std::int64_t size = 0;
};

BoxPlan failed(BoxProblem problem, std::int64_t seen, std::int64_t wanted) {
  return {.box = {}, .problem = problem, .seen = seen, .wanted = wanted};
}

std::int64_t extent(const ir::Expr& expr) { return expr.constant().value_or(0); }

Tile tile_of(const ir::Function& function, ir::ValueId view, std::int64_t swizzle) {
  const ir::ResolvedView at = ir::resolve_view(function, view);
  const ir::ViewType& root = function.view_type(at.root);
  Tile tile;
  tile.size = size_bytes(root.dtype);
  for (const ir::Expr& e : function.view_type(view).shape) tile.shape.push_back(extent(e));
  const std::int64_t pitch = extent(root.shape.back()) * tile.size;
  std::vector<std::int64_t> strides(root.shape.size(), 1);
  std::int64_t rows = 1;
  for (std::size_t d = root.shape.size() - 1; d-- > 0;) {
    strides[d] = rows;
    rows *= extent(root.shape[d]);
    tile.row = tile.row + at.origin[d] * strides[d];
  }
  tile.byte = at.origin.back() * tile.size;
  tile.strides.assign(strides.begin() + static_cast<std::ptrdiff_t>(at.dropped), strides.end());
  // An alias begins somewhere in its buffer, whose panels hold all of the buffer's rows.
  const auto* alias = function.def_as<ir::Alias>(at.root);
  if (alias != nullptr) {
    const ir::ViewType& base = function.view_type(alias->base);
    std::int64_t elements = 1;
    for (const ir::Expr& e : base.shape) elements *= extent(e);
    rows = pitch > 0 ? elements * tile.size / pitch : 0;
    tile.byte = tile.byte + alias->offset * tile.size;
  }
  tile.buffer = {.rows = rows, .pitch = pitch, .swizzle = swizzle};
  return tile;
}

// Whether the bytes of the box at `corner` (elements from the view's corner) lie one after another
// but for the pattern: it is enough to look at where the view begins first.
bool is_one_run(const Tile& tile, const std::vector<std::int64_t>& box,
                const std::vector<std::int64_t>& corner, std::int64_t row, std::int64_t byte) {
  const std::int64_t row_bytes = box.back() * tile.size;
  const std::int64_t mask = std::max<std::int64_t>(tile.buffer.swizzle, 16) / 16 - 1;
  std::int64_t box_rows = 1;
  for (std::size_t d = 0; d + 1 < box.size(); ++d) box_rows *= box[d];
  const std::int64_t col = byte + corner.back() * tile.size;
  const auto flat = [&](std::int64_t n) {  // the buffer's row of the box's row n
    std::int64_t at = row;
    for (std::size_t d = box.size() - 1; d-- > 0;) {
      at += (corner[d] + n % box[d]) * tile.strides[d];
      n /= box[d];
    }
    return at;
  };
  // Without the XOR a box's first byte is where its run starts.
  const ir::SharedShape& buffer = tile.buffer;
  const std::int64_t first = ir::shared_offset(buffer, flat(0), col);
  const std::int64_t start = first ^ (((first >> 7) & mask) << 4);
  for (std::int64_t n = 0; n < box_rows; ++n) {
    for (std::int64_t b = 0; b < row_bytes; b += kBoxUnit) {
      const std::int64_t linear = start + n * row_bytes + b;
      const std::int64_t hardware = linear ^ (((linear >> 7) & mask) << 4);
      if (ir::shared_offset(buffer, flat(n), col + b) != hardware) return false;
    }
  }
  return true;
}

// Byte address of the view's first element before the XOR: a panel holds all rows of the buffer.
ir::Expr start_of(const Tile& tile) {
  const std::int64_t swizzle = tile.buffer.swizzle;
  if (swizzle == 0) return tile.row * tile.buffer.pitch + tile.byte;
  return ir::floor_div(tile.byte, swizzle) * (tile.buffer.rows * swizzle) + tile.row * swizzle;
}

// How far behind it the box at `corner` begins.
std::int64_t distance_to(const Tile& tile, const std::vector<std::int64_t>& corner) {
  std::int64_t row = 0;
  for (std::size_t d = 0; d + 1 < corner.size(); ++d) row += corner[d] * tile.strides[d];
  const std::int64_t byte = corner.back() * tile.size;
  const std::int64_t swizzle = tile.buffer.swizzle;
  if (swizzle == 0) return row * tile.buffer.pitch + byte;
  return byte / swizzle * tile.buffer.rows * swizzle + row * swizzle;
}

// Moves `corner` to the next box in row-major order; false behind the last.
bool next_box(const Tile& tile, const std::vector<std::int64_t>& box,
              std::vector<std::int64_t>& corner) {
  for (std::size_t d = box.size(); d-- > 0;) {
    corner[d] += box[d];
    if (corner[d] < tile.shape[d]) return true;
    corner[d] = 0;
  }
  return false;
}

std::int64_t constant_part(const ir::Expr& expr) {
  return expr.substitute([](ir::VarId) { return ir::Expr(0); }).constant().value_or(0);
}

// What keeps `box` from being what the hardware moves, if anything.
BoxPlan try_box(const Tile& tile, const std::vector<std::int64_t>& box) {
  const ir::Expr start = start_of(tile);
  const std::int64_t start_unit = std::gcd(start.known_divisor(), target::kBoxAlignment);
  const std::int64_t row = constant_part(tile.row);
  const std::int64_t byte = constant_part(tile.byte);
  std::vector<std::int64_t> corner(box.size(), 0);
  do {
    const std::int64_t unit = std::gcd(start_unit, distance_to(tile, corner));
    if (start.overflowed() || unit != target::kBoxAlignment) {
      return failed(BoxProblem::kStart, unit, target::kBoxAlignment);
    }
    if (!is_one_run(tile, box, corner, row, byte)) {
      return failed(BoxProblem::kRun, box.back() * tile.size, tile.buffer.pitch);
    }
  } while (next_box(tile, box, corner));
  return {.box = box};
}

// The divisors of `extent` that a box may have, largest first, in steps of `unit`.
std::vector<std::int64_t> box_extents(std::int64_t extent, std::int64_t unit) {
  std::vector<std::int64_t> out;
  for (std::int64_t n = std::min(extent, kBoxExtentMax); n >= unit; --n) {
    if (extent % n == 0 && n % unit == 0) out.push_back(n);
  }
  return out;
}

// The first of the boxes, largest first, that works. A run is whole in all dimensions behind the
// first that is longer than 1.
BoxPlan largest_box(const Tile& tile, std::int64_t row_unit, bool row_is_fixed) {
  const std::size_t rank = tile.shape.size();
  std::vector<std::vector<std::int64_t>> extents;
  for (std::size_t d = 0; d < rank; ++d) {
    extents.push_back(box_extents(tile.shape[d], d + 1 == rank ? row_unit : 1));
  }
  if (row_is_fixed) extents.back() = {row_unit};
  BoxPlan first;
  for (std::size_t d = 0; d < rank; ++d) {
    std::vector<std::int64_t> box(rank, 1);
    for (std::size_t behind = d + 1; behind < rank; ++behind) box[behind] = extents[behind][0];
    for (const std::int64_t n : extents[d]) {
      box[d] = n;
      BoxPlan plan = try_box(tile, box);
      if (plan.problem == BoxProblem::kNone) return plan;
      if (first.problem == BoxProblem::kNone) first = std::move(plan);
    }
  }
  return first;
}

// Smaller boxes, so that `senders` blocks have as many each; the plan itself where none work.
BoxPlan dealt_out(const Tile& tile, BoxPlan plan, std::int64_t senders) {
  if (plan.problem != BoxProblem::kNone) return plan;
  std::int64_t boxes = 1;
  for (std::size_t d = 0; d < plan.box.size(); ++d) boxes *= tile.shape[d] / plan.box[d];
  const std::int64_t parts = senders / std::gcd(senders, boxes);
  if (parts == 1) return plan;
  for (std::size_t d = 0; d + 1 < plan.box.size(); ++d) {
    if (plan.box[d] % parts != 0) continue;
    std::vector<std::int64_t> box = plan.box;
    box[d] /= parts;
    BoxPlan smaller = try_box(tile, box);
    if (smaller.problem == BoxProblem::kNone) return smaller;
  }
  return plan;
}

}  // namespace

ir::ValueId shared_side(const ir::Function& function, const ir::Copy& copy) {
  return function.view_type(copy.dst).space == ir::Space::kGlobal ? copy.src : copy.dst;
}

ir::ValueId global_side(const ir::Function& function, const ir::Copy& copy) {
  return function.view_type(copy.dst).space == ir::Space::kGlobal ? copy.dst : copy.src;
}

BoxPlan plan_box(const ir::Function& function, const ir::Copy& copy, std::int64_t swizzle,
                 std::int64_t senders) {
  const Tile tile = tile_of(function, shared_side(function, copy), swizzle);
  const auto rank = static_cast<std::int64_t>(
      ir::resolve_view(function, global_side(function, copy)).origin.size());
  if (rank > kBoxRankMax) return failed(BoxProblem::kRank, rank, kBoxRankMax);
  const std::int64_t row_bytes = tile.shape.back() * tile.size;
  if (row_bytes % kBoxUnit != 0) return failed(BoxProblem::kInnerBytes, row_bytes, kBoxUnit);
  if (swizzle == 0) {
    return dealt_out(tile, largest_box(tile, kBoxUnit / tile.size, false), senders);
  }
  if (row_bytes % swizzle != 0 || !ir::always_divisible(tile.byte, swizzle)) {
    return failed(BoxProblem::kPanels, row_bytes, swizzle);
  }
  return dealt_out(tile, largest_box(tile, swizzle / tile.size, true), senders);
}

}  // namespace kiln::passes
