// Atomic operations: one element of each lane, one lane after the other in an order that is not
// fixed. Two of them never race; they order nothing else.
#include <algorithm>
#include <array>
#include <cstring>

#include "ir/functions.h"
#include "sim/element.h"
#include "sim/scalar.h"

namespace kiln::sim {

namespace {

// What becomes of the old content. A float is equal by its bits.
Scalar replaced(const Warp& warp, const AtomicPlan& plan, std::uint32_t lane, Scalar old) {
  const DType dtype = plan.element.view.buffer->dtype;
  const Scalar value = warp.values[std::size_t{plan.value} * kLanes + lane];
  if (const auto kind = ir::combines(plan.kind)) return *apply(*kind, dtype, old, value);
  if (plan.kind != target::Atomic::kCas) return value;
  return old.i == warp.values[std::size_t{plan.compare} * kLanes + lane].i ? value : old;
}

void update(Machine& machine, Warp& warp, const AtomicPlan& plan, std::uint32_t lane) {
  const Buffer& buffer = *plan.element.view.buffer;
  const Touch touch{machine, warp, lane, buffer};
  Scalar& result = warp.value(plan.element.value, lane);
  const auto address = address_of(touch, plan.element);
  if (!address) {
    result.i = 0;
    return;
  }
  (buffer.space == ir::Space::kGlobal ? machine.global_request : machine.shared_request)
      .add(*address);
  note_atomic(touch, *address, buffer.size);
  std::byte* bytes = bytes_at(touch, *address);
  result = load_scalar(buffer.dtype, bytes);
  const Scalar next = replaced(warp, plan, lane, result);
  if (next.i != result.i) ++machine.changes;
  store_scalar(buffer.dtype, bytes, next);
}

// The lanes in turn, from lane 0 on; in schedules that are tried beside the first, in any order.
std::array<std::uint32_t, kLanes> order_of_lanes(Machine& machine) {
  std::array<std::uint32_t, kLanes> order;
  for (std::uint32_t i = 0; i < kLanes; ++i) order[i] = i;
  if (!machine.random) return order;
  for (std::uint32_t i = kLanes; i > 1; --i)
    std::swap(order[i - 1], order[machine.next_random() % i]);
  return order;
}

}  // namespace

void execute_atomic(Machine& machine, Warp& warp, const AtomicPlan& plan) {
  const Buffer& buffer = *plan.element.view.buffer;
  machine.global_request.clear();
  machine.shared_request.clear();
  for (const std::uint32_t lane : order_of_lanes(machine)) {
    if (((warp.mask >> lane) & 1U) != 0) update(machine, warp, plan, lane);
  }
  if (buffer.space == ir::Space::kShared) {
    machine.tally.shared_atomic(plan.interned, machine.shared_request, buffer.size);
  } else {
    machine.tally.global_atomic(plan.interned, machine.global_request, buffer.size);
  }
}

}  // namespace kiln::sim
