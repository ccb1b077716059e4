// Regions and events of the reference interpreter (see machine.h and regions.h).
#include <optional>
#include <set>

#include "reference/machine.h"

namespace kiln::reference {

// Those of the frame's instances that have threads in the region.
Frame Machine::masked(const ir::Inthreads& op, const Frame& frame) const {
  Frame inner = frame;
  const std::int64_t threads = regions_.block_threads();
  const auto count = static_cast<std::int64_t>(frame.count() / together_);  // of a block
  for (std::size_t i = 0; i < frame.count(); ++i) {
    const std::int64_t number = static_cast<std::int64_t>(i) % count;
    const std::int64_t first = number * threads / count;
    const std::int64_t end = (number + 1) * threads / count;
    const bool inside = first < op.first + op.threads && op.first < end;
    if (!inside) inner.active[i] = 0;
  }
  return inner;
}

// What follows regions in the block waits for them; a region after a region runs beside it.
void Machine::join_before(ir::OpId id) {
  const ir::OpKind kind = function_.ops[id].kind();
  const bool beside = kind == ir::OpKind::kInthreads || kind == ir::OpKind::kSubview;
  if (beside || !regions_.must_join()) return;
  regions_.join();
}

void Machine::run(const ir::Inthreads& op, Frame& frame) {
  const Team team{op.first, op.threads};
  Frame inner = masked(op, frame);
  if (op.async) {
    const ir::RegionId body = op.body;
    regions_.start(team,
                   [this, body, inner = std::move(inner)]() mutable { run_region(body, inner); });
    return;
  }
  regions_.run_as(team, [&] { run_region(op.body, inner); });
}

// One after another for each slot that an instance names.
std::set<std::int64_t> Machine::slots(const ir::Expr& slot, const Frame& frame) const {
  std::set<std::int64_t> out;
  for (std::size_t i = 0; i < frame.count(); ++i) {
    if (frame.active[i] != 0) out.insert(slot.evaluate(frame.vars[i]));
  }
  return out;
}

namespace {

// The first that blocks do to an event of the grid there: whether they trigger it.
std::optional<bool> triggers_first(const ir::Function& function, ir::RegionId body) {
  std::optional<bool> triggers;
  ir::walk(function, body, [&](ir::OpId id) {
    const ir::OpData& data = function.ops[id].data;
    const auto* trigger = std::get_if<ir::Trigger>(&data);
    const auto* wait = std::get_if<ir::EventWait>(&data);
    if (triggers || (trigger == nullptr && wait == nullptr)) return;
    const ir::ValueId event = trigger != nullptr ? trigger->event : wait->event;
    if (function.def_as<ir::Event>(event)->grid) triggers = trigger != nullptr;
  });
  return triggers;
}

}  // namespace

// Blocks go both ways at once; here one way goes first, which must not wait for the other.
bool Machine::frees_the_other(const ir::If& op) const {
  return op.else_body.valid() && triggers_first(function_, op.then_body) == false &&
         triggers_first(function_, op.else_body) == true;
}

void Machine::run(const ir::Trigger& op, Frame& frame) {
  for (const std::int64_t slot : slots(op.slot, frame)) regions_.trigger(op.event, slot);
}

void Machine::run(const ir::EventWait& op, ir::OpId id, Frame& frame) {
  std::set<std::pair<std::int64_t, std::int64_t>> waits;  // slot, generation
  for (std::size_t i = 0; i < frame.count(); ++i) {
    if (frame.active[i] == 0) continue;
    const std::int64_t generation = op.tracked ? -1 : op.generation.evaluate(frame.vars[i]);
    waits.emplace(op.slot.evaluate(frame.vars[i]), generation);
  }
  for (const auto& [slot, generation] : waits) {
    if (regions_.wait(id, op.event, slot, generation)) continue;
    outcome_.stuck_at = regions_.stuck_at();
    returned_ = true;
    return;
  }
}

}  // namespace kiln::reference
