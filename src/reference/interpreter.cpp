#include "reference/interpreter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "ir/effects.h"
#include "ir/loop_around.h"
#include "ir/reflect.h"
#include "reference/machine.h"

namespace kiln::reference {

namespace {

using Vars = std::span<const std::int64_t>;

bool any(const std::vector<std::uint8_t>& mask) {
  return std::any_of(mask.begin(), mask.end(), [](std::uint8_t active) { return active != 0; });
}

std::uint64_t bits_of(const Tensor& tensor, std::size_t element) {
  std::uint64_t bits = 0;
  const auto size = static_cast<std::size_t>(size_bytes(tensor.dtype));
  std::memcpy(&bits, tensor.bytes.data() + element * size, size);
  return bits;
}

// Those that left only the last trip of the loop take part in the next one.
void end_trip(Frame& frame) {
  for (Frame::Out& out : frame.out) {
    if (out == Frame::Out::kOfTrip) out = Frame::Out::kNo;
  }
}

}  // namespace

SlotRange slots_of(std::size_t slots, std::size_t instance, std::size_t instances) {
  const std::size_t first = instance * slots / instances;
  return {first, std::max<std::size_t>(slots / instances, 1)};
}

Machine::Machine(const ir::Function& function, const ir::Arguments& arguments,
                 const Numerics& numerics, const Limits& limits, bool in_parts)
    : function_(function),
      arguments_(arguments),
      numerics_(numerics),
      limits_(limits),
      memories_(function.values.size()),
      fragments_(function.values.size()),
      scalars_(function.values.size()),
      views_(function.values.size()),
      regions_(function, in_parts) {
  for (const OutputSlot& slot : output_slots(function)) outputs_.push_back(slot.value);
  ir::walk(function, function.body, [&](ir::OpId id) {
    const auto* parallel = std::get_if<ir::Parallel>(&function.ops[id].data);
    if (parallel == nullptr || parallel->level == ir::Level::kBlock) return;
    for (const ir::VarId var : parallel->vars) {
      unit_vars_.insert(var.index);
      if (parallel->level == ir::Level::kThread) lane_vars_.insert(var.index);
    }
  });
}

Outcome Machine::run() {
  Frame host;
  std::vector<std::int64_t> known = arguments_.vars;
  known.resize(function_.vars.size());
  host.vars.add(known);
  host.active.push_back(1);
  load_parameters();
  run_region(function_.body, host);
  collect_outputs();
  return std::move(outcome_);
}

void Machine::load_parameters() {
  for (std::size_t i = 0; i < function_.params.size(); ++i) {
    const ir::Param& param = function_.params[i];
    if (!param.value.valid()) continue;
    const std::size_t slot = param.value.index;
    const ir::Arguments::Value& argument = arguments_.params[i];
    if (const auto* view = std::get_if<ir::ViewType>(&function_.type(param.value))) {
      const Tensor& tensor = argument.tensor;
      KILN_CHECK(tensor.shape == extents(*view, arguments_.vars), "argument `{}` has shape {}",
                 param.name, shape_text(tensor.shape));
      memories_[slot].create(view->dtype, tensor.shape, 1, Number{});
      memories_[slot].global = true;
      watch_output(param.value);
      const bool wide = is_integer(tensor.dtype) && size_bytes(tensor.dtype) == 8;
      for (std::size_t e = 0; e < memories_[slot].elements; ++e) {
        if (!wide) {
          memories_[slot].values[e] = tensor.get(e);
          continue;
        }
        memories_[slot].set(0, e, from_bits(tensor.dtype, bits_of(tensor, e)));
      }
    } else if (param.var.valid()) {
      scalars_[slot] = {exactly(split(arguments_.vars[param.var.index]))};
    } else {
      scalars_[slot] = {Number{argument.scalar, 0}};
    }
  }
}

// Of a sample of blocks nothing is known but what they write.
void Machine::watch_output(ir::ValueId value) {
  if (limits_.blocks.empty() || std::ranges::find(outputs_, value) == outputs_.end()) return;
  Memory& memory = memories_[value.index];
  memory.written.assign(memory.elements, false);
}

void Machine::add_output(const OutputSlot& slot) {
  const ir::ValueId value = slot.value;
  Output output;
  output.param = slot.param;
  output.name = slot.name;
  const ir::Type& type = function_.type(value);
  if (std::holds_alternative<ir::ViewType>(type)) {
    const Memory& memory = memories_[value.index];
    output.dtype = memory.dtype;
    output.shape = memory.shape;
    output.expected = memory.values;
    output.bound = memory.errors.empty() ? std::vector<double>(memory.elements) : memory.errors;
    output.rest = memory.rests;
    output.known = memory.written;
    for (std::size_t i = 0; i < output.known.size(); ++i) {
      if (output.known[i]) continue;
      output.expected[i] = unknown().value;
      output.bound[i] = kUnbounded;
    }
  } else if (returned_number_) {
    const auto* scalar_type = std::get_if<ir::ScalarType>(&type);
    output.dtype = scalar_type != nullptr ? scalar_type->dtype : DType::kF32;
    output.expected = {returned_number_->value};
    output.bound = {returned_number_->error};
  }
  if (!outcome_.stuck_at.empty()) output.bound.assign(output.expected.size(), kUnbounded);
  outcome_.outputs.push_back(std::move(output));
}

void Machine::collect_outputs() {
  for (const OutputSlot& slot : output_slots(function_)) {
    if (slot.param || returned_) add_output(slot);
  }
}

void Machine::run_region(ir::RegionId region, Frame& frame) {
  for (const ir::OpId id : function_.regions[region].ops) {
    if (returned_ || !any(frame.active)) return;
    join_before(id);
    spend(id, frame.count() / regions_.parts_now());
    if (returned_) return;
    run_op(id, frame);
    note_change(function_.ops[id].kind());
  }
}

void Machine::run_op(ir::OpId id, Frame& frame) {
  const ir::Op& op = function_.ops[id];
  switch (ir::traits(op.kind()).sort) {
    case ir::Sort::kStructure: return run_structure(id, frame);
    case ir::Sort::kJump: return run_jump(op, frame);
    // Windows are evaluated where they are used.
    case ir::Sort::kName:
      if (const auto* alloc = std::get_if<ir::Alloc>(&op.data)) run(*alloc, op.result, frame);
      return;
    case ir::Sort::kFetch:
      if (const auto* atomic = std::get_if<ir::Atomic>(&op.data)) {
        return run(*atomic, op.result, frame);
      }
      if (const auto* vote = std::get_if<ir::Vote>(&op.data)) return run(*vote, op.result, frame);
      return run_scalar(op, frame);
    case ir::Sort::kPure: return run_scalar(op, frame);
    case ir::Sort::kMove: return run_move(id, frame);
    // Everything happens in order, but for what regions do for each other.
    case ir::Sort::kOrder:
      if (const auto* trigger = std::get_if<ir::Trigger>(&op.data)) run(*trigger, frame);
      if (const auto* wait = std::get_if<ir::EventWait>(&op.data)) run(*wait, id, frame);
      if (const auto* barrier = std::get_if<ir::Barrier>(&op.data)) run(*barrier, id);
      return;
    case ir::Sort::kState:
      if (const auto* bind = std::get_if<ir::Bind>(&op.data)) run(*bind, frame);
      if (const auto* claim = std::get_if<ir::Assert>(&op.data)) run(*claim, id, frame);
      return;
  }
}

void Machine::run_structure(ir::OpId id, Frame& frame) {
  const ir::OpData& data = function_.ops[id].data;
  if (const auto* parallel = std::get_if<ir::Parallel>(&data)) return run(*parallel, frame);
  if (const auto* loop = std::get_if<ir::For>(&data)) return run(*loop, id, frame);
  if (const auto* loop = std::get_if<ir::Loop>(&data)) return run(*loop, id, frame);
  if (const auto* branch = std::get_if<ir::If>(&data)) return run(*branch, frame);
  if (const auto* some = std::get_if<ir::Inthreads>(&data)) return run(*some, frame);
  if (std::holds_alternative<ir::Apply>(data)) return run_tile_op(id, frame);
  // The elected thread's effects are those of its instance.
  run_region(std::get<ir::Once>(data).body, frame);
}

void Machine::run_jump(const ir::Op& op, Frame& frame) {
  const ir::OpKind kind = op.kind();
  if (kind == ir::OpKind::kBreak) return leave(Frame::Out::kOfLoop, frame);
  if (kind == ir::OpKind::kContinue) return leave(Frame::Out::kOfTrip, frame);
  if (kind == ir::OpKind::kYield) return yield(frame);
  returned_ = true;
  const ir::ValueId value = std::get<ir::Return>(op.data).value;
  const bool is_number =
      value.valid() && !std::holds_alternative<ir::ViewType>(function_.type(value));
  if (is_number) returned_number_ = scalar(value, frame, 0);
}

void Machine::run_move(ir::OpId id, Frame& frame) {
  const ir::OpData& data = function_.ops[id].data;
  if (const auto* copy = std::get_if<ir::Copy>(&data)) {
    return for_all_of(copy->unit, copy->dst, id, [&] { run(*copy, id, frame); });
  }
  if (const auto* write = std::get_if<ir::Write>(&data)) return run(*write, frame);
  if (const auto* splat = std::get_if<ir::Splat>(&data)) {
    return for_all_of(splat->unit, splat->view, id, [&] { run(*splat, id, frame); });
  }
  if (const auto* set = std::get_if<ir::Set>(&data)) return set_cell(*set, frame);
  if (const auto* set = std::get_if<ir::SetElement>(&data)) return run(*set, frame);
  if (const auto* cuda = std::get_if<ir::Cuda>(&data)) return run(*cuda, id, frame);
  run_tile_op(id, frame);
}

void Machine::run(const ir::Bind& op, Frame& frame) {
  if (!undecided(op.value, frame).empty()) {
    open_vars_.insert(op.var.index);
  } else if (!open_vars_.empty()) {
    open_vars_.erase(op.var.index);
  }
  for (std::size_t i = 0; i < frame.count(); ++i) {
    if (frame.active[i] == 0) continue;
    const Number number = scalar(op.value, frame, i);
    // A u64 of more than 63 bits wraps, as it does when it is read again.
    const bool fits = std::fabs(number.value) < 0x1p65;
    frame.vars.set(i, op.var,
                   fits ? static_cast<std::int64_t>(joined({number.value, number.rest})) : 0);
  }
}

// Whether the number of a lane in its unit is used.
bool Machine::tells_lanes_apart(ir::RegionId body) const {
  std::vector<ir::VarId> used;
  ir::walk(function_, body, [&](ir::OpId id) {
    ir::for_each_expr(function_.ops[id], [&](const ir::Expr& expr) { expr.collect_vars(used); });
  });
  return std::ranges::any_of(used, [&](ir::VarId var) { return lane_vars_.contains(var.index); });
}

// What a unit's lanes do together with tiles in their registers.
void Machine::run_tile_op(ir::OpId id, Frame& frame) {
  const ir::Op& op = function_.ops[id];
  if (const auto* fill = std::get_if<ir::Fill>(&op.data)) {
    return once_a_unit({fill->frag}, frame, [&](Frame& units) { run(*fill, units); });
  }
  if (const auto* load = std::get_if<ir::Load>(&op.data)) {
    return once_a_unit({load->frag}, frame, [&](Frame& units) { run(*load, units); });
  }
  if (const auto* store = std::get_if<ir::Store>(&op.data)) {
    return once_a_unit({store->frag}, frame, [&](Frame& units) { run(*store, units); });
  }
  if (const auto* scale = std::get_if<ir::Scale>(&op.data)) {
    return once_a_unit({scale->c, scale->partial}, frame,
                       [&](Frame& units) { run(*scale, units); });
  }
  if (const auto* apply = std::get_if<ir::Apply>(&op.data)) {
    if (tells_lanes_apart(apply->body)) return run(*apply, frame);
    return once_a_unit(ir::tiles_in(function_, *apply), frame,
                       [&](Frame& units) { run(*apply, units); });
  }
  if (const auto* reduce = std::get_if<ir::Reduce>(&op.data)) {
    return once_a_unit({reduce->frag, reduce->source}, frame,
                       [&](Frame& units) { run(*reduce, units); });
  }
  if (const auto* scan = std::get_if<ir::Scan>(&op.data)) {
    return once_a_unit({scan->frag, scan->source}, frame, [&](Frame& units) { run(*scan, units); });
  }
  if (const auto* convert = std::get_if<ir::Convert>(&op.data)) {
    return once_a_unit({convert->frag, convert->source}, frame,
                       [&](Frame& units) { run(*convert, units); });
  }
  if (const auto* recast = std::get_if<ir::Recast>(&op.data)) {
    return once_a_unit({recast->frag, recast->source}, frame,
                       [&](Frame& units) { run(*recast, units); });
  }
  const auto& mma = std::get<ir::Mma>(op.data);
  const ir::ValueId metadata = mma.metadata.valid() ? mma.metadata : mma.a;
  once_a_unit({mma.a, mma.b, mma.c, metadata}, frame, [&](Frame& units) { run(mma, id, units); });
}

VarTable VarTable::repeated(const VarTable& parent, std::size_t times) {
  VarTable out;
  const std::size_t each = parent.size() == 0 ? 0 : parent[0].size();
  out.reserve(parent.size(), each);
  for (std::size_t i = 0; i < parent.size(); ++i) out.add(parent[i]);
  out.rows_ *= times;
  out.times_ = times;
  out.shown_of_ = parent.size();
  return out;
}

std::vector<std::int64_t>& VarTable::own(ir::VarId var) {
  for (Column& column : own_) {
    if (column.var == var) return column.values;
  }
  Column column{var, std::vector<std::int64_t>(rows_)};
  for (std::size_t i = 0; i < rows_; ++i) {
    column.values[i] = values_[i / times_ * each_ + var.index];
  }
  return own_.emplace_back(std::move(column)).values;
}

std::span<const std::int64_t> VarTable::shown(std::size_t row) const {
  if (row / times_ != shown_of_) {
    shown_of_ = row / times_;
    const auto from = std::span(values_).subspan(shown_of_ * each_, each_);
    shown_.assign(from.begin(), from.end());
  }
  for (const Column& column : own_) shown_[column.var.index] = column.values[row];
  return shown_;
}

Frame Machine::split_frame(const Frame& parent, const std::vector<ir::VarId>& vars,
                           const std::vector<std::int64_t>& extents) {
  std::int64_t each = 1;
  for (std::int64_t extent : extents) each *= std::max<std::int64_t>(extent, 0);
  Frame child;
  const std::size_t count = parent.count() * static_cast<std::size_t>(each);
  child.vars = VarTable::repeated(parent.vars, static_cast<std::size_t>(each));
  child.active.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    auto rest = static_cast<std::int64_t>(i) % each;
    for (std::size_t axis = vars.size(); axis-- > 0;) {
      child.vars.set(i, vars[axis], rest % extents[axis]);
      rest /= extents[axis];
    }
    child.active.push_back(parent.active[i / static_cast<std::size_t>(each)]);
  }
  return child;
}

void Machine::run(const ir::Parallel& op, Frame& frame) {
  if (op.level == ir::Level::kBlock) return run_launch(op, frame);
  std::vector<std::int64_t> extents;
  for (const ir::VarId var : op.vars) {
    extents.push_back(function_.vars[var].extent.evaluate(frame.vars[0]));
  }
  Frame child = split_frame(frame, op.vars, extents);
  if (op.level == ir::Level::kThread && frame.count() != 0) {
    child.lanes = frame.lanes * (child.count() / frame.count());
  }
  child.active = remaining(child.active, child);
  if (frame.count() == together_) begin_phase();
  if (child.count() != 0 && any(child.active)) run_region(op.body, child);
  if (frame.count() == together_) begin_phase();
  frame.active = remaining(frame.active, frame);
}

// Threads of a region say nothing for those of others.
void Machine::begin_phase() {
  if (regions_.is_block()) ++phase_;
}

template <class Act>
void Machine::once_a_unit(const std::vector<ir::ValueId>& frags, Frame& frame, Act&& act) {
  if (frame.lanes <= 1) return act(frame);
  for (std::size_t i = 0; i < frame.count(); i += frame.lanes) {
    const auto first = frame.active.begin() + static_cast<std::ptrdiff_t>(i);
    const auto end = first + static_cast<std::ptrdiff_t>(frame.lanes);
    if (!std::all_of(first, end, [&](std::uint8_t lane) { return lane == *first; })) {
      return act(frame);
    }
  }
  for (const ir::ValueId frag : frags) {
    if (fragments_[frag.index].slots.size() > frame.count() / frame.lanes) return act(frame);
  }
  Frame units;
  for (std::size_t i = 0; i < frame.count(); i += frame.lanes) {
    units.vars.add(frame.vars[i]);
    units.active.push_back(frame.active[i]);
  }
  act(units);
}

// Every element is an instance of its own. What is known of a sum becomes its value and its error
// first, since the elements may go separate ways.
void Machine::run(const ir::Apply& op, const Frame& frame) {
  for (const ir::ValueId tile : ir::tiles_in(function_, op)) {
    Fragments& fragments = fragments_[tile.index];
    if (fragments.slots.size() < frame.count()) fragments.grow(frame.count());
    for (std::size_t i = 0; i < frame.count(); ++i) {
      if (frame.active[i] == 0) continue;
      const SlotRange range = slots_of(fragments.slots.size(), i, frame.count());
      for (std::size_t s = range.first; s < range.first + range.count; ++s) {
        observe(fragments.slots[s]);
        fragments.settle(fragments.slots[s]);
      }
    }
  }
  const ir::FragType& type = fragments_[op.frag.index].type;
  Frame child = split_frame(frame, {op.row, op.col}, {type.rows, type.cols});
  child.active = remaining(child.active, child);
  applied_ = op.frag;
  if (any(child.active)) run_region(op.body, child);
  applied_ = {};
}

namespace {

// The axes of a launch, in blocks, and how many of them run together along each.
struct Grid {
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> together;

  [[nodiscard]] static std::int64_t product(const std::vector<std::int64_t>& axes) {
    std::int64_t all = 1;
    for (const std::int64_t axis : axes) all *= std::max<std::int64_t>(axis, 0);
    return all;
  }
};

// Whether an operation of the kernel is such a one.
bool has(const ir::Function& function, ir::RegionId body, bool (*is)(const ir::Op&)) {
  bool found = false;
  ir::walk(function, body, [&](ir::OpId id) { found = found || is(function.ops[id]); });
  return found;
}

// Whether all blocks of the launch meet, or share events, for which all of them are there at once.
bool blocks_of_grid_meet(const ir::Op& op) {
  const auto* event = std::get_if<ir::Event>(&op.data);
  const auto* barrier = std::get_if<ir::Barrier>(&op.data);
  return (event != nullptr && event->grid) || (barrier != nullptr && barrier->grid);
}

// Whether those of a cluster meet, or read what is in each other's shared memory.
bool blocks_of_cluster_meet(const ir::Op& op) {
  const auto* barrier = std::get_if<ir::Barrier>(&op.data);
  return ir::reads_other_block(op) || (barrier != nullptr && barrier->cluster);
}

Grid grid_of(const ir::Function& function, const ir::Parallel& op, Vars vars) {
  Grid out;
  for (const ir::VarId var : op.vars) {
    out.extents.push_back(function.vars[var].extent.evaluate(vars));
  }
  out.together.assign(op.vars.size(), 1);
  if (has(function, op.body, blocks_of_grid_meet)) {
    out.together = out.extents;
    return out;
  }
  if (!has(function, op.body, blocks_of_cluster_meet)) return out;
  for (std::size_t axis = 0; axis < op.cluster.size(); ++axis) {
    out.together[axis] = function.vars[op.cluster[axis]].extent.evaluate(vars);
  }
  return out;
}

// The blocks that begin at number `first` of a grid of such groups, the last axis fastest.
Frame blocks_from(const ir::Function& function, const ir::Parallel& op, const Grid& grid, Vars vars,
                  std::int64_t first) {
  Frame out;
  for (std::int64_t member = 0; member < Grid::product(grid.together); ++member) {
    const std::size_t row = out.vars.size();
    out.vars.add(vars);
    std::int64_t group = first;
    std::int64_t inside = member;
    for (std::size_t axis = op.vars.size(); axis-- > 0;) {
      const std::int64_t groups = grid.extents[axis] / grid.together[axis];
      const std::int64_t at = group % groups * grid.together[axis] + inside % grid.together[axis];
      out.vars.set(row, op.vars[axis], at);
      group /= groups;
      inside /= grid.together[axis];
    }
    for (std::size_t axis = 0; axis < op.cluster.size(); ++axis) {
      const ir::VarId rank = op.cluster[axis];
      const std::int64_t at = out.vars[row][op.vars[axis].index];
      out.vars.set(row, rank, at % function.vars[rank].extent.evaluate(vars));
    }
    out.active.push_back(1);
  }
  return out;
}

}  // namespace

// Blocks one after another, those of a cluster that meet in step; nothing a block has of its own
// outlives it.
void Machine::run_launch(const ir::Parallel& op, Frame& frame) {
  std::vector<ir::ValueId> own;
  ir::walk(function_, op.body, [&](ir::OpId id) {
    if (function_.ops[id].kind() == ir::OpKind::kAlloc) own.push_back(function_.ops[id].result);
  });
  const Grid grid = grid_of(function_, op, frame.vars[0]);
  const std::int64_t together = Grid::product(grid.together);
  const std::int64_t groups = together == 0 ? 0 : Grid::product(grid.extents) / together;
  outcome_.blocks += groups * together;
  ++launches_;
  cluster_blocks_ = 1;
  cluster_.clear();
  for (const ir::VarId rank : op.cluster) {
    cluster_.push_back(function_.vars[rank].extent.evaluate(frame.vars[0]));
    cluster_blocks_ *= cluster_.back();
  }
  const std::vector<std::int64_t>& sample = limits_.blocks;
  for (std::int64_t n = 0; n < groups && !returned_; ++n) {
    const bool skipped = together == 1 && !sample.empty() && !std::ranges::binary_search(sample, n);
    if (skipped) continue;
    outcome_.blocks_run += together;
    ++phase_;
    for (const ir::ValueId value : own) {
      memories_[value.index].live = false;
      fragments_[value.index].slots.clear();
      scalars_[value.index].clear();
    }
    yielded_.clear();
    Frame blocks = blocks_from(function_, op, grid, frame.vars[0], n);
    together_ = blocks.count();
    regions_.begin_block(op.body, op.threads.evaluate(blocks.vars[0]));
    run_region(op.body, blocks);
    regions_.join();
    forget_trips(op.body, blocks, false);
    left_undecided_ = false;
  }
  together_ = 1;
}

void Machine::run(const ir::For& op, ir::OpId id, Frame& frame) {
  const std::vector<std::uint8_t> outer = frame.active;
  const std::size_t count = frame.count();
  std::vector<std::int64_t> next(count);
  std::vector<std::int64_t> upper(count);
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    next[i] = op.lower.evaluate(frame.vars[i]);
    upper[i] = op.upper.evaluate(frame.vars[i]);
    if (outer[i] == 0 || next[i] >= upper[i]) continue;
    const auto distance =
        static_cast<std::uint64_t>(upper[i]) - static_cast<std::uint64_t>(next[i]);
    most = std::max(most, (distance - 1) / static_cast<std::uint64_t>(op.step) + 1);
  }
  if (!ir::may_leave_early(function_, op.body) && !check_count(id, most)) return;
  const bool open = is_open(op.lower) || is_open(op.upper);
  const std::vector<Frame::Out> out = std::exchange(frame.out, {});
  while (!returned_) {
    end_trip(frame);
    frame.active = remaining(outer, frame);
    for (std::size_t i = 0; i < count; ++i) {
      if (next[i] >= upper[i]) frame.active[i] = 0;
      frame.vars.set(i, op.var, next[i]);
      next[i] += op.step;
    }
    if (!any(frame.active)) break;
    spend(id, count / regions_.parts_now());
    run_region(op.body, frame);
  }
  frame.out = out;
  frame.active = remaining(outer, frame);
  forget_trips(op.body, frame, open);
}

void Machine::run(const ir::Loop& op, ir::OpId id, Frame& frame) {
  // More than any program that ends needs.
  constexpr std::int64_t kTripsMax = 1'000'000;
  const std::vector<std::uint8_t> outer = frame.active;
  const std::vector<Frame::Out> out = std::exchange(frame.out, {});
  Trip carried = trip_of(op.body);
  for (std::int64_t trip = 0; !returned_; ++trip) {
    end_trip(frame);
    frame.active = remaining(outer, frame);
    if (!any(frame.active)) break;
    const bool moved = moves_on(carried) || trip == 0;
    if (!moved) give_up(id, true, "a loop that does not end: a trip changes nothing");
    if (trip == kTripsMax) {
      give_up(id, true, format("a loop that does not end: it has made {} trips", kTripsMax));
    }
    run_region(op.body, frame);
  }
  frame.out = out;
  frame.active = remaining(outer, frame);
  forget_trips(op.body, frame, false);
}

void Machine::leave(Frame::Out how, Frame& frame) {
  frame.out.resize(frame.count());
  for (std::size_t i = 0; i < frame.count(); ++i) {
    if (frame.active[i] != 0) frame.out[i] = how;
  }
  frame.active.assign(frame.count(), 0);
}

void Machine::yield(Frame& frame) {
  if (yielded_.size() < frame.count()) {
    std::vector<std::uint8_t> grown(frame.count());
    for (std::size_t i = 0; i < grown.size() && !yielded_.empty(); ++i) {
      grown[i] = yielded_[i * yielded_.size() / grown.size()];
    }
    yielded_ = std::move(grown);
  }
  for (std::size_t i = 0; i < frame.count(); ++i) {
    if (frame.active[i] == 0) continue;
    const SlotRange range = slots_of(yielded_.size(), i, frame.count());
    std::fill_n(yielded_.begin() + static_cast<std::ptrdiff_t>(range.first), range.count, 1);
  }
  frame.active.assign(frame.count(), 0);
}

std::vector<std::uint8_t> Machine::remaining(const std::vector<std::uint8_t>& wanted,
                                             const Frame& frame) const {
  std::vector<std::uint8_t> active = wanted;
  for (std::size_t i = 0; i < frame.out.size(); ++i) {
    if (frame.out[i] != Frame::Out::kNo) active[i] = 0;
  }
  for (std::size_t i = 0; i < active.size() && !yielded_.empty(); ++i) {
    const SlotRange range = slots_of(yielded_.size(), i, active.size());
    const auto begin = yielded_.begin() + static_cast<std::ptrdiff_t>(range.first);
    // An instance of several threads goes on while one of them does.
    if (std::all_of(begin, begin + static_cast<std::ptrdiff_t>(range.count),
                    [](std::uint8_t gone) { return gone != 0; })) {
      active[i] = 0;
    }
  }
  return active;
}

std::vector<std::uint8_t> Machine::conditions(ir::ValueId value, const Frame& frame) {
  std::vector<std::uint8_t> out(frame.count());
  for (std::size_t i = 0; i < frame.count(); ++i) {
    if (frame.active[i] == 0) continue;
    const Number number = scalar(value, frame, i);
    out[i] = number.value != 0 ? 1 : 0;
    if (number.error > 0 && number.error != kUnbounded) ++outcome_.open_branches;
  }
  return out;
}

void Machine::run(const ir::If& op, Frame& frame) {
  const std::vector<std::uint8_t> outer = frame.active;
  const std::vector<std::uint8_t> taken = conditions(op.condition, frame);
  const std::vector<std::uint8_t> open = undecided(op.condition, frame);
  const bool else_first = frees_the_other(op);
  for (const bool is_then : {!else_first, else_first}) {
    const ir::RegionId body = is_then ? op.then_body : op.else_body;
    if (!body.valid()) continue;
    for (std::size_t i = 0; i < outer.size(); ++i) {
      frame.active[i] = outer[i] != 0 && (taken[i] != 0) == is_then ? 1 : 0;
    }
    if (any(frame.active)) run_region(body, frame);
  }
  frame.active = remaining(outer, frame);
  if (open.empty()) return;
  forget_written(op.then_body, frame, open);
  if (op.else_body.valid()) forget_written(op.else_body, frame, open);
}

void Machine::run(const ir::Assert& op, ir::OpId id, Frame& frame) {
  const std::vector<std::uint8_t> held = conditions(op.condition, frame);
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (frame.active[i] != 0 && held[i] == 0 && !outcome_.failed_assert) {
      outcome_.failed_assert = FailedAssert{id, op.message};
    }
  }
}

Number Machine::scalar(ir::ValueId value, const Frame& frame, std::size_t instance) const {
  const std::vector<Number>& slots = scalars_[value.index];
  if (slots.empty()) return unknown();
  return slots[slots_of(slots.size(), instance, frame.count()).first];
}

void Machine::run_scalar(const ir::Op& op, Frame& frame) {
  std::vector<Number>& slots = scalars_[op.result.index];
  if (slots.size() != frame.count()) slots.assign(frame.count(), unknown());
  for (std::size_t i = 0; i < frame.count(); ++i) {
    if (frame.active[i] != 0) slots[i] = compute(op, frame, i);
  }
}

Number Machine::compute(const ir::Op& op, const Frame& frame, std::size_t instance) {
  const auto dtype_of = [&](ir::ValueId value) {
    const auto* type = std::get_if<ir::ScalarType>(&function_.type(value));
    return type != nullptr ? type->dtype : DType::kF32;
  };
  const auto get = [&](ir::ValueId value) { return scalar(value, frame, instance); };
  const DType dtype = dtype_of(op.result);
  if (const auto* read_op = std::get_if<ir::Read>(&op.data)) return read(*read_op, frame, instance);
  if (const auto* constant = std::get_if<ir::Const>(&op.data)) {
    return {round_to(dtype, constant->value), 0};
  }
  if (const auto* index = std::get_if<ir::Index>(&op.data)) {
    if (is_open(index->expr)) return unknown();
    return convert(exactly(split(index->expr.evaluate(frame.vars[instance]))), DType::kS64, dtype);
  }
  if (const auto* unary = std::get_if<ir::Unary>(&op.data)) {
    return apply(unary->kind, dtype, get(unary->operand));
  }
  if (const auto* binary = std::get_if<ir::Binary>(&op.data)) {
    return apply(binary->kind, dtype_of(binary->left), get(binary->left), get(binary->right));
  }
  if (const auto* fma = std::get_if<ir::Fma>(&op.data)) {
    return fused(dtype, get(fma->a), get(fma->b), get(fma->c));
  }
  if (const auto* cast = std::get_if<ir::Cast>(&op.data)) {
    return convert(get(cast->operand), dtype_of(cast->operand), dtype);
  }
  if (const auto* cast = std::get_if<ir::Bitcast>(&op.data)) {
    return bitcast(get(cast->operand), dtype_of(cast->operand), dtype);
  }
  if (const auto* pick = std::get_if<ir::Choose>(&op.data)) {
    return choose(get(pick->condition), get(pick->if_true), get(pick->if_false));
  }
  if (const auto* cell = std::get_if<ir::Get>(&op.data)) return get(cell->cell);
  if (const auto* held = std::get_if<ir::Element>(&op.data)) {
    return element(*held, frame, instance);
  }
  KILN_UNREACHABLE("`{}` has no scalar result", ir::mnemonic(op.kind()));
}

void Machine::set_cell(const ir::Set& op, Frame& frame) {
  std::vector<Number>& slots = scalars_[op.cell.index];
  const std::size_t count = frame.count();
  if (slots.size() < count) {
    std::vector<Number> grown(count, unknown());
    for (std::size_t i = 0; i < count && !slots.empty(); ++i) {
      grown[i] = slots[i * slots.size() / count];
    }
    slots = std::move(grown);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (frame.active[i] == 0) continue;
    const SlotRange range = slots_of(slots.size(), i, count);
    const Number number = scalar(op.value, frame, i);
    for (std::size_t s = 0; s < range.count; ++s) slots[range.first + s] = number;
  }
}

Numerics f32_numerics() {
  return [](ir::OpId) { return Accumulation{.roundoff = 0x1p-23, .depth = 1}; };
}

namespace {

// The buffers that operations of the region read, or write.
std::vector<ir::ValueId> roots_touched(const ir::Function& function, ir::RegionId region,
                                       bool (ir::Touch::*how)() const) {
  std::vector<ir::ValueId> roots;
  ir::walk(function, region, [&](ir::OpId id) {
    for (const ir::Touch& touch : ir::memory_touched(function, function.ops[id])) {
      if ((touch.*how)()) roots.push_back(ir::root_of(function, touch.value));
    }
  });
  return roots;
}

}  // namespace

std::string why_not_sampled(const ir::Function& function) {
  const std::vector<ir::OpId> launches = ir::launches(function);
  if (launches.size() != 1) return format("it has {} launches", launches.size());
  if (ir::loop_around(function, launches[0]) != launches[0]) return "it launches in a loop";
  // What the host part writes is whole, however many blocks run.
  const ir::RegionId blocks = std::get<ir::Parallel>(function.ops[launches[0]].data).body;
  const std::vector<ir::ValueId> read_by_blocks =
      roots_touched(function, blocks, &ir::Touch::reads);
  const std::vector<ir::ValueId> read = roots_touched(function, function.body, &ir::Touch::reads);
  for (const ir::ValueId root : roots_touched(function, blocks, &ir::Touch::writes)) {
    const bool shared_by_blocks = function.view_type(root).space == ir::Space::kGlobal;
    if (!shared_by_blocks || std::ranges::find(read, root) == read.end()) continue;
    const bool by_blocks = std::ranges::find(read_by_blocks, root) != read_by_blocks.end();
    return format("{} `{}`, which blocks write", by_blocks ? "blocks read" : "the host part reads",
                  function.values[root].name);
  }
  return {};
}

Outcome interpret(const ir::Function& function, const ir::Arguments& arguments,
                  const Numerics& numerics, const Limits& limits) {
  // First with all of a region's threads in step, as most programs come to their end.
  {
    Machine in_step(function, arguments, numerics, limits, false);
    Outcome outcome = in_step.run();
    if (outcome.stuck_at.empty() || !in_step.has_parts()) return outcome;
  }
  return Machine(function, arguments, numerics, limits, true).run();
}

}  // namespace kiln::reference
