#include "sim/loaded.h"

#include <algorithm>

#include "ir/effects.h"
#include "ir/reflect.h"

namespace kiln::sim {

namespace {

constexpr Loaded::Needs kNothing = {TraceEntry::kNone, TraceEntry::kNone};

void include(Loaded::Needs& out, const Loaded::Needs& more) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (more[i] == TraceEntry::kNone) continue;
    out[i] = out[i] == TraceEntry::kNone ? more[i] : std::max(out[i], more[i]);
  }
}

bool is_memory(const ir::Function& function, ir::ValueId value) {
  const auto* view = std::get_if<ir::ViewType>(&function.type(value));
  return view != nullptr && view->space != ir::Space::kLocal;
}

}  // namespace

Loaded::Loaded(const ir::Function& function)
    : function_(&function), values_(function.values.size(), kNothing) {}

Loaded::Needs& Loaded::of(ir::ValueId value) {
  return values_[ir::root_of(*function_, value).index];
}

template <class Visit>
void Loaded::for_each_written(const ir::Op& op, Visit&& visit) {
  if (op.result.valid() && !is_memory(*function_, op.result)) visit(op.result);
  ir::for_each_touch(op, [&](const ir::Touch& touch) {
    if (touch.writes() && !is_memory(*function_, touch.value)) visit(touch.value);
  });
}

void Loaded::execute(const ir::Op& op) {
  needs_ = control_;
  // An apply, too, has an operand that is no scalar, and depends on none of its elements.
  const bool steers = ir::traits(op.kind()).sort == ir::Sort::kStructure;
  const bool binds = ir::traits(op.kind()).sort == ir::Sort::kState;
  ir::for_each_operand(op, [&](std::string_view, ir::ValueId value) {
    if (!value.valid() || is_memory(*function_, value)) return;
    const bool scalar = std::holds_alternative<ir::ScalarType>(function_->type(value));
    if (steers && !scalar) return;
    include(needs_, of(value));
  });
  if (steers || binds) control_ = needs_;
  for_each_written(op, [&](ir::ValueId value) { include(of(value), needs_); });
}

void Loaded::met() { control_ = kNothing; }

void Loaded::comes_from(const ir::Op& op, std::uint32_t entry, bool global) {
  Needs from = kNothing;
  from[global ? 0 : 1] = entry;
  for_each_written(op, [&](ir::ValueId value) { of(value) = from; });
}

bool Loaded::stays_in_registers(const ir::Op& op) const {
  bool outside = false;
  ir::for_each_touch(
      op, [&](const ir::Touch& touch) { outside = outside || is_memory(*function_, touch.value); });
  return !outside;
}

}  // namespace kiln::sim
