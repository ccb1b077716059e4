#include "ir/tensor_map.h"

#include "ir/prove.h"
#include "ir/strides.h"

namespace kiln::ir {

namespace {

// Panels of 16 bytes are stored one after another as they are.
constexpr std::int64_t kLeastSwizzle = 32;

}  // namespace

bool is_mappable(const Function& function, ValueId root) {
  const auto* alias = function.def_as<Alias>(root);
  return alias == nullptr || (alias->strides.empty() && alias->offset.is(0));
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
  return map;
}

}  // namespace kiln::ir
