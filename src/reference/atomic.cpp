#include "reference/atomic.h"

#include <algorithm>
#include <cmath>

#include "ir/functions.h"
#include "reference/machine.h"

namespace kiln::reference {

void Updated::Sum::include(const Number& term) {
  value_ += term.value;
  if (std::isfinite(term.value)) magnitude_ += std::fabs(term.value);
  error_ += term.error;
  whole_ = whole_ && term.error == 0 && term.value == std::trunc(term.value);
}

void Updated::Sum::add(const Update& update) {
  dtype_ = update.dtype;
  include(update.value);
  ++additions_;
  // What is added and what comes out, each.
  flushed_ += 2 * update.flushed;
}

// Each of n additions rounds a partial sum, of which none is larger than all magnitudes together.
Number Updated::Sum::total() const {
  if (std::isnan(error_) || error_ == kUnbounded) return unknown();
  if (magnitude_ + error_ > info(dtype_).max) return unknown();  // some order may overflow
  if (!std::isfinite(value_)) return error_ == 0 ? Number{value_, 0} : unknown();
  if (whole_ && magnitude_ <= integers_exact_up_to(dtype_)) return {value_, 0};
  const auto count = static_cast<double>(additions_);
  const double each =
      (roundoff(dtype_) + roundoff(DType::kF64)) * std::exp(count * roundoff(dtype_));
  const double lost = count * (each * (magnitude_ + error_) + smallest(dtype_) / 2);
  // The first content may be flushed too.
  return {value_, error_ + lost + flushed_ * (1 + 1 / (2 * std::max(count, 1.0)))};
}

// Whether it may come before or after those so far.
bool Updated::joins(const Update& update) const {
  if (!first_) return true;
  if (update.kind != first_->kind) return false;
  return ir::combines(update.kind) ||
         (update.value == first_->value && update.compare == first_->compare);
}

namespace {

// What replaces the content, if anything does.
Number replaced(const Number& content, const Update& update) {
  if (update.kind != target::Atomic::kCas) return update.value;
  const Number equal = apply(ir::BinaryKind::kEq, update.dtype, content, update.compare);
  return choose(equal, update.value, content);
}

}  // namespace

Number Updated::after(const Update& update, const UpdateOrder& order) {
  if (order.phase != order_.phase) *this = Updated(content_, order);
  several_threads_ = several_threads_ || order.thread != order_.thread;
  several_kinds_ = several_kinds_ || !joins(update);
  if (!first_) first_ = update;
  const auto kind = ir::combines(update.kind);
  const bool sums = kind == ir::BinaryKind::kAdd && is_float(update.dtype);
  if (several_threads_ && several_kinds_) {
    content_ = unknown();
  } else if (sums) {
    if (!sum_) sum_.emplace(content_);
    sum_->add(update);
    content_ = sum_->total();
  } else {
    sum_.reset();
    content_ =
        kind ? apply(*kind, update.dtype, content_, update.value) : replaced(content_, update);
  }
  return content_;
}

// Shared memory is one block's: what the block does next comes behind. Blocks are ordered by
// launches alone.
UpdateOrder Machine::order_of(const Memory& memory, const Frame& frame, std::size_t i) const {
  if (!memory.global) return {phase_, {0, frame.count(), i}};
  return {launches_, {outcome_.blocks_run, frame.count(), i}};
}

void Machine::update(Memory& memory, MemoryPlace place, const Update& update,
                     const UpdateOrder& order) {
  const Number before = memory.get(place.slot, place.element);
  const std::size_t key = memory.key(place.slot, place.element);
  auto known = memory.updates.find(key);
  if (known == memory.updates.end()) {
    known = memory.updates.emplace(key, Updated(before, order)).first;
  }
  Updated updated = known->second;
  const Number after = updated.after(update, order);
  if (!unchanged(before, after)) ++changes_;
  memory.set(place.slot, place.element, after);
  memory.updates.insert_or_assign(key, std::move(updated));
}

// What an operation returns another order would change.
void Machine::run(const ir::Atomic& op, ir::ValueId result, Frame& frame) {
  std::vector<Number>& returned = scalars_[result.index];
  returned.assign(frame.count(), unknown());
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
    Memory& memory = *to.memory;
    const Update update{.kind = op.kind,
                        .dtype = memory.dtype,
                        .value = scalar(op.value, frame, i),
                        .compare = op.compare.valid() ? scalar(op.compare, frame, i) : Number{},
                        .flushed = target::flushed_below(op.kind, memory.dtype, memory.global)};
    this->update(memory, {memory.slot_of(i, frame.count()), *element}, update,
                 order_of(memory, frame, i));
  }
}

}  // namespace kiln::reference
