// Tiles in registers and what is done with them, in the reference interpreter (see machine.h).
#include <algorithm>
#include <cmath>

#include "ir/strides.h"
#include "reference/machine.h"
#include "reference/multiply.h"
#include "reference/reduce.h"

namespace kiln::reference {

namespace {

constexpr double kFp64Roundoff = 0x1p-53;

// Numbers from 2^52 on have no fractions.
bool is_integer_value(double v) {
  if (!(std::fabs(v) < 0x1p52)) return std::isfinite(v);
  return static_cast<double>(static_cast<std::int64_t>(v)) == v;
}

bool all_integers(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), is_integer_value);
}

// Starts the slot's sums anew, from 0.
void clear(Fragments::Slot& slot, std::size_t count) {
  Fragments::Slot fresh;
  for (auto vector : {&Fragments::Slot::value, &Fragments::Slot::magnitude, &Fragments::Slot::error,
                      &Fragments::Slot::lost, &Fragments::Slot::peak}) {
    (fresh.*vector).swap(slot.*vector);  // its memory
    (fresh.*vector).assign(count, 0);
  }
  fresh.clean = true;
  slot = std::move(fresh);
}

void begin_with(Fragments::Slot& slot, std::size_t i, Number number) {
  slot.value[i] = number.value;
  slot.magnitude[i] = std::isfinite(number.value) ? std::fabs(number.value) : 0;
  slot.error[i] = number.error;
  slot.clean = slot.clean && number.error == 0;
}

// Starts the slot's sums anew from numbers given by `element(index)`.
template <class Element>
void restart(Fragments::Slot& slot, std::size_t count, Element&& element) {
  clear(slot, count);
  for (std::size_t i = 0; i < count; ++i) begin_with(slot, i, element(i));
  slot.integral = all_integers(slot.value);
}

}  // namespace

void Fragments::grow(std::size_t slot_count) {
  if (slots.empty()) {
    const auto count = static_cast<std::size_t>(type.rows * type.cols);
    slots.resize(slot_count);
    for (Slot& slot : slots) restart(slot, count, [](std::size_t) { return unknown(); });
    return;
  }
  std::vector<Slot> grown;
  grown.reserve(slot_count);
  for (std::size_t s = 0; s < slot_count; ++s) {
    grown.push_back(slots[s * slots.size() / slot_count]);
  }
  slots = std::move(grown);
}

Number Fragments::get(const Slot& slot, std::size_t index) const {
  const double value = slot.value[index];
  const double magnitude = slot.magnitude[index];
  const double error = slot.error[index];
  if (slot.steps == 0) return {value, error};
  // Sums of integers wrap, and wrapping them once at the end is the same.
  if (!is_float(type.dtype) && error == 0 && magnitude < 0x1p53) {
    return from_bits(type.dtype, static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
  }
  // Sums of integers that nothing has rounded: what the roundings may have lost does not count.
  const double exact_limit = std::min(slot.exact_integers, integers_exact_up_to(type.dtype));
  const bool whole = is_float(type.dtype) && slot.integral && std::isfinite(value);
  if (error == 0 && whole && magnitude <= exact_limit) return {value, 0};
  // A partial sum may have overflowed, or in f64 a product: nothing can be promised.
  const bool overflows = slot.peak[index] > info(type.dtype).max || !std::isfinite(magnitude);
  if (overflows || error == kUnbounded) return {value, kUnbounded};
  if (!std::isfinite(value)) return {value, 0};
  const double u = slot.roundoff;
  if (!is_float(type.dtype)) return {value, error};
  // Two bounds, both right: with the magnitudes of all products at each step, or with the partial
  // sums as they were.
  const auto steps = static_cast<double>(slot.steps);
  const double floor = 2 * smallest(type.dtype);
  const double in_any_order = (steps + 2) * (u * magnitude + smallest(type.dtype));
  const double in_order = slot.lost[index] + 2 * u * std::fabs(value) + floor;
  const double ours = static_cast<double>(slot.products) * kFp64Roundoff * magnitude;
  return {value, std::min(in_any_order, in_order) + ours + error};
}

double Fragments::step_share(const Slot& slot) {
  if (slot.steps == 0) return kUnbounded;
  double magnitudes = 0;
  double squares = 0;
  for (std::size_t i = 0; i < slot.value.size(); ++i) {
    if (!std::isfinite(slot.value[i]) || !std::isfinite(slot.magnitude[i])) continue;
    magnitudes += slot.magnitude[i];
    squares += slot.value[i] * slot.value[i];
  }
  if (magnitudes == 0 || squares == 0) return kUnbounded;
  const auto count = static_cast<double>(slot.value.size());
  // A step's products have signs of their own: of n the sum is about sqrt(n) times one of them.
  const double step =
      magnitudes / count / static_cast<double>(slot.steps) / std::sqrt(std::max(slot.spread, 1.0));
  return step / std::sqrt(squares / count);
}

bool Fragments::is_short(const Slot& slot) {
  if (slot.steps == 0) return true;
  return std::all_of(slot.value.begin(), slot.value.end(), [](double value) {
    return !std::isfinite(value) || round_to(DType::kBF16, value) == value;
  });
}

void Machine::observe(const Fragments::Slot& sums) {
  outcome_.step_share = std::min(outcome_.step_share, Fragments::step_share(sums));
  outcome_.long_sums = outcome_.long_sums || !Fragments::is_short(sums);
}

void Fragments::settle(Slot& slot) const {
  if (slot.steps == 0) return;
  for (std::size_t i = 0; i < slot.value.size(); ++i) {
    const Number number = get(slot, i);
    slot.value[i] = number.value;
    slot.error[i] = number.error;
    slot.magnitude[i] = std::isfinite(number.value) ? std::fabs(number.value) : 0;
    slot.lost[i] = 0;
    slot.peak[i] = 0;
  }
  slot.steps = 0;
  slot.products = 0;
  slot.roundoff = 0;
  slot.integral = false;
  slot.clean = false;
}

// The element of a tile that belongs to the place that the apply is at: instances count the places
// within the units' instances.
Machine::HeldElement Machine::held(ir::ValueId frag, const Frame& frame, std::size_t instance) {
  Fragments& fragments = fragments_[frag.index];
  const ir::FragType& type = fragments.type;
  const ir::FragType& around = fragments_[applied_.index].type;
  const auto elements = static_cast<std::size_t>(around.rows * around.cols);
  const std::size_t units = frame.count() / elements;
  const SlotRange slots = slots_of(fragments.slots.size(), instance / elements, units);
  const auto place = static_cast<std::int64_t>(instance % elements);
  const std::int64_t row = type.rows == 1 ? 0 : place / around.cols;
  const std::int64_t col = type.cols == 1 ? 0 : place % around.cols;
  return {&fragments.slots[slots.first], static_cast<std::size_t>(row * type.cols + col)};
}

Number Machine::element(const ir::Element& op, const Frame& frame, std::size_t instance) {
  const HeldElement at = held(op.frag, frame, instance);
  return fragments_[op.frag.index].get(*at.slot, at.index);
}

void Machine::run(const ir::SetElement& op, Frame& frame) {
  for (std::size_t i = 0; i < frame.count(); ++i) {
    if (frame.active[i] == 0) continue;
    const HeldElement at = held(op.frag, frame, i);
    const Number number = scalar(op.value, frame, i);
    at.slot->value[at.index] = number.value;
    at.slot->error[at.index] = number.error;
    at.slot->magnitude[at.index] = std::isfinite(number.value) ? std::fabs(number.value) : 0;
    at.slot->clean = at.slot->clean && number.error == 0;
    at.slot->integral = false;
  }
}

template <class Act>
void Machine::each_line(ir::ValueId frag, ir::ValueId source, std::int64_t dimension, Frame& frame,
                        Act&& act) {
  Fragments& to = fragments_[frag.index];
  Fragments& from = fragments_[source.index];
  const std::size_t count = frame.count();
  for (Fragments* fragments : {&to, &from}) {
    if (fragments->slots.size() < count) fragments->grow(count);
  }
  const std::int64_t lines = dimension == 1 ? from.type.rows : from.type.cols;
  const std::int64_t length = dimension == 1 ? from.type.cols : from.type.rows;
  std::vector<Number> numbers(static_cast<std::size_t>(length));
  for (std::size_t i = 0; i < count; ++i) {
    if (frame.active[i] == 0) continue;
    const Fragments::Slot& read = from.slots[slots_of(from.slots.size(), i, count).first];
    observe(read);
    Fragments::Slot fresh;
    clear(fresh, static_cast<std::size_t>(to.type.rows * to.type.cols));
    for (std::int64_t line = 0; line < lines; ++line) {
      for (std::int64_t k = 0; k < length; ++k) {
        const std::int64_t at =
            dimension == 1 ? line * from.type.cols + k : k * from.type.cols + line;
        numbers[static_cast<std::size_t>(k)] = from.get(read, static_cast<std::size_t>(at));
      }
      act(fresh, line, numbers);
    }
    const SlotRange range = slots_of(to.slots.size(), i, count);
    for (std::size_t s = 0; s < range.count; ++s) to.slots[range.first + s] = fresh;
  }
}

void Machine::run(const ir::Reduce& op, Frame& frame) {
  const DType result = fragments_[op.frag.index].type.dtype;
  const DType source = fragments_[op.source.index].type.dtype;
  each_line(op.frag, op.source, op.dimension, frame,
            [&](Fragments::Slot& slot, std::int64_t line, const std::vector<Number>& numbers) {
              begin_with(slot, static_cast<std::size_t>(line),
                         reduce(op.kind, source, result, numbers));
            });
}

void Machine::run(const ir::Scan& op, Frame& frame) {
  const DType result = fragments_[op.frag.index].type.dtype;
  const DType source = fragments_[op.source.index].type.dtype;
  const std::int64_t cols = fragments_[op.frag.index].type.cols;
  each_line(
      op.frag, op.source, op.dimension, frame,
      [&](Fragments::Slot& slot, std::int64_t line, const std::vector<Number>& numbers) {
        for (std::size_t k = 0; k < numbers.size(); ++k) {
          const auto place = static_cast<std::int64_t>(k);
          const std::int64_t at = op.dimension == 1 ? line * cols + place : place * cols + line;
          begin_with(slot, static_cast<std::size_t>(at),
                     reduce(ir::ReduceKind::kSum, source, result, std::span(numbers).first(k + 1)));
        }
      });
}

// All of a unit's rows are asked, and whole sums: a program is right whichever of its warps say yes, and of a number that is
// not known exactly either answer will do.
void Machine::run(const ir::Vote& op, ir::ValueId result, Frame& frame) {
  const Fragments& tile = fragments_[op.frag.index];
  std::vector<Number>& slots = scalars_[result.index];
  slots.assign(frame.count(), unknown());
  const auto elements = static_cast<std::size_t>(tile.type.rows * tile.type.cols);
  std::vector<std::optional<Number>> votes(tile.slots.size());
  for (std::size_t i = 0; i < frame.count(); ++i) {
    if (frame.active[i] == 0 || tile.slots.empty()) continue;
    const std::size_t slot = slots_of(tile.slots.size(), i, frame.count()).first;
    std::optional<Number>& vote = votes[slot];
    if (!vote) {
      vote = Number{0, 0};
      for (std::size_t at = 0; at < elements && vote->value == 0; ++at) {
        const Number number = tile.get(tile.slots[slot], at);
        if (number.error == kUnbounded) {
          vote = unknown();
        } else if (number.value != 0) {
          vote = Number{1, 0};
        }
      }
    }
    slots[i] = *vote;
  }
}

void Machine::run(const ir::Convert& op, Frame& frame) {
  Fragments& to = fragments_[op.frag.index];
  Fragments& from = fragments_[op.source.index];
  const std::size_t count = frame.count();
  for (Fragments* fragments : {&to, &from}) {
    if (fragments->slots.size() < count) fragments->grow(count);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (frame.active[i] == 0) continue;
    Fragments::Slot copied = from.slots[slots_of(from.slots.size(), i, count).first];
    from.settle(copied);
    copied.clean = std::ranges::all_of(copied.error, [](double error) { return error == 0; });
    copied.integral = all_integers(copied.value);
    if (to.type.dtype != from.type.dtype) {  // f32 that becomes an operand
      const Fragments::Slot before = copied;
      restart(copied, before.value.size(), [&](std::size_t at) {
        return convert(from.get(before, at), from.type.dtype, to.type.dtype);
      });
    }
    const SlotRange range = slots_of(to.slots.size(), i, count);
    for (std::size_t s = 0; s < range.count; ++s) to.slots[range.first + s] = copied;
  }
}

void Machine::run(const ir::Recast& op, Frame& frame) {
  const ir::FragType to = fragments_[op.frag.index].type;
  const DType source = fragments_[op.source.index].type.dtype;
  each_line(op.frag, op.source, 1, frame,
            [&](Fragments::Slot& slot, std::int64_t row, const std::vector<Number>& numbers) {
              for (std::int64_t col = 0; col < to.cols; ++col) {
                const auto at = static_cast<std::size_t>(col);
                begin_with(slot, static_cast<std::size_t>(row * to.cols + col),
                           recast(numbers, source, to.dtype, at));
              }
              if (row + 1 == to.rows) slot.integral = all_integers(slot.value);
            });
}

void Machine::run(const ir::Fill& op, Frame& frame) {
  Fragments& fragments = fragments_[op.frag.index];
  if (fragments.slots.size() < frame.count()) fragments.grow(frame.count());
  const auto elements = static_cast<std::size_t>(fragments.type.rows * fragments.type.cols);
  for (std::size_t i = 0; i < frame.count(); ++i) {
    if (frame.active[i] == 0) continue;
    const Number number = scalar(op.value, frame, i);
    const SlotRange range = slots_of(fragments.slots.size(), i, frame.count());
    for (std::size_t s = 0; s < range.count; ++s) {
      restart(fragments.slots[range.first + s], elements, [&](std::size_t) { return number; });
    }
  }
}

namespace {

struct Extents {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};

// A tile in the type that it has in memory: row by row.
void load_rows(Fragments::Slot& to, const Window& from, std::size_t memory_slot,
               const Extents& tile) {
  clear(to, static_cast<std::size_t>(tile.rows * tile.cols));
  const std::int64_t stride = from.stride[from.rank - 1];
  for (std::int64_t at = 0; at < tile.rows * tile.cols;) {
    const std::int64_t row = at / tile.cols;
    const std::array<std::int64_t, 2> index{row, at % tile.cols};
    const std::size_t count = from.elements_from(index.data(), tile.cols - index[1]);
    auto place = count == 0 ? 0 : static_cast<std::int64_t>(*from.element(index.data()));
    for (std::size_t i = 0; i < count; ++i, place += stride) {
      begin_with(to, static_cast<std::size_t>(at) + i,
                 from.memory->get(memory_slot, static_cast<std::size_t>(place)));
    }
    at += count == 0 ? 1 : static_cast<std::int64_t>(count);
  }
  to.integral = all_integers(to.value);
}

}  // namespace

void Machine::run(const ir::Load& op, Frame& frame) {
  Fragments& fragments = fragments_[op.frag.index];
  // The tensor cores take f32 operands as tf32. Operands that stay f32 are read in place.
  const ir::Role role = fragments.type.role;
  const bool cut_off =
      (role == ir::Role::kA || role == ir::Role::kB) && fragments.type.dtype == DType::kF32;
  if (fragments.slots.size() < frame.count()) fragments.grow(frame.count());
  const std::int64_t cols = fragments.type.cols;
  const auto elements = static_cast<std::size_t>(fragments.type.rows * cols);
  for (std::size_t i = 0; i < frame.count(); ++i) {
    if (frame.active[i] == 0) continue;
    const Window from = window(op.view, frame.vars[i]);
    const std::size_t slot = from.memory->slot_of(i, frame.count());
    auto element = [&](std::size_t at) {
      const Coordinates index{static_cast<std::int64_t>(at) / cols,
                              static_cast<std::int64_t>(at) % cols};
      const auto place = from.element(index.data());
      if (from.open) return unknown();
      if (!place) return Number{};
      Number number =
          convert(from.memory->get(slot, *place), from.memory->dtype, fragments.type.dtype);
      if (cut_off) number.value = cut_to_tf32(number.value);
      return number;
    };
    const SlotRange range = slots_of(fragments.slots.size(), i, frame.count());
    const bool plain = from.memory->dtype == fragments.type.dtype && !cut_off && !from.open;
    for (std::size_t s = range.first; s < range.first + range.count; ++s) {
      if (plain && from.rank - from.dropped == 2) {
        load_rows(fragments.slots[s], from, slot, {fragments.type.rows, cols});
      } else {
        restart(fragments.slots[s], elements, element);
      }
    }
  }
}

namespace {

Rounding rounding_of(const Accumulation& numerics, std::size_t products, DType accumulator) {
  const std::int64_t depth = std::max<std::int64_t>(numerics.depth, 1);
  const auto steps = static_cast<double>((static_cast<std::int64_t>(products) + depth - 1) / depth);
  return {.roundoff = numerics.roundoff,
          .floor = smallest(accumulator),
          .steps = steps,
          .growth = std::pow(1 + numerics.roundoff, steps)};
}

}  // namespace

void Machine::run(const ir::Mma& op, ir::OpId id, Frame& frame) {
  Fragments& c = fragments_[op.c.index];
  Fragments& a = fragments_[op.a.index];
  Fragments& b = fragments_[op.b.index];
  const Accumulation numerics = numerics_(id);
  const std::size_t count = frame.count();
  for (Fragments* fragments : {&a, &b, &c}) {
    if (fragments->slots.size() < count) fragments->grow(count);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (frame.active[i] == 0) continue;
    const Operand left =
        operand_of(a, a.slots[slots_of(a.slots.size(), i, count).first], op.a_major);
    const Operand right =
        operand_of(b, b.slots[slots_of(b.slots.size(), i, count).first], op.b_major);
    KILN_CHECK(left.outer * right.outer == static_cast<std::size_t>(c.type.rows * c.type.cols),
               "a product of {}x{} into {}x{}", left.outer, right.outer, c.type.rows, c.type.cols);
    const Rounding by = rounding_of(numerics, left.depth, c.type.dtype);
    const SlotRange range = slots_of(c.slots.size(), i, count);
    for (std::size_t s = range.first; s < range.first + range.count; ++s) {
      if (op.metadata.valid()) {
        Fragments& metadata = fragments_[op.metadata.index];
        metadata.narrow_words = info(a.type.dtype).bits == 8;
        const std::size_t slot = slots_of(metadata.slots.size(), i, count).first;
        const bool wide = info(a.type.dtype).bits == 32;
        multiply_sparse(c.slots[s], left, right, {metadata, metadata.slots[slot], wide}, by);
      } else {
        multiply(c.slots[s], left, right, by);
      }
      c.slots[s].steps += static_cast<std::int64_t>(by.steps);
      c.slots[s].spread =
          std::max(c.slots[s].spread, static_cast<double>(left.depth) / std::max(by.steps, 1.0));
      c.slots[s].roundoff = std::max(c.slots[s].roundoff, numerics.roundoff);
      c.slots[s].exact_integers = std::min(c.slots[s].exact_integers, numerics.exact_integers);
    }
  }
}

void Machine::run(const ir::Store& op, Frame& frame) {
  Fragments& fragments = fragments_[op.frag.index];
  if (fragments.slots.size() < frame.count()) fragments.grow(frame.count());
  const std::int64_t rows = fragments.type.rows;
  const std::int64_t cols = ir::stored_columns(function_, op);
  for (std::size_t i = 0; i < frame.count(); ++i) {
    if (frame.active[i] == 0) continue;
    const Window to = window(op.view, frame.vars[i]);
    if (to.open) return to.memory->forget();
    const SlotRange targets = writable(*to.memory, i, frame);
    const Fragments::Slot& slot =
        fragments.slots[slots_of(fragments.slots.size(), i, frame.count()).first];
    observe(slot);
    for (std::int64_t at = 0; at < rows * cols; ++at) {
      const std::int64_t row = at / cols;
      const std::int64_t col = at % cols;
      const Coordinates index = op.transposed ? Coordinates{col, row} : Coordinates{row, col};
      // A view smaller than the tile takes only its own elements.
      if (index[0] >= to.shape[0] || index[1] >= to.shape[1]) continue;
      const auto element = to.element(index.data());
      if (!element) continue;
      const std::int64_t held = row * fragments.type.cols + col + op.first_column;
      const Number number = convert(fragments.get(slot, static_cast<std::size_t>(held)),
                                    fragments.type.dtype, to.memory->dtype);
      for (std::size_t s = 0; s < targets.count; ++s) {
        to.memory->set(targets.first + s, *element, number);
      }
    }
  }
}

namespace {

// What an f32 loses of a product because it ends below its least normal number.
double below_normal(double product) {
  const bool normal = std::fabs(product) >= 0x1p-126;
  return normal || product == 0 ? 0 : smallest(DType::kF32) / 2;
}

// Two roundings in f32: of the product of the factors, and of the multiply-add, which is counted
// where it is added. Of infinite parts a factor that is rounded to 0 makes a NaN.
constexpr double kScaleRoundoff = 0x1p-24;

Term scaled_part(const Number& factor, const Number& scalar, const Number& part) {
  const double scale = factor.value * scalar.value;
  const double product = scale * part.value;
  if (!std::isfinite(product)) {
    const bool exact = factor.error == 0 && scalar.error == 0 && part.error == 0;
    return {round_to(DType::kF32, scale) * part.value, 0, exact ? 0 : kUnbounded};
  }
  const double magnitude = std::fabs(product);
  const double factors =
      std::fabs(factor.value) * scalar.error + std::fabs(scalar.value) * factor.error;
  const double error = std::fabs(scale) * part.error + kScaleRoundoff * magnitude +
                       below_normal(scale) * std::fabs(part.value) + below_normal(product) +
                       factors * std::fabs(part.value);
  return {product, magnitude, std::isnan(error) ? kUnbounded : error};
}

}  // namespace

void Machine::run(const ir::Scale& op, Frame& frame) {
  Fragments& c = fragments_[op.c.index];
  Fragments& partial = fragments_[op.partial.index];
  const std::size_t count = frame.count();
  for (Fragments* fragments : {&c, &partial}) {
    if (fragments->slots.size() < count) fragments->grow(count);
  }
  const std::int64_t cols = c.type.cols;
  // Of the sum: to f32, then to the accumulator's type.
  const double roundoff =
      kScaleRoundoff + (c.type.dtype == DType::kF16 ? 0x1p-11 + kScaleRoundoff : 0);
  const Rounding by = rounding_of({.roundoff = roundoff}, 1, c.type.dtype);
  for (std::size_t i = 0; i < count; ++i) {
    if (frame.active[i] == 0) continue;
    const Window from = window(op.factors, frame.vars[i]);
    const std::size_t memory_slot = from.memory->slot_of(i, count);
    const Number scalar_factor = scalar(op.factor, frame, i);
    Fragments::Slot& sums = c.slots[slots_of(c.slots.size(), i, count).first];
    const Fragments::Slot& parts = partial.slots[slots_of(partial.slots.size(), i, count).first];
    for (std::int64_t at = 0; at < c.type.rows * cols; ++at) {
      const std::int64_t row = at / cols;
      const bool upright = from.shape[1] == 1;
      const Coordinates index = upright ? Coordinates{row, 0} : Coordinates{0, row};
      const auto place = from.element(index.data());
      const Number factor = place ? from.memory->get(memory_slot, *place) : Number{};
      const Number part = partial.get(parts, static_cast<std::size_t>(at));
      const Term scaled = scaled_part(factor, scalar_factor, part);
      const auto element = static_cast<std::size_t>(at);
      const double before = sums.value[element];
      sums.value[element] += scaled.product;
      sums.magnitude[element] += scaled.magnitude;
      sums.error[element] += scaled.error;
      sums.round(element, before, scaled.magnitude, by);
    }
    ++sums.steps;
    sums.spread = std::max(sums.spread, static_cast<double>(parts.steps));
    sums.products += parts.products;
    sums.roundoff = std::max(sums.roundoff, roundoff);
    const double exact = c.type.dtype == DType::kF16 ? 0x1p11 : 0x1p24;
    sums.exact_integers = std::min({sums.exact_integers, parts.exact_integers, exact});
    sums.clean = false;
    sums.integral = false;
  }
}

}  // namespace kiln::reference
