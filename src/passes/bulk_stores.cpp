#include "passes/bulk_stores.h"

#include <algorithm>
#include <map>

#include "ir/depend.h"
#include "ir/effects.h"
#include "passes/for_each_launch.h"
#include "passes/producer_slice.h"

namespace kiln::passes {

namespace {

using ir::OpId;

// How often the launch's operations name each buffer of global memory as one that they read or write.
std::map<ir::ValueId, int> uses_of_tensors(const ir::Function& function, OpId launch) {
  std::map<ir::ValueId, int> out;
  ir::walk(function, body_of(function, launch), [&](OpId id) {
    for (const ir::Touch& touch : ir::memory_touched(function, function.ops[id])) {
      ++out[ir::root_of(function, touch.value)];
    }
  });
  return out;
}

// Whether each trip of the loops around the copy writes a place of its own: the hardware's stores of two trips come in
// any order.
bool writes_anew(const ir::Function& function, OpId launch, OpId id) {
  const auto& copy = std::get<ir::Copy>(function.ops[id].data);
  const ir::Dependence of =
      ir::dependence_of(function, ir::resolve_view(function, copy.dst).origin);
  return std::ranges::all_of(ancestors_of(function, launch, id), [&](OpId around) {
    const auto* loop = std::get_if<ir::For>(&function.ops[around].data);
    if (loop != nullptr) return of.vars.contains(loop->var);
    return function.ops[around].kind() != ir::OpKind::kLoop;
  });
}

bool is_by_threads(const ir::Function& function, const ir::Copy& copy) {
  return !copy.bulk && !copy.async && !copy.event.valid() && !copy.future.valid() &&
         function.view_type(copy.src).space == ir::Space::kShared &&
         function.view_type(copy.dst).space == ir::Space::kGlobal &&
         function.def_as<ir::Alloc>(copy.src) != nullptr;
}

}  // namespace

BulkStores bulk_stores(const ir::Function& function, OpId launch,
                       const std::vector<RowCondition>& known) {
  BulkStores out;
  std::vector<RowCondition> conditions = known;
  const std::map<ir::ValueId, int> uses = uses_of_tensors(function, launch);
  ir::walk(function, body_of(function, launch), [&](OpId id) {
    const auto* copy = std::get_if<ir::Copy>(&function.ops[id].data);
    if (copy == nullptr || !is_by_threads(function, *copy)) return;
    if (uses.at(ir::root_of(function, copy->dst)) != 1) return;
    if (!writes_anew(function, launch, id)) return;
    std::vector<RowCondition> with = conditions;
    if (bulk_instead(function, id, with)) return;
    conditions = std::move(with);
    out.copies.push_back(id);
  });
  out.conditions.assign(conditions.begin() + static_cast<std::ptrdiff_t>(known.size()),
                        conditions.end());
  return out;
}

void store_in_bulk(ir::Function& function, const std::vector<OpId>& copies) {
  for (ir::Region& region : function.regions) {
    for (std::size_t i = 0; i < region.ops.size(); ++i) {
      const OpId id = region.ops[i];
      if (std::ranges::find(copies, id) == copies.end()) continue;
      std::get<ir::Copy>(function.ops[id].data).bulk = true;
      const OpId wait =
          function.ops.push({function.ops[id].span, ir::BulkWait{.inferred = true}, {}});
      region.ops.insert(region.ops.begin() + static_cast<std::ptrdiff_t>(i) + 1, wait);
    }
  }
}

}  // namespace kiln::passes
