// What nobody can decide: branches and places that depend on what is not known, such as the old
// content that an atomic operation returns. The interpreter goes one way and then forgets what any
// way may have written.
//
//   n = __atomic_add(count.at(0), 1); list.at(n) = i;   =>   list: nothing is known of any element
#include <algorithm>

#include "ir/effects.h"
#include "ir/reflect.h"
#include "ir/strides.h"
#include "reference/machine.h"

namespace kiln::reference {

void Memory::forget() {
  values.assign(values.size(), unknown().value);
  errors.assign(values.size(), unknown().error);
  updates.clear();
}

void Fragments::forget() {
  for (Slot& slot : slots) slot.error.assign(slot.error.size(), kUnbounded);
}

bool Machine::is_open(const ir::Expr& expr) const {
  if (open_vars_.empty()) return false;
  std::vector<ir::VarId> vars;
  expr.collect_vars(vars);
  return std::ranges::any_of(vars, [&](ir::VarId var) { return open_vars_.contains(var.index); });
}

bool Machine::is_open(const std::vector<ir::Expr>& exprs) const {
  return std::ranges::any_of(exprs, [&](const ir::Expr& expr) { return is_open(expr); });
}

// Of those instances: which elements they may have written, where that is known; else all.
void Machine::forget_touched(const ir::Touch& touch, const Frame& frame,
                             const std::vector<std::uint8_t>& instances,
                             const std::set<std::uint32_t>& set_inside) {
  const ir::Type& type = function_.type(touch.value);
  const auto moves = [&](const ir::Expr& expr) {
    std::vector<ir::VarId> vars;
    expr.collect_vars(vars);
    return std::ranges::any_of(vars, [&](ir::VarId var) { return set_inside.contains(var.index); });
  };
  for (std::size_t i = 0; i < frame.count(); ++i) {
    if (instances[i] == 0) continue;
    if (std::holds_alternative<ir::CellType>(type)) {
      std::vector<Number>& slots = scalars_[touch.value.index];
      if (slots.empty()) return;
      const SlotRange range = slots_of(slots.size(), i, frame.count());
      for (std::size_t s = 0; s < range.count; ++s) slots[range.first + s] = unknown();
    } else if (std::holds_alternative<ir::FragType>(type)) {
      if (!applied_.valid()) return fragments_[touch.value.index].forget();
      const HeldElement element = held(touch.value, frame, i);
      element.slot->error[element.index] = kUnbounded;
    } else {
      const ir::ResolvedView view = ir::resolve_view(function_, touch.value);
      Memory& memory = memories_[ir::storage_of(function_, view.root).index];
      if (!memory.live) return;
      if (touch.index == nullptr || std::ranges::any_of(*touch.index, moves) ||
          std::ranges::any_of(view.origin, moves)) {
        return memory.forget();
      }
      const Window to = window(touch.value, frame.vars[i]);
      if (to.open || is_open(*touch.index)) return memory.forget();
      Coordinates at{};
      for (std::size_t d = 0; d < touch.index->size(); ++d) {
        at[d] = (*touch.index)[d].evaluate(frame.vars[i]);
      }
      const auto element = to.element(at.data());
      const SlotRange range = writable(memory, i, frame);
      for (std::size_t s = 0; element && s < range.count; ++s) {
        memory.set(range.first + s, *element, unknown());
      }
    }
  }
}

void Machine::forget_written(ir::RegionId region, const Frame& frame,
                             const std::vector<std::uint8_t>& instances) {
  std::set<std::uint32_t> set_inside;
  ir::walk(function_, region, [&](ir::OpId id) {
    ir::for_each_var_set(function_.ops[id], [&](ir::VarId var) { set_inside.insert(var.index); });
  });
  ir::walk(function_, region, [&](ir::OpId id) {
    ir::for_each_touch(function_.ops[id], [&](const ir::Touch& touch) {
      if (touch.writes()) forget_touched(touch, frame, instances, set_inside);
    });
  });
  left_undecided_ = left_undecided_ || ir::may_leave_early(function_, region);
}

// What stands in for it; without that nothing is known of what it may have written.
void Machine::run(const ir::Cuda& op, ir::OpId id, Frame& frame) {
  if (op.stand_in.valid()) return run_region(op.stand_in, frame);
  ++outcome_.undecided;
  ir::for_each_touch(function_.ops[id], [&](const ir::Touch& touch) {
    forget_touched(touch, frame, frame.active, {});
  });
}

// What a loop does in trips that may not have been made, or not by all.
void Machine::forget_trips(ir::RegionId body, const Frame& frame, bool undecided) {
  if (!undecided && !left_undecided_) return;
  left_undecided_ = false;
  forget_written(body, frame, std::vector<std::uint8_t>(frame.count(), 1));
  bool leaves_kernel = false;
  ir::walk(function_, body, [&](ir::OpId id) {
    leaves_kernel = leaves_kernel || function_.ops[id].kind() == ir::OpKind::kYield;
  });
  left_undecided_ = leaves_kernel;
}

// The instances that run in which the scalar is not known at all; empty: none.
std::vector<std::uint8_t> Machine::undecided(ir::ValueId value, const Frame& frame) {
  std::vector<std::uint8_t> out;
  for (std::size_t i = 0; i < frame.count(); ++i) {
    if (frame.active[i] == 0 || scalar(value, frame, i).error != kUnbounded) continue;
    out.resize(frame.count());
    out[i] = 1;
    ++outcome_.undecided;
  }
  return out;
}

}  // namespace kiln::reference
