#include "ir/parts.h"

#include <optional>

#include "target/arch.h"

namespace kiln::ir {

namespace {

constexpr std::int64_t kWarpgroup = target::kWarpgroupLanes;

bool are_apart(std::int64_t first, std::int64_t length, std::int64_t other, std::int64_t others) {
  return first + length <= other || other + others <= first;
}

// Whether warpgroup i goes elsewhere in `a` than warpgroup j in `b`.
bool are_apart(const Parts& a, std::size_t i, const Parts& b, std::size_t j) {
  const bool rows = a.dimension == b.dimension && i < a.starts.size() && j < b.starts.size();
  if (rows && are_apart(a.starts[i], a.extent, b.starts[j], b.extent)) return true;
  const auto first = [](const Parts& parts, std::size_t warpgroup) -> std::optional<std::int64_t> {
    if (parts.firsts.size() == 1) return parts.firsts[0];
    if (warpgroup < parts.firsts.size()) return parts.firsts[warpgroup];
    return std::nullopt;
  };
  const auto here = first(a, i);
  const auto there = first(b, j);
  return here && there && are_apart(*here, a.length, *there, b.length);
}

}  // namespace

bool are_apart(const Parts& before, const Parts& now, std::int64_t first, std::int64_t threads,
               bool itself) {
  if (first % kWarpgroup != 0 || threads == 0 || threads % kWarpgroup != 0) return false;
  const auto begin = static_cast<std::size_t>(first / kWarpgroup);
  const auto end = begin + static_cast<std::size_t>(threads / kWarpgroup);
  for (std::size_t i = begin; i < end; ++i) {
    for (std::size_t j = begin; j < end; ++j) {
      if (i == j && !itself) continue;
      if (!are_apart(before, i, now, j)) return false;
    }
  }
  return true;
}

PartsOfViews::PartsOfViews(const Function& function, RegionId body) : function_(function) {
  walk(function, body, [&](OpId id) {
    const auto* parallel = std::get_if<Parallel>(&function.ops[id].data);
    const bool numbers = parallel != nullptr && parallel->level == Level::kGroup4;
    if (numbers && parallel->vars.size() == 1) warpgroups_.insert(parallel->vars[0]);
  });
}

std::vector<std::int64_t> PartsOfViews::by_warpgroup(const Expr& expr) const {
  std::vector<VarId> vars;
  expr.collect_vars(vars);
  if (vars.empty()) return {expr.evaluate({})};
  if (vars.size() != 1 || !warpgroups_.contains(vars[0])) return {};
  const auto count = function_.vars[vars[0]].extent.constant();
  if (!count) return {};
  std::vector<std::int64_t> out;
  std::vector<std::int64_t> values(function_.vars.size());
  for (std::int64_t i = 0; i < *count; ++i) {
    values[vars[0].index] = i;
    out.push_back(expr.evaluate(values));
  }
  return out;
}

Parts PartsOfViews::of(ValueId value) const {
  Parts out;
  add_rows(out, value);
  add_elements(out, value);
  return out;
}

// Of a view in another shape its elements stand in the same order.
void PartsOfViews::add_elements(Parts& parts, ValueId value) const {
  const ResolvedView view = resolve_view(function_, value);
  if (function_.view_type(view.root).space != Space::kShared) return;
  const std::vector<Expr> strides = root_strides(function_, view.root);
  const ViewType& type = function_.view_type(value);
  Expr first = root_offset(function_, view.root);
  std::int64_t length = 1;
  for (std::size_t d = 0; d < view.origin.size(); ++d) {
    const auto stride = strides[d].constant();
    const auto extent = d < view.dropped ? 1 : type.shape[d - view.dropped].constant();
    if (!stride || !extent) return;
    first = first + view.origin[d] * strides[d];
    length += (*extent - 1) * *stride;
  }
  parts.firsts = by_warpgroup(first);
  parts.length = length;
}

// By the first dimension whose origin is made of the warpgroup's number.
void PartsOfViews::add_rows(Parts& parts, ValueId value) const {
  const ResolvedView view = resolve_view(function_, value);
  if (view.root != root_of(function_, value)) return;
  const ViewType& type = function_.view_type(value);
  for (std::size_t d = 0; d < view.origin.size(); ++d) {
    std::vector<VarId> vars;
    view.origin[d].collect_vars(vars);
    if (vars.size() != 1 || !warpgroups_.contains(vars[0])) continue;
    const auto extent = d < view.dropped ? 1 : type.shape[d - view.dropped].constant();
    if (!extent) continue;
    std::vector<std::int64_t> starts = by_warpgroup(view.origin[d]);
    if (starts.empty()) continue;
    parts.dimension = d;
    parts.extent = *extent;
    parts.starts = std::move(starts);
    return;
  }
}

}  // namespace kiln::ir
