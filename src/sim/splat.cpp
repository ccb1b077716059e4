// Filling a view with one value, element by element.
//
//   a 5x7 view by 32 threads: 2 steps, thread t writes elements t and t + 32 of 35
#include <algorithm>

#include "sim/access.h"
#include "sim/element.h"

namespace kiln::sim {

namespace {

// The lane's element of the step; none when the view has no such element.
struct Target {
  const Window& window;
  const Coordinates& own;
  std::int64_t element = 0;
};

void write_element(const Touch& touch, const SplatPlan& plan, const Target& target) {
  Coordinates at = {};
  std::int64_t rest = target.element;
  for (std::size_t d = plan.view.rank; d-- > 0; rest /= target.own[d]) {
    at[d] = rest % target.own[d];
  }
  const Buffer& buffer = touch.buffer;
  const Reach reach{plan.view, target.window, target.own, plan.guarded, true, plan.before};
  if (reachable(touch, reach, at, 1) == 0) return;
  const std::int64_t address = buffer.address(root_coordinates(plan.view, target.window, at));
  Machine& machine = touch.machine;
  if (buffer.space == ir::Space::kGlobal) machine.global_request.add(address);
  if (buffer.space == ir::Space::kShared) machine.shared_request.add(address);
  note_write(touch, address, buffer.size);
  store_scalar(buffer.dtype, bytes_at(touch, address), touch.warp.value(plan.value, touch.lane));
}

void count_step(Machine& machine, const Buffer& buffer) {
  Tally& tally = machine.tally;
  if (buffer.space == ir::Space::kGlobal) {
    tally.global(Issue::kStoreGlobal, machine.global_request, buffer.size);
    tally.wrote_global(machine.global_request.count * buffer.size);
  } else if (buffer.space == ir::Space::kShared) {
    tally.shared(Issue::kStoreShared, machine.shared_request, buffer.size);
    tally.wrote_shared(machine.shared_request.count * buffer.size);
  }
}

}  // namespace

void execute_splat(Machine& machine, Warp& warp, const SplatPlan& plan) {
  if (plan.unit != 1) check_whole(machine, warp);
  const Buffer& buffer = *plan.view.buffer;
  const std::uint32_t unit = plan.unit == 0 ? machine.program.threads : plan.unit;
  bool more = true;
  for (std::int64_t step = 0; more; ++step) {
    more = false;
    machine.global_request.clear();
    machine.shared_request.clear();
    for_each_lane(warp.mask, [&](std::uint32_t lane) {
      const std::uint32_t thread = (warp.index * kLanes + lane) % unit;
      if (thread < plan.first || thread - plan.first >= plan.threads) return;
      const Window window = plan.view.window(warp.vars.data(), lane);
      const Coordinates own = extents_of(plan.view, warp, lane);
      std::int64_t elements = 1;
      for (std::size_t d = 0; d < plan.view.rank; ++d) {
        elements *= std::max<std::int64_t>(own[d], 0);
      }
      const std::int64_t element = step * plan.threads + (thread - plan.first);
      if (element >= elements) return;
      more = true;
      write_element({machine, warp, lane, buffer}, plan, {window, own, element});
    });
    if (more) count_step(machine, buffer);
  }
}

}  // namespace kiln::sim
