#include "ir/loop_around.h"

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

}  // namespace

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
