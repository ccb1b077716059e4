// What a tile holds at a point of the program, for people who look for a mistake.
#include <algorithm>

#include "sim/access.h"

namespace kiln::sim {

namespace {

using Element = Dumped::Element;

// The table that this warp's unit fills: nothing when it is another unit's, or the warp has told
// what it holds.
Dumped* table_of(Dumping& dumping, const DumpPlan& plan, const Warp& warp) {
  const std::uint32_t thread = warp.index * kLanes;
  const std::uint32_t first = thread / plan.unit * plan.unit;
  const auto found = std::ranges::find(dumping.dumped, plan.point, &Dumped::point);
  const auto number = static_cast<std::size_t>(found - dumping.dumped.begin());
  if (found == dumping.dumped.end()) {
    dumping.dumped.push_back(
        {.point = plan.point, .dtype = plan.dtype, .first_thread = first, .threads = plan.unit});
    dumping.told.push_back(0);
  } else if (found->first_thread != first) {
    return nullptr;
  }
  const std::uint32_t bit = 1U << (thread - first) / kLanes % kLanes;
  if ((dumping.told[number] & bit) != 0) return nullptr;
  dumping.told[number] |= bit;
  return &dumping.dumped[number];
}

void dump_fragment(const Machine& machine, const Warp& warp, const DumpPlan& plan, Dumped& to) {
  const FragmentPlan& fragment = machine.program.fragments[plan.fragment];
  to.shape = {plan.shape.row, plan.shape.col};
  to.elements.resize(static_cast<std::size_t>(plan.shape.row) *
                     static_cast<std::size_t>(plan.shape.col));
  to.pending = to.pending || std::ranges::any_of(warp.products, [&](const Product& product) {
                 return machine.program.products[product.plan].c == plan.fragment;
               });
  for_each_lane(warp.mask, [&](std::uint32_t lane) {
    const std::uint32_t in_unit = warp.index * kLanes % plan.unit + lane;
    for (std::uint32_t v = 0; v < fragment.values; ++v) {
      const Place& at = plan.places[v * plan.unit + in_unit];
      if (at.row < 0 || at.row >= plan.shape.row || at.col >= plan.shape.col) continue;
      Element& element =
          to.elements[static_cast<std::size_t>(at.row) * static_cast<std::size_t>(plan.shape.col) +
                      static_cast<std::size_t>(at.col)];
      if (element.holders++ != 0) continue;
      element.value = warp.registers[fragment.offset + lane * fragment.values + v];
      element.known = warp.fragment_set[plan.fragment];
      element.thread = static_cast<std::int32_t>(warp.index * kLanes + lane);
      element.number = static_cast<std::int32_t>(v);
    }
  });
}

void dump_cell(Warp& warp, const DumpPlan& plan, Dumped& to) {
  to.shape = {plan.unit};
  to.elements.resize(plan.unit);
  for_each_lane(warp.mask, [&](std::uint32_t lane) {
    Element& element = to.elements[warp.index * kLanes % plan.unit + lane];
    const Scalar now = warp.value(plan.cell, lane);
    element.value = is_float(plan.dtype) ? now.f : static_cast<double>(now.i);
    element.known = (warp.cell_set[plan.cell] >> lane & 1U) != 0;
    element.thread = static_cast<std::int32_t>(warp.index * kLanes + lane);
    element.holders = 1;
  });
}

// Whether anybody has written the element's first byte, and whether that is on its way.
void ask_shadow(const Shadow& shadow, Element& element) {
  const auto address = static_cast<std::size_t>(element.address);
  element.known = shadow.has_content(address);
  element.in_flight = element.known && shadow.in_flight(address);
}

void find_out(const Touch& touch, Element& element) {
  const Machine& machine = touch.machine;
  element.known = true;
  switch (touch.buffer.space) {
    case ir::Space::kShared:
      if (machine.checks) ask_shadow(*machine.shared_shadows[touch.warp.block], element);
      break;
    case ir::Space::kLocal: {
      const std::size_t bytes = touch.warp.local_set.size() / kLanes;
      const auto address = static_cast<std::size_t>(element.address);
      element.known = touch.warp.local_set[touch.lane * bytes + address];
      break;
    }
    case ir::Space::kGlobal:
      if (touch.buffer.watched == Buffer::kUnwatched) break;
      ask_shadow(*machine.global_shadows[touch.buffer.watched], element);
      break;
  }
}

// As the first of the warp's threads sees it; of the unit's warps the last one to get there.
void dump_view(Machine& machine, Warp& warp, const DumpPlan& plan, Dumped& to) {
  const Touch touch{machine, warp, warp.first_lane(), *plan.view.buffer};
  const Window window = plan.view.window(warp.vars.data(), touch.lane);
  const Coordinates extents = extents_of(plan.view, warp, touch.lane);
  std::size_t count = 1;
  to.shape.clear();
  for (std::size_t d = 0; d < plan.view.rank; ++d) {
    to.shape.push_back(extents[d]);
    count *= static_cast<std::size_t>(std::max<std::int64_t>(extents[d], 0));
  }
  to.elements.assign(count, {});
  Coordinates at = {};
  for (Element& element : to.elements) {
    const Coordinates root = root_coordinates(plan.view, window, at);
    const bool inside = outside(touch.buffer, window, root) == kRankMax;
    if (inside) element.address = touch.buffer.address(root);
    if (inside && touch.buffer.holds(element.address, touch.buffer.size)) {
      find_out(touch, element);
      element.value = load_number(plan.dtype, bytes_at(touch, element.address));
    }
    for (std::size_t d = plan.view.rank; d-- > 0;) {
      if (++at[d] < extents[d]) break;
      at[d] = 0;
    }
  }
}

}  // namespace

void execute_dump(Machine& machine, Warp& warp, const DumpPlan& plan) {
  if (machine.dumping == nullptr || machine.block_numbers[warp.block] != 0 || warp.mask == 0)
    return;
  Dumped* table = table_of(*machine.dumping, plan, warp);
  if (table == nullptr) return;
  if (plan.fragment != DumpPlan::kNone) {
    dump_fragment(machine, warp, plan, *table);
  } else if (plan.cell != DumpPlan::kNone) {
    dump_cell(warp, plan, *table);
  } else {
    dump_view(machine, warp, plan, *table);
  }
}

}  // namespace kiln::sim
