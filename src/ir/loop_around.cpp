#include "ir/loop_around.h"

#include <algorithm>

#include "ir/effects.h"

namespace kiln::ir {

namespace {

// The operations around `wanted` and itself, outermost first; empty when it is not in the region.
std::vector<OpId> path_to(const Function& function, RegionId region, OpId wanted) {
  for (const OpId op : function.regions[region].ops) {
    if (op == wanted) return {op};
    for (const RegionId inner : regions_of(function.ops[op])) {
      std::vector<OpId> path = path_to(function, inner, wanted);
      if (path.empty()) continue;
      path.insert(path.begin(), op);
      return path;
    }
  }
  return {};
}

std::uint64_t saturating(std::uint64_t a, std::uint64_t b, bool product) {
  std::uint64_t out = 0;
  const bool over =
      product ? __builtin_mul_overflow(a, b, &out) : __builtin_add_overflow(a, b, &out);
  return over ? UINT64_MAX : out;
}

std::uint64_t trips_of(const For& loop) {
  const auto lower = loop.lower.constant();
  const auto upper = loop.upper.constant();
  if (!lower || !upper || *lower >= *upper) return 0;
  const auto distance = static_cast<std::uint64_t>(*upper) - static_cast<std::uint64_t>(*lower);
  return (distance - 1) / static_cast<std::uint64_t>(loop.step) + 1;
}

std::uint64_t trips_in(const Function& function, RegionId region) {
  std::uint64_t sum = 0;
  for (const OpId id : function.regions[region].ops) {
    const OpData& data = function.ops[id].data;
    std::uint64_t its = 0;
    if (const auto* loop = std::get_if<For>(&data)) {
      const std::uint64_t inside = std::max<std::uint64_t>(trips_in(function, loop->body), 1);
      its = saturating(trips_of(*loop), inside, true);
    } else if (const auto* parallel = std::get_if<Parallel>(&data)) {
      its = trips_in(function, parallel->body);
    }
    sum = saturating(sum, its, false);
  }
  return sum;
}

}  // namespace

std::uint64_t least_trips(const Function& function, RegionId region) {
  return may_leave_early(function, region) ? 0 : trips_in(function, region);
}

OpId loop_around(const Function& function, OpId op) {
  OpId counted;
  OpId forever;
  for (const OpId id : path_to(function, function.body, op)) {
    const OpKind kind = function.ops[id].kind();
    if (kind == OpKind::kFor && !counted.valid()) counted = id;
    if (kind == OpKind::kLoop) forever = id;
  }
  if (forever.valid()) return forever;
  return counted.valid() ? counted : op;
}

}  // namespace kiln::ir
