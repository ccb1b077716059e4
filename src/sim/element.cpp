// Reads and writes of single elements, one by each lane, and the contents of new allocations.
#include "sim/element.h"

#include <algorithm>
#include <cstring>

#include "sim/access.h"

namespace kiln::sim {

Scalar load_scalar(DType dtype, const std::byte* at) {
  Scalar out = {0};
  if (is_float(dtype)) {
    out.f = load_number(dtype, at);
    return out;
  }
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, static_cast<std::size_t>(size_bytes(dtype)));
  // s64 and u64 are their bits; the others fit a double.
  out.i = info(dtype).bits == 64 ? static_cast<std::int64_t>(bits)
                                 : static_cast<std::int64_t>(decode(dtype, bits));
  return out;
}

void store_scalar(DType dtype, std::byte* at, Scalar value) {
  if (is_float(dtype)) {
    store_number(dtype, at, value.f);
    return;
  }
  const auto bits = static_cast<std::uint64_t>(value.i);
  std::memcpy(at, &bits, static_cast<std::size_t>(size_bytes(dtype)));
}

std::optional<std::int64_t> address_of(const Touch& touch, const ElementPlan& plan) {
  const View& view = plan.view;
  const Buffer& buffer = *view.buffer;
  const Warp& warp = touch.warp;
  const std::uint32_t lane = touch.lane;
  Coordinates at = {};
  const Window window = view.window(warp.vars.data(), lane);
  const Coordinates own = extents_of(view, warp, lane);
  for (std::size_t d = 0; d < view.rank; ++d) {
    at[d] = plan.index[d].evaluate(warp.vars.data(), lane);
  }
  const Coordinates root = root_coordinates(view, window, at);
  for (std::size_t d = 0; d < buffer.rank; ++d) {
    const bool pinned = d < view.dropped;
    const std::size_t dim = pinned ? 0 : d - view.dropped;
    const bool in_view = pinned || (at[dim] >= 0 && at[dim] < own[dim]);
    if (root[d] >= 0 && root[d] < window.limit[d] && in_view) continue;
    const std::int64_t limit =
        pinned ? window.limit[d] : std::min(window.limit[d], window.origin[d] + own[dim]);
    report_out_of_bounds(touch, {root, d, limit}, plan.writes);
    return std::nullopt;
  }
  if (buffer.memory != nullptr && !check_held(touch, root, buffer.size, plan.writes)) {
    return std::nullopt;
  }
  return buffer.address(root);
}

namespace {

// The number in the cluster of the block whose element it is; none behind a report.
std::optional<std::uint32_t> block_of(const Touch& touch, const ElementPlan& plan) {
  std::int64_t number = 0;
  for (std::size_t axis = plan.block.size(); axis-- > 0;) {
    const std::int64_t at = plan.block[axis].evaluate(touch.warp.vars.data(), touch.lane);
    if (at < 0 || at >= plan.cluster[axis]) {
      report_at(
          touch.machine, touch.warp, ReportKind::kOutOfBounds,
          format("`{}` of block {} of a cluster of {}", touch.buffer.name, at, plan.cluster[axis]),
          format("read {}", touch.by()));
      return std::nullopt;
    }
    number = number * plan.cluster[axis] + at;
  }
  return static_cast<std::uint32_t>(number);
}

void access_element(Machine& machine, Warp& warp, const ElementPlan& plan, std::uint32_t lane) {
  const Buffer& buffer = *plan.view.buffer;
  Touch touch{machine, warp, lane, buffer};
  Scalar& value = warp.value(plan.value, lane);
  if (!plan.block.empty()) touch.other = block_of(touch, plan);
  const bool nowhere = !plan.block.empty() && !touch.other;
  const auto found = nowhere ? std::nullopt : address_of(touch, plan);
  if (!found) {
    if (!plan.writes) value.i = 0;  // the bits of 0.0 as well
    return;
  }
  const std::int64_t address = *found;
  std::byte* bytes = bytes_at(touch, address);
  (buffer.space == ir::Space::kGlobal ? machine.global_request : machine.shared_request)
      .add(address);
  if (plan.writes) {
    note_write(touch, address, buffer.size);
    std::array<std::byte, sizeof(std::uint64_t)> before{};
    std::memcpy(before.data(), bytes, static_cast<std::size_t>(buffer.size));
    store_scalar(buffer.dtype, bytes, value);
    if (std::memcmp(before.data(), bytes, static_cast<std::size_t>(buffer.size)) != 0) {
      ++machine.changes;
    }
  } else {
    note_read(touch, address, buffer.size);
    value = load_scalar(buffer.dtype, bytes);
  }
}

void initialise_fragment(Machine& machine, Warp& warp, const InitialisePlan& plan) {
  const FragmentPlan& fragment = machine.program.fragments[plan.fragment];
  const bool filled = plan.initial != InitialisePlan::kNone;
  warp.fragment_set[plan.fragment] = filled;
  if (!filled) return;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    const Scalar value = warp.value(plan.initial, lane);
    const double number = is_float(fragment.dtype) ? value.f : static_cast<double>(value.i);
    std::fill_n(warp.registers.begin() + fragment.offset + lane * fragment.values, fragment.values,
                number);
  }
}

void initialise_local(Machine& machine, Warp& warp, const InitialisePlan& plan,
                      std::uint32_t lane) {
  const Buffer& buffer = *plan.buffer;
  const Touch touch{machine, warp, lane, buffer};
  const bool filled = plan.initial != InitialisePlan::kNone;
  const auto begin =
      warp.local_set.begin() +
      static_cast<std::ptrdiff_t>(std::int64_t{lane} * machine.program.local_bytes + buffer.offset);
  std::fill(begin, begin + static_cast<std::ptrdiff_t>(buffer.bytes), filled);
  if (!filled) return;
  for (std::int64_t at = buffer.offset; at < buffer.offset + buffer.bytes; at += buffer.size) {
    store_scalar(buffer.dtype, bytes_at(touch, at), warp.value(plan.initial, lane));
  }
}

// Element i is written by thread i % threads of the block.
void initialise_shared(Machine& machine, Warp& warp, const InitialisePlan& plan,
                       std::uint32_t lane) {
  if (plan.initial == InitialisePlan::kNone) return;
  const Buffer& buffer = *plan.buffer;
  const Touch touch{machine, warp, lane, buffer};
  const std::int64_t elements = buffer.bytes / buffer.size;
  const std::int64_t first = std::int64_t{warp.index * kLanes + lane} - plan.who.first;
  for (std::int64_t i = first; i < elements; i += plan.who.threads) {
    const std::int64_t address = buffer.offset + i * buffer.size;
    note_write(touch, address, buffer.size);
    store_scalar(buffer.dtype, bytes_at(touch, address), warp.value(plan.initial, lane));
  }
}

void initialise_global(Machine& machine, Warp& warp, const InitialisePlan& plan) {
  if (plan.initial == InitialisePlan::kNone || plan.buffer == nullptr) return;
  const Buffer& buffer = *plan.buffer;
  const Touch touch{machine, warp, 0, buffer};
  for (std::int64_t at = 0; at < buffer.bytes; at += buffer.size) {
    store_scalar(buffer.dtype, bytes_at(touch, at), warp.value(plan.initial, 0));
  }
}

}  // namespace

void execute_element(Machine& machine, Warp& warp, const ElementPlan& plan) {
  const Buffer& buffer = *plan.view.buffer;
  machine.global_request.clear();
  machine.shared_request.clear();
  for_each_lane(warp.mask, [&](std::uint32_t lane) { access_element(machine, warp, plan, lane); });
  const std::int64_t bytes = buffer.size;
  switch (buffer.space) {
    case ir::Space::kLocal: break;
    case ir::Space::kGlobal: {
      const std::int64_t moved = machine.global_request.count * bytes;
      machine.tally.global(plan.writes ? Issue::kStoreGlobal : Issue::kLoadGlobal,
                           machine.global_request, bytes);
      plan.writes ? machine.tally.wrote_global(moved) : machine.tally.read_global(moved);
      break;
    }
    case ir::Space::kShared: {
      const std::int64_t moved = machine.shared_request.count * bytes;
      machine.tally.shared(plan.writes ? Issue::kStoreShared : Issue::kLoadShared,
                           machine.shared_request, bytes);
      plan.writes ? machine.tally.wrote_shared(moved) : machine.tally.read_shared(moved);
      break;
    }
  }
}

void execute_initialise(Machine& machine, Warp& warp, const InitialisePlan& plan) {
  if (plan.cell == InitialisePlan::kNone) ++machine.changes;
  if (plan.fragment != InitialisePlan::kNone) {
    initialise_fragment(machine, warp, plan);
    return;
  }
  if (plan.cell != InitialisePlan::kNone) {
    for_each_lane(warp.mask, [&](std::uint32_t lane) {
      const bool filled = plan.initial != InitialisePlan::kNone;
      std::uint32_t& set = warp.cell_set[plan.cell];
      set = filled ? set | (1U << lane) : set & ~(1U << lane);
      if (filled) warp.value(plan.cell, lane) = warp.value(plan.initial, lane);
    });
    return;
  }
  if (plan.buffer == nullptr) return;
  switch (plan.buffer->space) {
    case ir::Space::kGlobal: initialise_global(machine, warp, plan); return;
    case ir::Space::kShared:
      for_each_lane(warp.mask,
                    [&](std::uint32_t lane) { initialise_shared(machine, warp, plan, lane); });
      return;
    case ir::Space::kLocal:
      for_each_lane(warp.mask,
                    [&](std::uint32_t lane) { initialise_local(machine, warp, plan, lane); });
      return;
  }
}

}  // namespace kiln::sim
