#include "ir/effects.h"

#include <algorithm>

#include "ir/reflect.h"

namespace kiln::ir {

namespace {

// What moves or fetches something says what, jumps and pure operations touch nothing, and who is
// executed `kOfUnit` has a field `unit` of threads.
template <class Data>
consteval bool is_declared(Traits traits) {
  const bool must = traits.sort == Sort::kMove || traits.sort == Sort::kFetch;
  const bool may = must || traits.sort == Sort::kName;
  constexpr bool kHasUnit = requires(Data data) { data.unit += 1; };
  return (!must || kSaysTouches<Data>)&&(may || !kSaysTouches<Data>)&&(
      traits.executor != Executor::kOfUnit || kHasUnit);
}
#define KILN_OP(Name, ...) \
  static_assert(is_declared<Name>(traits(OpKind::k##Name)), "see ir/op.def on " #Name);
#include "ir/op.def"
#undef KILN_OP

}  // namespace

void for_each_touch(const Op& op, FunctionRef<void(const Touch&)> visit) {
  const auto name = [&](const Touch& touch) {
    Touch named = touch;
    if (!named.value.valid()) named.value = op.result;
    visit(named);
  };
  kiln::visit(
      [&]<class Data>(const Data& data) {
        if constexpr (kSaysTouches<Data>) Data::touches(data, name);
      },
      op.data);
}

bool may_leave_early(const Function& function, RegionId region) {
  bool found = false;
  walk(function, region, [&](OpId id) { found = found || leaves_early(function.ops[id].kind()); });
  return found;
}

bool may_leave(const Function& function, RegionId region) {
  for (const OpId id : function.regions[region].ops) {
    const OpKind kind = function.ops[id].kind();
    if (leaves_early(kind)) return true;
    for (const RegionId inner : regions_of(function.ops[id])) {
      // A loop takes up its own jumps; threads that leave the kernel it does not.
      bool leaves = is_loop(kind) ? false : may_leave(function, inner);
      if (is_loop(kind)) {
        walk(function, inner,
             [&](OpId each) { leaves = leaves || function.ops[each].kind() == OpKind::kYield; });
      }
      if (leaves) return true;
    }
  }
  return false;
}

std::int64_t unit_of(const Op& op) {
  std::int64_t unit = 0;
  for_each_field(op, [&](std::string_view key, const auto& field) {
    if constexpr (std::is_same_v<decltype(field), const std::int64_t&>) {
      if (key == "unit") unit = field;
    }
  });
  return unit;
}

Executor executor_of(const Op& op) {
  const Executor executor = traits(op.kind()).executor;
  if (executor != Executor::kOfUnit) return executor;
  const std::int64_t unit = unit_of(op);
  if (unit == 1) return Executor::kThread;
  return unit == 0 ? Executor::kBlock : Executor::kUnit;
}

// A `scale` waits where place-barriers says so.
Waits waits_of(const Op& op) {
  const auto* scale = std::get_if<Scale>(&op.data);
  if (scale != nullptr && scale->waits) return Waits::kForProducts;
  return traits(op.kind()).waits;
}

std::vector<Touch> memory_touched(const Function& function, const Op& op) {
  std::vector<Touch> out;
  for_each_touch(op, [&](const Touch& touch) {
    const bool is_view =
        touch.value.valid() && std::holds_alternative<ViewType>(function.type(touch.value));
    if (is_view) out.push_back(touch);
  });
  return out;
}

namespace {

bool reads_outside_launches(const Function& function, RegionId region) {
  return std::ranges::any_of(function.regions[region].ops, [&](OpId id) {
    const Op& op = function.ops[id];
    const auto* parallel = std::get_if<Parallel>(&op.data);
    if (parallel != nullptr && parallel->level == Level::kBlock) return false;
    const Regions inner = regions_of(op);
    return std::ranges::any_of(memory_touched(function, op), &Touch::reads) ||
           std::ranges::any_of(
               inner, [&](RegionId each) { return reads_outside_launches(function, each); });
  });
}

}  // namespace

bool host_reads(const Function& function) {
  return reads_outside_launches(function, function.body);
}

bool changes_memory(const Function& function, const Op& op) {
  return std::ranges::any_of(memory_touched(function, op), [](const Touch& touch) {
    return touch.use == Use::kWrites || touch.use == Use::kUpdates;
  });
}

std::vector<ValueId> tiles_in(const Function& function, const Apply& apply) {
  std::vector<ValueId> out = {apply.frag};
  walk(function, apply.body, [&](OpId id) {
    for_each_touch(function.ops[id], [&](const Touch& touch) {
      const bool is_tile = std::holds_alternative<FragType>(function.type(touch.value));
      if (is_tile && std::ranges::find(out, touch.value) == out.end()) out.push_back(touch.value);
    });
  });
  return out;
}

bool reads_other_block(const Op& op) {
  bool out = false;
  for_each_touch(op, [&](const Touch& touch) { out = out || touch.of_any_block; });
  return out;
}

ValueId written_together(const Function& function, const Op& op) {
  ValueId out;
  if (!is_collective(op)) return out;
  for (const Touch& touch : memory_touched(function, op)) {
    if (touch.writes()) out = touch.value;
  }
  return out;
}

}  // namespace kiln::ir
