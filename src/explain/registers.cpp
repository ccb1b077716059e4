#include "explain/registers.h"

#include <algorithm>
#include <cmath>

#include "ir/reflect.h"

namespace kiln::explain {

namespace {

using ir::Function;
using ir::OpId;
using ir::RegionId;
using ir::ValueId;

constexpr std::int64_t kRegisterBits = 32;
constexpr std::int64_t kByteBits = 8;

// Allowances, in registers of a thread, fitted to ptxas of CUDA 13.0 on sm_80 and sm_90a over the
// kernels that tests/e2e/explain_test.py compiles. Every kernel:
constexpr double kBase = 10;
// A guarded copy in a loop keeps offsets and limits from one iteration to the next: for the copy
// with the most steps, more where the rows it reads move with the loop.
constexpr double kGuardedCopy = 7;
constexpr double kGuardedStep = 7;
constexpr double kMovingRows = 14;
constexpr double kMovingStep = 1;
// A run of a fragment stored to global memory beside such a copy.
constexpr double kGlobalStore = 1;
// Any other copy: its steps are in flight together.
constexpr double kStep = 2.5;
// Plain loads of fragments from global memory: a run (bytes are packed afterwards), an operand
// whose contraction runs down the rows, and bounds.
constexpr double kGlobalLoad = 0.5;
constexpr double kByteLoad = 0.75;
constexpr double kTransposedLoad = 4;
constexpr double kGuardedLoad = 12;
// An element read or written in a loop.
constexpr double kElement = 2;

// What copy.cuh unrolls (move_all): vectors narrower than 4 bytes not at all, up to 8 steps whole.
constexpr std::int64_t kWidthMin = 4;
constexpr std::int64_t kUnrollMax = 8;
constexpr std::int64_t kUnrollLong = 4;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

int registers_for(std::int64_t bits) { return static_cast<int>(ceil_div(bits, kRegisterBits)); }

// Operations in program order; a loop is the range of its body.
struct Range {
  std::size_t begin = SIZE_MAX;
  std::size_t end = 0;  // exclusive

  [[nodiscard]] bool contains(std::size_t at) const { return begin <= at && at < end; }
};

// Where each value is alive: from its first use to its last, and through every loop that it comes
// into from outside.
class Lifetimes {
 public:
  Lifetimes(const Function& function, RegionId body)
      : function_(function), used_(function.values.size()), defined_(function.values.size(), 0) {
    number(body);
    for (std::size_t at = 0; at < order_.size(); ++at) note(order_[at], at);
    for (std::uint32_t v = 0; v < used_.size(); ++v) extend_over_loops(v);
  }

  // The largest sum of `registers` (by ValueId) alive at one place.
  [[nodiscard]] int peak(const std::vector<int>& registers) const {
    std::vector<int> alive(order_.size() + 1, 0);
    for (std::size_t v = 0; v < registers.size(); ++v) {
      for (std::size_t at = used_[v].begin; at < used_[v].end; ++at) alive[at] += registers[v];
    }
    return *std::max_element(alive.begin(), alive.end());
  }

 private:
  void number(RegionId region) {
    for (const OpId id : function_.regions[region].ops) {
      order_.push_back(id);
      const std::size_t begin = order_.size();
      for (const RegionId inner : ir::regions_of(function_.ops[id])) number(inner);
      const ir::OpKind kind = function_.ops[id].kind();
      const bool is_loop = kind == ir::OpKind::kFor || kind == ir::OpKind::kLoop;
      if (is_loop) loops_.push_back({begin, order_.size()});
    }
  }

  void note(OpId id, std::size_t at) {
    const ir::Op& op = function_.ops[id];
    if (op.result.valid()) defined_[op.result.index] = at;
    ir::for_each_operand(op, [&](std::string_view, ValueId value) {
      if (!value.valid()) return;
      Range& range = used_[value.index];
      range = {std::min(range.begin, at), std::max(range.end, at + 1)};
    });
  }

  // Inner loops come first in `loops_`, so that what an outer one adds cannot be missed.
  void extend_over_loops(std::uint32_t value) {
    Range& range = used_[value];
    for (const Range& loop : loops_) {
      const bool touches = range.begin < loop.end && loop.begin < range.end;
      if (!touches || loop.contains(defined_[value])) continue;
      range = {std::min(range.begin, loop.begin), std::max(range.end, loop.end)};
    }
  }

  const Function& function_;
  std::vector<OpId> order_;
  std::vector<Range> loops_;
  std::vector<Range> used_;           // by ValueId
  std::vector<std::size_t> defined_;  // by ValueId
};

// Addresses of memory accesses: of those in loops and of those outside.
class Addresses {
 public:
  explicit Addresses(const Function& function) : function_(function) {}

  void region(RegionId id) {
    for (const OpId op_id : function_.regions[id].ops) {
      const ir::Op& op = function_.ops[op_id];
      const auto* loop = std::get_if<ir::For>(&op.data);
      if (loop != nullptr) loops_.push_back(loop->var);
      if (const auto* copy = std::get_if<ir::Copy>(&op.data)) add(*copy);
      if (const auto* load = std::get_if<ir::Load>(&op.data)) add(*load);
      if (const auto* store = std::get_if<ir::Store>(&op.data)) add(*store);
      const bool element = op.kind() == ir::OpKind::kRead || op.kind() == ir::OpKind::kWrite;
      if (element && !loops_.empty()) in_loops_ += kElement;
      for (const RegionId inner : ir::regions_of(op)) region(inner);
      if (loop != nullptr) loops_.pop_back();
    }
  }

  [[nodiscard]] int total() const {
    double loops = in_loops_ + (guarded_load_ ? kGuardedLoad : 0);
    if (guarded_steps_ > 0) {
      const double steps = static_cast<double>(guarded_steps_);
      loops += kGuardedCopy + kGuardedStep * steps + kGlobalStore * stores_;
      if (moving_rows_) loops += kMovingRows + kMovingStep * steps;
    }
    return static_cast<int>(std::lround(std::max(loops, outside_)));
  }

 private:
  void add(const ir::Copy& copy) {
    const bool to_global = function_.view_type(copy.dst).space == ir::Space::kGlobal;
    const std::int64_t steps = steps_of(copy, to_global ? copy.src : copy.dst);
    if (loops_.empty()) {
      outside_ += kStep * static_cast<double>(steps);
    } else if (copy.guarded.empty()) {
      in_loops_ += kStep * static_cast<double>(steps);
    } else {
      guarded_steps_ = std::max(guarded_steps_, steps);
      moving_rows_ = moving_rows_ || rows_move(to_global ? copy.dst : copy.src);
    }
  }

  void add(const ir::Load& load) {
    if (load.instruction != nullptr || load.element_run == 0) return;
    if (function_.view_type(load.view).space != ir::Space::kGlobal) return;
    const ir::FragType& type = function_.frag_type(load.frag);
    const bool bytes = info(type.dtype).bits <= kByteBits;
    in_loops_ += (bytes ? kByteLoad : kGlobalLoad) * runs(load.frag, load.element_run);
    if (load.major == ir::Major::kCol) in_loops_ += kTransposedLoad;
    guarded_load_ = guarded_load_ || !load.guarded.empty();
  }

  void add(const ir::Store& store) {
    if (function_.view_type(store.view).space != ir::Space::kGlobal) return;
    stores_ += runs(store.frag, store.element_run);
  }

  // Accesses of one lane that move a fragment.
  [[nodiscard]] double runs(ValueId frag, std::int64_t run) const {
    const ir::FragType& type = function_.frag_type(frag);
    const auto* alloc = function_.def_as<ir::Alloc>(frag);
    if (alloc == nullptr || alloc->atom == nullptr) return 0;
    const std::int64_t lane = std::max<std::int64_t>(run, 1) * alloc->atom->lanes;
    return static_cast<double>(ceil_div(type.rows * type.cols, lane));
  }

  // The most steps that are unrolled for any width the copy may take.
  [[nodiscard]] std::int64_t steps_of(const ir::Copy& copy, ValueId tile) const {
    const ir::ViewType& type = function_.view_type(tile);
    std::int64_t bytes = size_bytes(type.dtype);
    for (const ir::Expr& extent : type.shape) bytes *= extent.constant().value_or(0);
    std::int64_t steps = 1;
    for (const std::int64_t width : copy.widths) {
      if (width < kWidthMin || copy.threads == 0) continue;
      const std::int64_t of_width = ceil_div(bytes, width * copy.threads);
      steps = std::max(steps, of_width <= kUnrollMax ? of_width : kUnrollLong);
    }
    return steps;
  }

  // Whether the rows of a window of global memory depend on an enclosing loop.
  [[nodiscard]] bool rows_move(ValueId view) const {
    const ir::ResolvedView window = ir::resolve_view(function_, view);
    for (std::size_t d = 0; d + 1 < window.origin.size(); ++d) {
      for (const ir::VarId loop : loops_) {
        if (window.origin[d].uses(loop)) return true;
      }
    }
    return false;
  }

  const Function& function_;
  std::vector<ir::VarId> loops_;  // around the operation
  double in_loops_ = 0;
  double outside_ = 0;
  std::int64_t guarded_steps_ = 0;
  bool moving_rows_ = false;
  bool guarded_load_ = false;
  double stores_ = 0;
};

// Operands that a warpgroup's instruction reads from shared memory are never loaded into registers.
bool in_registers(const Function& function, ValueId frag) {
  if (function.frag_type(frag).role == ir::Role::kC) return true;
  return std::any_of(function.ops.begin(), function.ops.end(), [&](const ir::Op& op) {
    const auto* load = std::get_if<ir::Load>(&op.data);
    return load != nullptr && load->frag == frag &&
           (load->instruction != nullptr || load->element_run != 0);
  });
}

int fragment_registers(const Function& function, ValueId frag) {
  const auto* alloc = function.def_as<ir::Alloc>(frag);
  if (alloc == nullptr || alloc->atom == nullptr || !in_registers(function, frag)) return 0;
  const ir::FragType& type = function.frag_type(frag);
  const std::int64_t values = ceil_div(type.rows * type.cols, alloc->atom->lanes);
  return registers_for(values * info(type.dtype).bits);
}

// Of an array of one thread, or a mutable scalar.
int local_registers(const Function& function, ValueId value) {
  const ir::Type& type = function.type(value);
  if (const auto* cell = std::get_if<ir::CellType>(&type)) {
    return registers_for(info(cell->dtype).bits);
  }
  const auto* view = std::get_if<ir::ViewType>(&type);
  if (view == nullptr || view->space != ir::Space::kLocal) return 0;
  if (function.def_as<ir::Alloc>(value) == nullptr) return 0;
  std::int64_t bits = info(view->dtype).bits;
  for (const ir::Expr& extent : view->shape) bits *= extent.constant().value_or(0);
  return registers_for(bits);
}

// What __launch_bounds__ leaves each thread of a block.
int registers_max(const target::Arch& arch, std::int64_t threads) {
  const std::int64_t whole_warps = ceil_div(threads, arch.warp_size) * arch.warp_size;
  const auto share = static_cast<int>(arch.registers_per_block_max / whole_warps);
  const int unit = arch.registers_unit / arch.warp_size;
  return std::min(arch.registers_per_thread_max, share / unit * unit);
}

}  // namespace

RegisterEstimate estimate_registers(const target::Arch& arch, const Function& function, OpId launch,
                                    std::int64_t threads) {
  const auto& data = std::get<ir::Parallel>(function.ops[launch].data);
  const Lifetimes lifetimes(function, data.body);
  std::vector<int> fragments(function.values.size());
  std::vector<int> locals(function.values.size());
  for (std::uint32_t v = 0; v < function.values.size(); ++v) {
    const ValueId value{v};
    const bool fragment = std::holds_alternative<ir::FragType>(function.type(value));
    fragments[v] = fragment ? fragment_registers(function, value) : 0;
    locals[v] = local_registers(function, value);
  }
  Addresses addresses(function);
  addresses.region(data.body);
  RegisterEstimate out;
  out.fragments = lifetimes.peak(fragments);
  out.locals = lifetimes.peak(locals);
  out.addresses = addresses.total() + static_cast<int>(kBase);
  out.wanted = out.fragments + out.locals + out.addresses;
  out.total = std::min(out.wanted, registers_max(arch, threads));
  return out;
}

}  // namespace kiln::explain
