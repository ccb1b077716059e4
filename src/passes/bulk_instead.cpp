#include "passes/bulk_instead.h"

#include <algorithm>

#include "ir/prove.h"
#include "ir/tensor_map.h"
#include "passes/bulk_box.h"
#include "target/bulk.h"

namespace kiln::passes {

namespace {

using target::kBulkBytes;
constexpr std::int64_t kByteBits = 8;

// How many elements 16 bytes are, at least one.
std::int64_t elements_of(DType dtype) {
  return kBulkBytes / std::min<std::int64_t>(size_bytes(dtype), kBulkBytes);
}

std::optional<std::string> cannot(const ir::Function& function, const ir::Copy& copy) {
  const ir::ValueId far = global_side(function, copy);
  const ir::ViewType& tile = function.view_type(shared_side(function, copy));
  if (copy.unit != 0) return "each warp makes one of its own";
  if (!copy.permutation.empty()) return "it changes the order of dimensions";
  if (info(tile.dtype).bits < kByteBits)
    return format("elements of {} are less than a byte", name(tile.dtype));
  const std::size_t rank = function.view_type(far).shape.size();
  if (tile.shape.empty() || rank != tile.shape.size() || rank > target::kBulkRankMax) {
    return format("a tile of rank {} is none of 1 to {}", rank, target::kBulkRankMax);
  }
  std::int64_t bytes = size_bytes(tile.dtype);
  const std::int64_t row = tile.shape.back().constant().value_or(0) * bytes;
  if (row % kBulkBytes != 0)
    return format("rows of {} bytes are no multiple of {}", row, kBulkBytes);
  for (const ir::Expr& extent : tile.shape) bytes *= extent.constant().value_or(0);
  if (bytes == 0) return "the tile's extents are only known at launch";
  if (bytes % target::kBulkAlignment != 0)
    return format("a stage of {} bytes is no multiple of {}", bytes, target::kBulkAlignment);
  const ir::ResolvedView global = ir::resolve_view(function, far);
  const auto& shape = function.view_type(global.root).shape;
  const bool is_known = std::ranges::all_of(
      shape, [&](const auto& extent) { return ir::known_at_launch(function, extent); });
  if (!is_known || !ir::is_mappable(function, global.root)) {
    return format("`{}` has another shape here than where it was declared",
                  function.values[global.root].name);
  }
  for (std::size_t d = 0; d < tile.shape.size(); ++d) {
    const std::size_t at = global.dropped + d;
    for (const ir::Expr& limit : global.limits[at]) {
      const bool fits = ir::known_at_launch(function, limit) ||
                        ir::always_less_equal(function, global.origin[at] + tile.shape[d], limit);
      if (!fits) return "the kernel computes where the tile ends";
    }
  }
  if (!ir::always_divisible(global.origin.back(), elements_of(tile.dtype))) {
    return format("nothing says that its rows begin at multiples of {} bytes", kBulkBytes);
  }
  if (far == copy.src) return std::nullopt;
  const bool begins_inside = std::ranges::all_of(global.origin, [&](const ir::Expr& start) {
    return ir::always_less_equal(function, 0, start);
  });
  if (!begins_inside) return "it may begin in front of the tensor";
  return std::nullopt;
}

// Where rows have to end at multiples of 16 bytes: those of the tensor, which the next ones begin behind, and of a copy
// to it wherever its own end, for the hardware writes no less at once.
std::vector<ir::Expr> row_ends(const ir::Function& function, const ir::Copy& copy) {
  const ir::ResolvedView global = ir::resolve_view(function, global_side(function, copy));
  const std::vector<ir::Expr>& shape = function.view_type(global.root).shape;
  const bool stores = global_side(function, copy) == copy.dst;
  std::vector<ir::Expr> out;
  if (stores || shape.size() > 1) out.push_back(shape.back());
  if (!stores) return out;
  for (const ir::Expr& limit : global.limits.back()) {
    if (std::ranges::find(out, limit) == out.end()) out.push_back(limit);
  }
  return out;
}

}  // namespace

std::optional<Obstacle> bulk_instead(const ir::Function& function, ir::OpId id,
                                     std::vector<RowCondition>& conditions) {
  const auto& copy = std::get<ir::Copy>(function.ops[id].data);
  if (auto why = cannot(function, copy)) {
    return Obstacle{format("the hardware cannot make this copy by itself, as {}", *why),
                    function.ops[id].span};
  }
  const DType dtype = function.view_type(copy.src).dtype;
  const std::int64_t elements = elements_of(dtype);
  for (const ir::Expr& row : row_ends(function, copy)) {
    if (ir::always_divisible(row, elements)) continue;
    if (const auto length = row.constant()) {
      return Obstacle{format("the hardware cannot make this copy by itself, as rows of {} elements "
                             "of {} are no multiple of {} bytes",
                             *length, name(dtype), kBulkBytes),
                      function.ops[id].span};
    }
    const bool is_there = std::ranges::any_of(conditions, [&](const RowCondition& other) {
      return other.elements == elements && other.row == row;
    });
    if (!is_there) conditions.push_back({elements, row});
  }
  return std::nullopt;
}

}  // namespace kiln::passes
