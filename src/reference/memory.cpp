// Memory of the reference interpreter and what moves its elements (see machine.h).
#include <algorithm>
#include <limits>

#include "ir/strides.h"
#include "reference/machine.h"

namespace kiln::reference {

void Memory::create(DType type, std::vector<std::int64_t> extents, std::size_t slot_count,
                    Number initial) {
  KILN_CHECK(extents.size() <= kRankMax, "rank {}", extents.size());
  live = true;
  dtype = type;
  shape = std::move(extents);
  elements = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    stride[d] = static_cast<std::int64_t>(elements);
    elements *= static_cast<std::size_t>(std::max<std::int64_t>(shape[d], 0));
  }
  slots = slot_count;
  values.assign(elements * slots, initial.value);
  errors.clear();
  rests.clear();
  updates.clear();
  if (initial.error != 0) errors.assign(elements * slots, initial.error);
  if (initial.rest != 0) rests.assign(elements * slots, initial.rest);
}

Number Memory::get(std::size_t slot, std::size_t element) const {
  const std::size_t at = slot * elements + element;
  return {values[at], errors.empty() ? 0.0 : errors[at], rests.empty() ? 0.0 : rests[at]};
}

void Memory::set(std::size_t slot, std::size_t element, Number number) {
  const std::size_t at = slot * elements + element;
  values[at] = number.value;
  if (errors.empty() && number.error != 0) errors.assign(values.size(), 0.0);
  if (!errors.empty()) errors[at] = number.error;
  if (rests.empty() && number.rest != 0) rests.assign(values.size(), 0.0);
  if (!rests.empty()) rests[at] = number.rest;
  if (!written.empty()) written[element] = true;
  if (!updates.empty()) updates.erase(key(slot, element));
}

void Memory::grow(std::size_t slot_count) {
  auto spread = [&](std::vector<double>& data) {
    if (data.empty()) return;
    std::vector<double> out;
    out.reserve(elements * slot_count);
    for (std::size_t s = 0; s < slot_count; ++s) {
      const auto begin =
          data.begin() + static_cast<std::ptrdiff_t>(s * slots / slot_count * elements);
      out.insert(out.end(), begin, begin + static_cast<std::ptrdiff_t>(elements));
    }
    data = std::move(out);
  };
  spread(values);
  spread(errors);
  spread(rests);
  slots = slot_count;
}

std::optional<std::size_t> Window::element(const std::int64_t* index) const {
  std::int64_t at = offset;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t coordinate = origin[d] + (d < dropped ? 0 : index[d - dropped]);
    if (coordinate < 0 || coordinate >= limit[d]) return std::nullopt;
    at += coordinate * stride[d];
  }
  if (at < 0 || at >= static_cast<std::int64_t>(memory->elements)) return std::nullopt;
  return static_cast<std::size_t>(at);
}

std::size_t Window::elements_from(const std::int64_t* index, std::int64_t count) const {
  const std::size_t last = rank - 1;
  const std::int64_t first = origin[last] + (last < dropped ? 0 : index[last - dropped]);
  const std::int64_t inside = std::min(count, limit[last] - first);
  const auto begin = element(index);
  if (!begin) return 0;
  const auto end = static_cast<std::int64_t>(*begin) + (inside - 1) * stride[last];
  const bool all = end >= 0 && end < static_cast<std::int64_t>(memory->elements);
  return all ? static_cast<std::size_t>(inside) : 1;
}

std::vector<std::int64_t> Machine::extents(const ir::ViewType& type,
                                           std::span<const std::int64_t> vars) const {
  std::vector<std::int64_t> out;
  for (const ir::Expr& extent : type.shape) out.push_back(extent.evaluate(vars));
  return out;
}

Window Machine::window(ir::ValueId view, std::span<const std::int64_t> vars) {
  std::optional<ir::ResolvedView>& resolved = views_[view.index];
  if (!resolved) resolved = ir::resolve_view(function_, view);
  Window out;
  const ir::ValueId root = resolved->root;
  out.memory = &memories_[ir::storage_of(function_, root).index];
  KILN_CHECK(out.memory->live, "`{}` is used before it exists", function_.values[view].name);
  out.rank = resolved->origin.size();
  out.dropped = resolved->dropped;
  out.stride = out.memory->stride;
  const bool is_alias = function_.def_as<ir::Alias>(root) != nullptr;
  if (is_alias) out.offset = ir::root_offset(function_, root).evaluate(vars);
  const std::vector<ir::Expr> strides =
      is_alias ? ir::root_strides(function_, root) : std::vector<ir::Expr>{};
  for (std::size_t d = 0; d < strides.size(); ++d) out.stride[d] = strides[d].evaluate(vars);
  out.open = is_open(resolved->origin) ||
             (is_alias && (is_open(ir::root_offset(function_, root)) || is_open(strides)));
  for (std::size_t d = 0; d < out.rank; ++d) {
    out.origin[d] = resolved->origin[d].evaluate(vars);
    out.limit[d] = INT64_MAX;
    for (const ir::Expr& limit : resolved->limits[d]) {
      out.limit[d] = std::min(out.limit[d], limit.evaluate(vars));
    }
  }
  const ir::ViewType& type = function_.view_type(view);
  for (std::size_t d = 0; d < type.shape.size(); ++d) out.shape[d] = type.shape[d].evaluate(vars);
  return out;
}

SlotRange Machine::writable(Memory& memory, std::size_t instance, const Frame& frame) const {
  if (!memory.split && memory.slots <= 1) return {0, 1};
  if (memory.split && memory.slots < frame.count()) memory.grow(frame.count());
  return slots_of(memory.slots, instance, frame.count());
}

void Machine::run(const ir::Alloc& op, ir::ValueId result, Frame& frame) {
  const ir::Type& type = function_.type(result);
  const std::size_t count = frame.count();
  auto initial_of = [&](std::size_t i) { return scalar(op.initial, frame, i); };
  if (const auto* frag = std::get_if<ir::FragType>(&type)) {
    fragments_[result.index].type = *frag;
    return;
  }
  if (std::holds_alternative<ir::CellType>(type)) {
    std::vector<Number>& slots = scalars_[result.index];
    if (slots.size() < count) slots.resize(count, unknown());
    for (std::size_t i = 0; i < count && op.initial.valid(); ++i) {
      if (frame.active[i] == 0) continue;
      const SlotRange range = slots_of(slots.size(), i, count);
      std::fill_n(slots.begin() + static_cast<std::ptrdiff_t>(range.first), range.count,
                  initial_of(i));
    }
    return;
  }
  ++changes_;
  const ir::ViewType& view = function_.view_type(result);
  Memory& memory = memories_[result.index];
  if (!memory.live) {
    memory.split = view.space == ir::Space::kLocal;
    memory.global = view.space == ir::Space::kGlobal;
    const std::size_t slots = memory.split ? count : memory.global ? 1 : together_;
    double bytes = 2 * sizeof(double) * static_cast<double>(slots);
    for (const std::int64_t extent : extents(view, frame.vars[0])) {
      bytes *= static_cast<double>(extent);
    }
    if (!afford(result, bytes)) return;
    // A fresh device buffer is garbage until it is written.
    memory.create(view.dtype, extents(view, frame.vars[0]), slots, unknown());
    watch_output(result);
  }
  for (std::size_t i = 0; i < count && op.initial.valid(); ++i) {
    if (frame.active[i] == 0) continue;
    const SlotRange range = writable(memory, i, frame);
    for (std::size_t s = range.first; s < range.first + range.count; ++s) {
      for (std::size_t e = 0; e < memory.elements; ++e) memory.set(s, e, initial_of(i));
    }
  }
}

namespace {

// What an element is that copies fill with bits of 0: in f8_ue8m0, which has no zero, 2^-127.
Number zero_bits(DType dtype) { return {decode(dtype, 0), 0}; }

// Of a bulk copy to an element of global memory.
Update addition(const Number& number, DType dtype) {
  constexpr auto kAdd = target::Atomic::kAdd;
  return {.kind = kAdd,
          .dtype = dtype,
          .value = number,
          .compare = {},
          .flushed = target::flushed_below(kAdd, dtype, true)};
}

// Elements of a window; the most there is when they are more than can be counted.
std::size_t elements_of(const Window& window) {
  std::size_t elements = 1;
  for (std::size_t d = 0; d < window.rank - window.dropped; ++d) {
    const auto extent = static_cast<std::size_t>(std::max<std::int64_t>(window.shape[d], 0));
    if (__builtin_mul_overflow(elements, extent, &elements)) {
      return std::numeric_limits<std::size_t>::max() / 2;
    }
  }
  return elements;
}

}  // namespace

void Machine::copy_tile(const Sides& sides, const std::vector<std::int64_t>& permutation,
                        const std::optional<UpdateOrder>& added) {
  const Window& from = sides.from;
  const Window& to = sides.to;
  const std::size_t rank = to.rank - to.dropped;
  Coordinates at{};
  for (std::size_t d = 0; d < rank; ++d) {
    if (to.shape[d] <= 0) return;
  }
  while (true) {
    Coordinates there = at;
    for (std::size_t d = 0; d < permutation.size(); ++d) {
      there[static_cast<std::size_t>(permutation[d])] = at[d];
    }
    bool inside = true;
    for (std::size_t d = 0; d < rank; ++d) inside = inside && there[d] < from.shape[d];
    const auto source = inside ? from.element(there.data()) : std::nullopt;
    const Number number = from.open ? unknown()
                          : source  ? from.memory->get(sides.from_slot, *source)
                                    : zero_bits(to.memory->dtype);
    const auto target = to.element(at.data());
    if (target && added) {
      update(*to.memory, {0, *target}, addition(number, to.memory->dtype), *added);
    } else if (target) {
      for (std::size_t s = 0; s < sides.to_slots.count; ++s) {
        to.memory->set(sides.to_slots.first + s, *target, number);
      }
    }
    std::size_t d = rank;
    while (d > 0 && ++at[d - 1] == to.shape[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

void Machine::run(const ir::Copy& op, ir::OpId id, Frame& frame) {
  std::optional<Sides> last;
  std::size_t last_unit = 0;
  const std::size_t threads =
      op.unit != 0 ? static_cast<std::size_t>(op.unit) : frame.count() / together_;
  for (std::size_t i = 0; i < frame.count(); ++i) {
    if (frame.active[i] == 0) continue;
    Sides sides;
    sides.to = window(op.dst, frame.vars[i]);
    sides.to_slots = writable(*sides.to.memory, i, frame);
    sides.from = window(op.src, frame.vars[i]);
    sides.from_slot = sides.from.memory->slot_of(i, frame.count());
    // Lanes that all start one copy make it once; the same number may be added by several units.
    const bool again = last == sides && (!op.adds || last_unit == i / threads);
    if (again && sides.from.memory != sides.to.memory) continue;
    spend(id, elements_of(sides.to));
    if (returned_) return;
    if (sides.to.open) {
      sides.to.memory->forget();
      return;
    }
    copy_tile(sides, op.permutation,
              op.adds ? std::optional(order_of(*sides.to.memory, frame, i)) : std::nullopt);
    last = sides;
    last_unit = i / threads;
  }
}

void Machine::run(const ir::Splat& op, ir::OpId id, Frame& frame) {
  for (std::size_t i = 0; i < frame.count(); ++i) {
    if (frame.active[i] == 0) continue;
    const Window to = window(op.view, frame.vars[i]);
    const std::size_t elements = elements_of(to);
    spend(id, elements);
    if (returned_) return;
    if (to.open) return to.memory->forget();
    const SlotRange slots = writable(*to.memory, i, frame);
    const Number number = scalar(op.value, frame, i);
    const std::size_t rank = to.rank - to.dropped;
    for (std::size_t e = 0; e < elements; ++e) {
      Coordinates at{};
      auto rest = static_cast<std::int64_t>(e);
      for (std::size_t d = rank; d-- > 0; rest /= to.shape[d]) at[d] = rest % to.shape[d];
      const auto element = to.element(at.data());
      for (std::size_t s = 0; element && s < slots.count; ++s) {
        to.memory->set(slots.first + s, *element, number);
      }
    }
  }
}

std::optional<std::size_t> Machine::block_in_cluster(const std::vector<ir::Expr>& block,
                                                     std::span<const std::int64_t> vars) const {
  std::int64_t number = 0;
  for (std::size_t axis = 0; axis < block.size(); ++axis) {
    const std::int64_t at = block[axis].evaluate(vars);
    if (at < 0 || at >= cluster_[axis]) return std::nullopt;
    number = number * cluster_[axis] + at;
  }
  return static_cast<std::size_t>(number);
}

Number Machine::read(const ir::Read& op, const Frame& frame, std::size_t instance) {
  const std::span<const std::int64_t> vars = frame.vars[instance];
  const Window from = window(op.view, vars);
  if (from.open || is_open(op.index) || is_open(op.block)) return unknown();
  Coordinates index{};
  for (std::size_t d = 0; d < op.index.size(); ++d) index[d] = op.index[d].evaluate(vars);
  const auto element = from.element(index.data());
  if (!element) {
    ++outcome_.outside_accesses;
    return unknown();
  }
  const Memory& memory = *from.memory;
  if (op.block.empty()) return memory.get(memory.slot_of(instance, frame.count()), *element);
  const auto block = block_in_cluster(op.block, vars);
  if (!block) {
    ++outcome_.outside_accesses;
    return unknown();
  }
  return memory.get(memory.slots <= 1 ? 0 : *block, *element);
}

void Machine::run(const ir::Write& op, Frame& frame) {
  for (std::size_t i = 0; i < frame.count(); ++i) {
    if (frame.active[i] == 0) continue;
    const Window to = window(op.view, frame.vars[i]);
    if (to.open || is_open(op.index)) return to.memory->forget();
    Coordinates index{};
    for (std::size_t d = 0; d < op.index.size(); ++d) {
      index[d] = op.index[d].evaluate(frame.vars[i]);
    }
    const auto element = to.element(index.data());
    if (!element) {
      ++outcome_.outside_accesses;
      continue;
    }
    const Number number = scalar(op.value, frame, i);
    const SlotRange range = writable(*to.memory, i, frame);
    for (std::size_t s = 0; s < range.count; ++s) {
      if (!unchanged(to.memory->get(range.first + s, *element), number)) ++changes_;
      to.memory->set(range.first + s, *element, number);
    }
  }
}

}  // namespace kiln::reference
