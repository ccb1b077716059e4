#include "passes/track_copies.h"

#include <algorithm>
#include <set>
#include <utility>

#include "ir/effects.h"
#include "passes/for_each_launch.h"
#include "passes/kernel_facts.h"

namespace kiln::passes {

namespace {

using ir::OpId;
using ir::ValueId;

// What a region's copies, each of which counts for an event, move from where to where.
struct Counted {
  std::set<OpId> copies = {};
  std::set<ValueId> events = {};
  std::set<ValueId> filled = {};  // buffers
  std::set<ValueId> read = {};
  std::set<std::pair<ValueId, ValueId>> of_buffers = {};  // which buffer for which event

  // Copies that nobody waits for in between may land in any order.
  [[nodiscard]] bool fills_twice() const { return of_buffers.size() != filled.size(); }
};

Counted counted_in(const ir::Function& function, ir::RegionId region) {
  Counted out;
  ir::walk(function, region, [&](OpId id) {
    const auto* copy = std::get_if<ir::Copy>(&function.ops[id].data);
    if (copy == nullptr || !copy->grouped || copy->bulk || !copy->event.valid()) return;
    out.copies.insert(id);
    out.events.insert(copy->event);
    out.filled.insert(ir::root_of(function, copy->dst));
    out.read.insert(ir::root_of(function, copy->src));
    out.of_buffers.emplace(ir::root_of(function, copy->dst), copy->event);
  });
  return out;
}

// By threads that have each arrived for themselves, or by warps, in this block.
bool may_track(const ir::Function& function, const ir::Trigger& trigger, const Counted& counted) {
  const auto* event = function.def_as<ir::Event>(trigger.event);
  const bool together =
      trigger.arrival == ir::Arrival::kWarp || trigger.arrival == ir::Arrival::kThread;
  return counted.events.contains(trigger.event) && event != nullptr && !event->grid &&
         !trigger.cluster && together && trigger.bytes == 0;
}

// All triggers, and each event that copies count for has one.
bool all_triggers_may(const ir::Function& function, ir::RegionId region, const Counted& counted) {
  bool out = true;
  std::set<ValueId> triggered;
  ir::walk(function, region, [&](OpId id) {
    const auto* trigger = std::get_if<ir::Trigger>(&function.ops[id].data);
    if (trigger == nullptr) return;
    triggered.insert(trigger->event);
    out = out && may_track(function, *trigger, counted);
  });
  return out && triggered == counted.events;
}

// A thread that leaves the region in the middle does not come to the wait at its end.
bool may_be_left(const ir::Function& function, ir::RegionId region) {
  bool out = false;
  ir::walk(function, region,
           [&](OpId id) { out = out || function.ops[id].kind() == ir::OpKind::kYield; });
  return out;
}

// Whether something touches what is copied in a way that does not go with it.
bool is_touched_otherwise(const ir::Function& function, OpId launch, ir::RegionId region,
                          const Counted& counted) {
  const KernelFacts facts(function, body_of(function, launch));
  if (std::ranges::any_of(counted.filled,
                          [&](ValueId root) { return facts.is_read_asynchronously(root); })) {
    return true;
  }
  std::set<OpId> inside;
  ir::walk(function, region, [&](OpId id) { inside.insert(id); });
  bool out = false;
  ir::walk(function, body_of(function, launch), [&](OpId id) {
    if (counted.copies.contains(id)) return;
    for (const ir::Touch& touch : ir::memory_touched(function, function.ops[id])) {
      const ValueId root = ir::root_of(function, touch.value);
      out = out || (inside.contains(id) && counted.filled.contains(root)) ||
            (touch.writes() && counted.read.contains(root));
    }
  });
  return out;
}

}  // namespace

void track_copies(ir::Function& function, OpId launch) {
  std::vector<ir::RegionId> regions;
  ir::walk(function, body_of(function, launch), [&](OpId id) {
    const auto* some = std::get_if<ir::Inthreads>(&function.ops[id].data);
    if (some != nullptr) regions.push_back(some->body);
  });
  for (const ir::RegionId region : regions) {
    const Counted counted = counted_in(function, region);
    if (counted.copies.empty() || counted.fills_twice() || may_be_left(function, region) ||
        !all_triggers_may(function, region, counted) ||
        is_touched_otherwise(function, launch, region, counted)) {
      continue;
    }
    ir::walk(function, region, [&](OpId id) {
      auto* trigger = std::get_if<ir::Trigger>(&function.ops[id].data);
      if (trigger != nullptr) trigger->tracks = true;
    });
  }
}

}  // namespace kiln::passes
