#include "ir/tensor_map.h"

#include <algorithm>
#include <optional>

#include "ir/prove.h"
#include "ir/strides.h"

namespace kiln::ir {

namespace {

// Panels of 16 bytes are stored one after another as they are.
constexpr std::int64_t kLeastSwizzle = 32;

// Which dimension of the alias each dimension of its buffer is; none when it is another shape.
std::optional<std::vector<std::size_t>> order_of(const Function& function, ValueId root) {
  const auto* alias = function.def_as<Alias>(root);
  const std::vector<Expr>& ours = function.view_type(root).shape;
  const std::vector<Expr>& theirs = function.view_type(alias->base).shape;
  const std::vector<Expr> strides = root_strides(function, alias->base);
  std::vector<std::size_t> order;
  for (std::size_t j = 0; j < theirs.size() && ours.size() == theirs.size(); ++j) {
    std::size_t d = 0;
    const auto is_it = [&](std::size_t at) {
      return ours[at] == theirs[j] && alias->strides[at] == strides[j] &&
             std::ranges::find(order, at) == order.end();
    };
    while (d < ours.size() && !is_it(d)) ++d;
    if (d == ours.size()) return std::nullopt;
    order.push_back(d);
  }
  const bool fine = !order.empty() && order.back() + 1 == ours.size();
  return fine ? std::optional(order) : std::nullopt;
}

}  // namespace

bool is_mappable(const Function& function, ValueId root) {
  const auto* alias = function.def_as<Alias>(root);
  if (alias == nullptr) return true;
  return alias->offset.is(0) && (alias->strides.empty() || order_of(function, root));
}

TensorMap in_buffer_order(TensorMap map) {
  const TensorMap given = map;
  for (std::size_t j = 0; j < given.order.size(); ++j) {
    map.shape[j] = given.shape[given.order[j]];
    map.extents[j] = given.extents[given.order[j]];
    map.box[j] = given.box[given.order[j]];
  }
  return map;
}

std::vector<Expr> launch_limits(const Function& function, const ResolvedView& view) {
  std::vector<Expr> out;
  for (const std::vector<Expr>& limits : view.limits) {
    Expr least = limits[0];  // the root's own extent
    for (const Expr& limit : limits) {
      if (known_at_launch(function, limit) && !(limit == least)) least = min(least, limit);
    }
    out.push_back(least);
  }
  return out;
}

TensorMap tensor_map_of(const Function& function, const Copy& copy) {
  const bool loads = function.view_type(copy.dst).space != Space::kGlobal;
  const ResolvedView global = resolve_view(function, loads ? copy.src : copy.dst);
  const ResolvedView shared = resolve_view(function, loads ? copy.dst : copy.src);
  TensorMap map{.buffer = storage_of(function, global.root),
                .shape = function.view_type(global.root).shape,
                .extents = launch_limits(function, global),
                .box = {}};
  map.box.assign(global.dropped, 1);
  map.box.insert(map.box.end(), copy.box.begin(), copy.box.end());
  const auto* alias = function.def_as<Alias>(shared.root);
  const auto* alloc = function.def_as<Alloc>(alias == nullptr ? shared.root : alias->base);
  if (alloc != nullptr && alloc->swizzle >= kLeastSwizzle) map.swizzle = alloc->swizzle;
  map.promotion = copy.promotion;
  const auto* permuted = function.def_as<Alias>(global.root);
  if (permuted != nullptr && !permuted->strides.empty()) {
    map.order = order_of(function, global.root).value_or(std::vector<std::size_t>{});
  }
  return map;
}

}  // namespace kiln::ir
