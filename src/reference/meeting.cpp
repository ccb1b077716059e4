// Regions and events of the reference interpreter (see machine.h and regions.h).
#include <optional>
#include <set>

#include "reference/machine.h"

namespace kiln::reference {

// What an instance of the frame is: so many threads, one after the other.
std::int64_t Machine::threads_each(const Frame& frame) const {
  const auto count = static_cast<std::int64_t>(frame.count() / together_);  // of a block
  return count == 0 ? 0 : regions_.block_threads() / count;
}

// Those of the frame's instances that have threads among these.
Frame Machine::masked(const Team& team, const Frame& frame) const {
  Frame inner = frame;
  const std::int64_t threads = regions_.block_threads();
  const auto count = static_cast<std::int64_t>(frame.count() / together_);  // of a block
  for (std::size_t i = 0; i < frame.count(); ++i) {
    const std::int64_t number = static_cast<std::int64_t>(i) % count;
    const std::int64_t first = number * threads / count;
    const std::int64_t end = (number + 1) * threads / count;
    const bool inside = first < team.first + team.second && team.first < end;
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
  if (!op.async) {
    Frame inner = masked(team, frame);
    return regions_.run_as(team, [&] { run_region(op.body, inner); });
  }
  const std::int64_t unit = threads_each(frame) * static_cast<std::int64_t>(frame.lanes);
  for (const Part& part : regions_.parts(team, unit)) {
    regions_.start(part, [this, body = op.body, inner = masked(part.threads(), frame)]() mutable {
      run_region(body, inner);
    });
  }
}

// What `at`, an instance that runs, would find in its variables if it were the other, which may be elsewhere in the program.
std::vector<std::int64_t> Machine::as_if(const Frame& frame, std::size_t at,
                                         std::size_t other) const {
  const std::span<const std::int64_t> here = frame.vars[at];
  std::vector<std::int64_t> out(here.begin(), here.end());
  const std::span<const std::int64_t> there = frame.vars[other];
  for (const std::uint32_t var : unit_vars_) out[var] = there[var];
  return out;
}

// By slot: the threads of a block, or of all of the cluster's, that trigger it now, and those of the region that come to
// the same operation with it, now or, as other parts, at a time of their own.
std::map<std::int64_t, Arrivals> Machine::arrivals(const ir::Trigger& op,
                                                   const Frame& frame) const {
  std::map<std::int64_t, Arrivals> out;
  const auto* made = function_.def_as<ir::Event>(op.event);
  const bool of_all_blocks = op.cluster || (made != nullptr && made->grid);
  const std::size_t count = frame.count() / together_;  // of a block
  const std::int64_t each = threads_each(frame);
  for (std::size_t first = 0; first < frame.count(); first += count) {
    const auto begin = frame.active.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = begin + static_cast<std::ptrdiff_t>(count);
    const auto found = std::find_if(begin, end, [](std::uint8_t active) { return active != 0; });
    if (found == end) continue;
    const auto here = static_cast<std::size_t>(found - frame.active.begin());
    std::map<std::int64_t, Arrivals> block;
    for (std::size_t i = first; i < first + count; ++i) {
      const bool active = frame.active[i] != 0;
      if (!active && !regions_.is_of_another_part(static_cast<std::int64_t>(i - first) * each))
        continue;
      Arrivals& at = block[op.slot.evaluate(active ? frame.vars[i] : as_if(frame, here, i))];
      at.threads += active ? each : 0;
      at.named += each;
    }
    for (const auto& [slot, its] : block) {
      if (its.threads == 0) continue;
      Arrivals& at = out[slot];
      at.threads = of_all_blocks ? at.threads + its.threads : std::max(at.threads, its.threads);
      at.named = std::max(at.named, its.named);
    }
  }
  // Blocks of a cluster that do not run in step do the same.
  for (auto& [slot, its] : out) {
    if (op.cluster && together_ == 1) its.threads *= cluster_blocks_;
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
  for (const auto& [slot, arrivals] : arrivals(op, frame)) {
    regions_.trigger(op.event, slot, arrivals);
  }
}

void Machine::run(const ir::EventWait& op, ir::OpId id, Frame& frame) {
  std::set<std::pair<std::int64_t, std::int64_t>> waits;  // slot, generation
  for (std::size_t i = 0; i < frame.count(); ++i) {
    if (frame.active[i] == 0) continue;
    const std::int64_t generation = op.tracked ? -1 : op.generation.evaluate(frame.vars[i]);
    waits.emplace(op.slot.evaluate(frame.vars[i]), generation);
  }
  for (const auto& [slot, generation] : waits) {
    if (!regions_.wait(id, op.event, slot, generation)) return give_up_waiting();
  }
}

void Machine::meet_parts(ir::OpId id) {
  if (!regions_.meet(id)) give_up_waiting();
}

// What moves to `dst`. What all threads of a region move together (`unit` 0) moves once when all of its parts are there,
// and they go on when it has.
void Machine::for_all_of(std::int64_t unit, ir::ValueId dst, ir::OpId id,
                         const std::function<void()>& move) {
  const bool is_shared_out =
      unit == 0 && regions_.parts_now() > 1 && function_.view_type(dst).space != ir::Space::kLocal;
  if (!is_shared_out) return move();
  meet_parts(id);
  if (!returned_ && regions_.is_first_part()) move();
  if (!returned_) meet_parts(id);
}

void Machine::give_up_waiting() {
  outcome_.stuck_at = regions_.stuck_at();
  returned_ = true;
}

void Machine::run(const ir::Barrier& op, ir::OpId id) {
  if (op.level != ir::Level::kBlock) return;
  begin_phase();
  meet_parts(id);
}

}  // namespace kiln::reference
