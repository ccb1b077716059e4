#include "passes/skip_ones.h"

#include <set>

#include "ir/registers.h"
#include "passes/for_each_launch.h"

namespace kiln::passes {

namespace {

using ir::OpId;
using ir::ValueId;

bool is_one(const ir::Function& function, ValueId value) {
  const auto* constant = function.def_as<ir::Const>(value);
  return constant != nullptr && constant->value == 1;
}

// The tiles of which an element is somewhere made 1 or something else, as a condition says.
std::set<ValueId> tiles_with_ones(const ir::Function& function, ir::RegionId body) {
  std::set<ValueId> out;
  ir::walk(function, body, [&](OpId id) {
    const auto* set = std::get_if<ir::SetElement>(&function.ops[id].data);
    const auto* choice = set == nullptr ? nullptr : function.def_as<ir::Choose>(set->value);
    if (choice == nullptr) return;
    if (is_one(function, choice->if_true) || is_one(function, choice->if_false)) {
      out.insert(set->frag);
    }
  });
  return out;
}

// One instruction, without a conversion.
bool compares_alone(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF64; }

int registers_of(const ir::Function& function, ValueId tile) {
  return ir::tile_registers(function, tile).map.values;
}

}  // namespace

Checked<bool> skip_ones(ir::Module& module, Diagnostics&) {
  for_each_launch(module, [](ir::Function& function, OpId launch) {
    const std::set<ValueId> with_ones = tiles_with_ones(function, body_of(function, launch));
    ir::walk(function, body_of(function, launch), [&](OpId id) {
      auto* apply = std::get_if<ir::Apply>(&function.ops[id].data);
      if (apply == nullptr) return;
      const ValueId factors = ir::factors_of(function, *apply);
      if (!factors.valid() || !with_ones.contains(factors)) return;
      if (!compares_alone(function.frag_type(factors).dtype)) return;
      if (registers_of(function, apply->frag) <= registers_of(function, factors)) return;
      apply->ones = factors;
    });
  });
  return true;
}

}  // namespace kiln::passes
