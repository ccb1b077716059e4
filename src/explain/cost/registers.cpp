#include "explain/cost/registers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>

#include "explain/cost/liveness.h"
#include "ir/effects.h"
#include "ir/reflect.h"
#include "ir/registers.h"
#include "support/integer.h"
#include "target/arch.h"
#include "target/registers.h"

namespace kiln::explain {

namespace {

using ir::Function;
using ir::OpId;
using ir::RegionId;
using ir::ValueId;

constexpr std::int64_t kRegisterBits = target::kRegisterBits;
constexpr std::int64_t kByteBits = 8;

// Allowances, in registers of a thread, fitted to ptxas of CUDA 13.0 on sm_80 and sm_90a over the
// kernels that tests/e2e/explain_test.py compiles. Every kernel:
constexpr double kBase = 10;
// Rows that begin anywhere are cut out of two vectors of 16 bytes each, while nothing else is on
// its way: outside loops; in loops, of at most a warp with a guard, and of others.
constexpr double kGather = 21;
constexpr double kGatherBeside = 18;
constexpr double kGatherOfWarp = 32;
constexpr double kGatherOfMore = 13;
constexpr std::int64_t kVector = 16;
// Descriptors of operands in shared memory: those of the two operands, and what they are made from.
constexpr double kDescriptors = 12;
// The place and the phase of events that are waited for.
constexpr double kEventWait = 4;
// A guarded copy in a loop keeps something of each row from one iteration to the next, for every
// width that is unrolled whole (each is compiled); more where the rows it reads move with the loop.
// From so many rows on ptxas computes it again instead.
constexpr double kGuardedCopy = 2;
constexpr double kGuardedStep = 1.6;
constexpr std::int64_t kKeptStepsMax = 12;
// In kernels of warps that are no regions: the copy with the most steps.
constexpr double kWarpCopy = 9;
constexpr double kWarpStep = 3;
constexpr double kMovingRows = 14;
constexpr double kMovingStep = 1;
// A run of a fragment stored to global memory beside such a copy.
constexpr double kGlobalStore = 1;
// Any other copy: its steps are in flight together.
constexpr double kStep = 2.5;
// Plain loads of operands from global memory: a run (bytes are packed afterwards), an operand
// whose contraction runs down the rows. Bounds of the first load, also of a register tile (whose
// registers alone count else), and of each further one of a register tile.
constexpr double kGlobalLoad = 0.5;
constexpr double kByteLoad = 0.75;
constexpr double kTransposedLoad = 4;
constexpr double kGuardedLoad = 12;
constexpr double kGuardedTile = 4;
// Sines of large angles, whose turns are taken off with numbers of 192 bits.
constexpr double kSines = 20;
// An element read or written in a loop.
constexpr double kElement = 2;

// What copy.cuh unrolls: vectors of 16 bytes that go to shared memory as they are, up to 8 steps
// whole (move_all).
constexpr std::int64_t kUnrollMax = 8;
constexpr std::int64_t kUnrollLong = 4;

// Warps that an SM holds at once with 128 and with 168 registers each: where tiles and what else must
// stay leave room below such a step, ptxas computes addresses again rather than pass it.
constexpr std::array<int, 2> kSteps = {128, 168};
constexpr int kRoom = 12;

int registers_for(std::int64_t bits) { return static_cast<int>(ceil_div(bits, kRegisterBits)); }

// Addresses of memory accesses: of those in loops and of those outside.
class Addresses {
 public:
  // `in_region`: of an asynchronous region rather than of the whole block.
  Addresses(const Function& function, bool in_region)
      : function_(function), in_region_(in_region) {}

  void region(RegionId id) {
    for (const OpId op_id : function_.regions[id].ops) {
      const ir::Op& op = function_.ops[op_id];
      const auto* loop = std::get_if<ir::For>(&op.data);
      const bool repeats = loop != nullptr || op.kind() == ir::OpKind::kLoop;
      if (loop != nullptr) loops_.push_back(loop->var);
      if (repeats) ++depth_;
      if (const auto* copy = std::get_if<ir::Copy>(&op.data)) add(*copy);
      if (const auto* load = std::get_if<ir::Load>(&op.data)) add(*load);
      if (const auto* store = std::get_if<ir::Store>(&op.data)) add(*store);
      if (const auto* mma = std::get_if<ir::Mma>(&op.data)) {
        descriptors_ = descriptors_ || mma->unit == ir::Level::kGroup4;
      }
      waits_ = waits_ || op.kind() == ir::OpKind::kEventWait;
      const auto* unary = std::get_if<ir::Unary>(&op.data);
      sines_ = sines_ || (unary != nullptr && takes_turns_off(unary->kind));
      const bool element = op.kind() == ir::OpKind::kRead || op.kind() == ir::OpKind::kWrite ||
                           op.kind() == ir::OpKind::kAtomic;
      if (element && !loops_.empty()) in_loops_ += kElement;
      // Other threads run an asynchronous region, see estimate_registers.
      const auto* role = std::get_if<ir::Inthreads>(&op.data);
      if (role != nullptr && role->async) continue;
      for (const RegionId inner : ir::regions_of(op)) region(inner);
      if (loop != nullptr) loops_.pop_back();
      if (repeats) --depth_;
    }
  }

  // What ptxas does not compute again.
  [[nodiscard]] double must_stay() const {
    return (descriptors_ ? kDescriptors : 0) + (waits_ ? kEventWait : 0);
  }

  [[nodiscard]] int total() const {
    double loops = in_loops_ + guards(guarded_loops_) + must_stay();
    if (!kept_.empty()) {
      // Beside descriptors ptxas keeps what it computes again where warps hold their operands.
      const double steps = static_cast<double>(descriptors_ || in_region_ ? kept_steps() : most_);
      const bool few = !descriptors_ && !in_region_;
      loops += (few ? kWarpCopy : kGuardedCopy) + (few ? kWarpStep : kGuardedStep) * steps +
               kGlobalStore * stores_;
      if (moving_rows_) loops += kMovingRows + kMovingStep * steps;
    }
    const double outside = std::max(outside_in_ + outside_out_, guards(guarded_outside_));
    const double addresses = std::max(loops, outside);
    const double sines = sines_ ? kSines : 0;
    const double once = kept_.empty() ? kGather : kGatherBeside;
    const double gather = std::max(gather_, gathers_once_ ? once : 0);
    return static_cast<int>(std::lround(std::max(addresses, gather) + sines));
  }

 private:
  void add(const ir::Copy& copy) {
    const bool to_global = function_.view_type(copy.dst).space == ir::Space::kGlobal;
    const std::int64_t steps = steps_of(copy, to_global);
    if (!to_global && copy.way == ir::CopyWay::kGather) {
      const bool of_warp = copy.threads <= target::kWarpLanes && !copy.guarded.empty();
      const double in_loop = of_warp ? kGatherOfWarp : kGatherOfMore;
      gathers_once_ = gathers_once_ || depth_ == 0;
      if (depth_ != 0) gather_ = std::max(gather_, in_loop);
    }
    if (loops_.empty()) {
      // One after the other, so that the largest of each direction counts.
      double& outside = to_global ? outside_out_ : outside_in_;
      outside = std::max(outside, kStep * static_cast<double>(steps));
    } else if (copy.guarded.empty()) {
      in_loops_ += kStep * static_cast<double>(steps);
    } else {
      keep(copy, to_global);
      moving_rows_ = moving_rows_ || rows_move(to_global ? copy.dst : copy.src);
    }
  }

  void add(const ir::Load& load) {
    if (load.instruction != nullptr || load.element_run == 0) return;
    if (function_.view_type(load.view).space != ir::Space::kGlobal) return;
    const ir::FragType& type = function_.frag_type(load.frag);
    const bool is_tile = type.role == ir::Role::kTile;
    // Only tiles are loaded outside loops on their own: operands feed a product that is in one.
    Guarded& guarded = is_tile && depth_ == 0 ? guarded_outside_ : guarded_loops_;
    if (!load.guarded.empty() || !load.before.empty())
      ++(is_tile ? guarded.tiles : guarded.operands);
    if (is_tile) return;
    const bool bytes = info(type.dtype).bits <= kByteBits;
    in_loops_ += (bytes ? kByteLoad : kGlobalLoad) * runs(load.frag, load.element_run);
    if (load.major == ir::Major::kCol) in_loops_ += kTransposedLoad;
  }

  void add(const ir::Store& store) {
    if (function_.view_type(store.view).space != ir::Space::kGlobal) return;
    if (function_.frag_type(store.frag).role == ir::Role::kTile) return;  // behind the loops
    const double part = static_cast<double>(ir::stored_columns(function_, store)) /
                        static_cast<double>(function_.frag_type(store.frag).cols);
    stores_ += part * runs(store.frag, store.element_run);
  }

  // Accesses of one lane that move a fragment.
  [[nodiscard]] double runs(ValueId frag, std::int64_t run) const {
    const std::int64_t values = ir::share_of(function_, frag).values;
    return static_cast<double>(ceil_div(values, std::max<std::int64_t>(run, 1)));
  }

  [[nodiscard]] static bool takes_turns_off(ir::UnaryKind kind) {
    return kind == ir::UnaryKind::kSin || kind == ir::UnaryKind::kCos ||
           kind == ir::UnaryKind::kTan;
  }

  // Loads with a guard.
  struct Guarded {
    int operands = 0;
    int tiles = 0;
  };

  [[nodiscard]] static double guards(const Guarded& of) {
    if (of.operands + of.tiles == 0) return 0;
    const int further = of.operands == 0 ? of.tiles - 1 : of.tiles;
    return kGuardedLoad + kGuardedTile * further;
  }

  // Copies of one direction whose tiles have rows of one length, by the same threads in as many
  // steps, go through the same rows: what is kept for one serves the others.
  struct Kept {
    bool to_global = false;
    std::int64_t row_bytes = 0;
    std::int64_t threads = 0;
    std::int64_t steps = 0;
    std::int64_t width = 0;  // 0: no width is unrolled whole

    [[nodiscard]] auto operator<=>(const Kept&) const = default;
  };

  void keep(const ir::Copy& copy, bool to_global) {
    const ValueId tile = to_global ? copy.src : copy.dst;
    most_ = std::max(most_, steps_of(copy, to_global));
    const ir::ViewType& type = function_.view_type(tile);
    const std::int64_t cols = type.shape.empty() ? 1 : type.shape.back().constant().value_or(0);
    Kept key{.to_global = to_global,
             .row_bytes = cols * size_bytes(type.dtype),
             .threads = copy.threads,
             .steps = steps_of(copy, to_global),
             .width = 0};
    if (!unrolls(copy, to_global)) {
      kept_.try_emplace(key, 1);
      return;
    }
    const std::int64_t steps = ceil_div(bytes_of(tile), kVector * copy.threads);
    const bool whole = steps <= kUnrollMax;
    key.width = whole ? kVector : 0;
    std::int64_t& kept = kept_[key];
    kept = std::max(kept, whole ? steps : kUnrollLong);
  }

  // Steps that are unrolled in part count where none is unrolled whole.
  [[nodiscard]] std::int64_t kept_steps() const {
    std::int64_t whole = 0;
    std::int64_t part = 0;
    for (const auto& [key, steps] : kept_) (key.width == 0 ? part : whole) += steps;
    return std::min(std::max(whole, part), kKeptStepsMax);
  }

  [[nodiscard]] std::int64_t bytes_of(ValueId tile) const {
    const ir::ViewType& type = function_.view_type(tile);
    std::int64_t bytes = size_bytes(type.dtype);
    for (const ir::Expr& extent : type.shape) bytes *= extent.constant().value_or(0);
    return bytes;
  }

  [[nodiscard]] static bool unrolls(const ir::Copy& copy, bool to_global) {
    return !to_global && copy.threads != 0 && !copy.widths.empty() &&
           copy.widths.front() == kVector;
  }

  // The most steps that are unrolled for any width the copy may take.
  [[nodiscard]] std::int64_t steps_of(const ir::Copy& copy, bool to_global) const {
    if (!unrolls(copy, to_global)) return 1;
    const ValueId tile = to_global ? copy.src : copy.dst;
    const std::int64_t steps = ceil_div(bytes_of(tile), kVector * copy.threads);
    return steps <= kUnrollMax ? std::max<std::int64_t>(steps, 1) : kUnrollLong;
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
  bool in_region_;
  std::vector<ir::VarId> loops_;  // around the operation
  int depth_ = 0;                 // of loops, also of those without a variable
  double in_loops_ = 0;
  double outside_in_ = 0;  // copies outside loops, from and to global memory
  double outside_out_ = 0;
  std::map<Kept, std::int64_t> kept_;  // steps
  std::int64_t most_ = 0;              // steps of one copy
  bool descriptors_ = false;
  bool waits_ = false;
  bool sines_ = false;
  double gather_ = 0;
  bool gathers_once_ = false;
  bool moving_rows_ = false;
  Guarded guarded_loops_;
  Guarded guarded_outside_;
  double stores_ = 0;
};

// Operands that a warpgroup's instruction reads from shared memory are never loaded into registers.
bool in_registers(const Function& function, ValueId frag) {
  const ir::Role role = function.frag_type(frag).role;
  if (role == ir::Role::kC || role == ir::Role::kTile) return true;
  return std::any_of(function.ops.begin(), function.ops.end(), [&](const ir::Op& op) {
    const auto* convert = std::get_if<ir::Convert>(&op.data);
    if (convert != nullptr && convert->frag == frag) return true;
    const auto* load = std::get_if<ir::Load>(&op.data);
    return load != nullptr && load->frag == frag &&
           (load->instruction != nullptr || load->element_run != 0);
  });
}

// Tiles that need fewer registers than they have elements, by ValueId. None: an apply makes each element, and a reduction
// or a store takes it at once; or it is made of indices alone, and again where it is read. Those of another tile: it is
// that one in a wider type, which each element takes on where it is read.
class Fleeting {
 public:
  Fleeting(const Function& function, RegionId body)
      : function_(function), of_(function.values.size()) {
    ir::walk(function, body, [&](OpId id) { note(id); });
  }

  [[nodiscard]] bool operator()(ValueId tile) const {
    const Uses& uses = of_[tile.index];
    if (uses.made != 1 || uses.written != 1) return false;
    return uses.of_indices || (uses.taken == 1 && uses.read == 1);
  }

  // What is in registers instead of the tile: the tile itself, or the one that it is converted from.
  [[nodiscard]] ValueId kept(ValueId tile) const {
    const Uses& uses = of_[tile.index];
    const bool converted = uses.made == 1 && uses.written == 1 && uses.whole == 0;
    return converted && uses.source.valid() ? uses.source : tile;
  }

 private:
  struct Uses {
    int made = 0;     // whole, by an apply
    int written = 0;  // by anything
    int read = 0;
    int taken = 0;  // by a reduction or a store
    int whole = 0;  // read by what needs all elements at once
    bool of_indices = false;
    ValueId source;  // of the elements, which are only converted
  };

  void note(OpId id) {
    const ir::Op& op = function_.ops[id];
    const bool takes = op.kind() == ir::OpKind::kReduce || op.kind() == ir::OpKind::kStore;
    ir::for_each_touch(op, [&](const ir::Touch& touch) {
      Uses& uses = of_[touch.value.index];
      uses.written += touch.writes() ? 1 : 0;
      uses.read += touch.reads() ? 1 : 0;
      uses.taken += touch.reads() && takes ? 1 : 0;
      const bool by_elements =
          takes || op.kind() == ir::OpKind::kElement || op.kind() == ir::OpKind::kApply;
      uses.whole += touch.reads() && !by_elements ? 1 : 0;
    });
    const auto* apply = std::get_if<ir::Apply>(&op.data);
    if (apply == nullptr) return;
    bool of_indices = ir::tiles_in(function_, *apply).size() == 1;
    ir::walk(function_, apply->body, [&](OpId inner) {
      if (function_.ops[inner].kind() == ir::OpKind::kRead) of_indices = false;
    });
    for (const OpId inner : function_.regions[apply->body].ops) {
      const auto* set = std::get_if<ir::SetElement>(&function_.ops[inner].data);
      if (set == nullptr || !same_extents(set->frag, apply->frag)) continue;
      ++of_[set->frag.index].made;
      of_[set->frag.index].of_indices = of_indices;
      of_[set->frag.index].source = converted_by(*apply, *set);
    }
  }

  // The tile of narrower elements of which the apply makes this one by a conversion alone; or none.
  [[nodiscard]] ValueId converted_by(const ir::Apply& apply, const ir::SetElement& set) const {
    const auto* cast = function_.def_as<ir::Cast>(set.value);
    const auto* element = cast == nullptr ? nullptr : function_.def_as<ir::Element>(cast->operand);
    constexpr std::size_t kOps = 3;
    if (element == nullptr || function_.regions[apply.body].ops.size() != kOps) return {};
    const auto bits = [&](ValueId tile) { return info(function_.frag_type(tile).dtype).bits; };
    const bool narrower = bits(element->frag) < bits(set.frag);
    return narrower && same_extents(element->frag, set.frag) ? element->frag : ValueId{};
  }

  [[nodiscard]] bool same_extents(ValueId a, ValueId b) const {
    const ir::FragType& left = function_.frag_type(a);
    const ir::FragType& right = function_.frag_type(b);
    return left.rows == right.rows && left.cols == right.cols;
  }

  const Function& function_;
  std::vector<Uses> of_;
};

int fragment_registers(const Function& function, ValueId frag) {
  const ir::Share share = ir::share_of(function, frag);
  if (share.lanes == 0 || !in_registers(function, frag)) return 0;
  return registers_for(share.values * info(function.frag_type(frag).dtype).bits);
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

// The bodies of the asynchronous regions: of each thread's registers only one of them has use.
std::vector<RegionId> roles_in(const Function& function, RegionId body) {
  std::vector<RegionId> out;
  ir::walk(function, body, [&](OpId id) {
    const auto* role = std::get_if<ir::Inthreads>(&function.ops[id].data);
    if (role != nullptr && role->async) out.push_back(role->body);
  });
  return out;
}

// Where warpgroups are given registers, ptxas takes all that the largest gets, or that the block's
// threads may start with. 0: none are given.
int registers_set(const Function& function, RegionId body) {
  std::int64_t most = 0;
  ir::walk(function, body, [&](OpId id) {
    const auto* set = std::get_if<ir::Registers>(&function.ops[id].data);
    if (set != nullptr) most = std::max(most, set->count);
  });
  return static_cast<int>(most);
}

// Says what is alive at the fullest place.
void describe(const Function& function, const FullestPlace& fullest,
              const std::vector<int>& registers, RegisterEstimate& out) {
  if (!fullest.at.valid()) return;
  out.fullest = function.ops[fullest.at].span;
  for (const ValueId value : fullest.alive) {
    if (registers[value.index] == 0) continue;
    const auto* alloc = function.def_as<ir::Alloc>(value);
    const bool named = alloc != nullptr && !alloc->name.empty();
    out.alive.push_back(
        {named ? alloc->name : function.values[value].name, registers[value.index]});
  }
  std::ranges::stable_sort(out.alive, std::greater{}, &LiveTile::registers);
}

// Of one program of a thread. `lives`: it has fragments and locals of its own; a launch that only
// starts asynchronous regions leaves them to these.
RegisterEstimate estimate_region(const Function& function, RegionId body, bool lives,
                                 bool in_region) {
  RegisterEstimate out;
  if (lives) {
    const Fleeting fleeting(function, body);
    std::vector<int> fragments(function.values.size());
    std::vector<int> locals(function.values.size());
    for (std::uint32_t v = 0; v < function.values.size(); ++v) {
      const ValueId value{v};
      const bool fragment = std::holds_alternative<ir::FragType>(function.type(value));
      fragments[v] =
          fragment && !fleeting(value) ? fragment_registers(function, fleeting.kept(value)) : 0;
      locals[v] = local_registers(function, value);
    }
    const FullestPlace fullest = fullest_place(function, body, fragments);
    out.fragments = fullest.registers;
    describe(function, fullest, fragments, out);
    out.locals = fullest_place(function, body, locals).registers;
  }
  Addresses addresses(function, in_region);
  addresses.region(body);
  out.addresses = addresses.total();
  out.must_stay = static_cast<int>(addresses.must_stay());
  out.wanted = out.fragments + out.locals + out.addresses;
  return out;
}

}  // namespace

namespace {

int below_a_step(const RegisterEstimate& estimate) {
  const int least =
      estimate.fragments + estimate.locals + estimate.must_stay + static_cast<int>(kBase) + kRoom;
  for (const int step : kSteps) {
    if (least <= step) return std::min(estimate.wanted, step);
  }
  return estimate.wanted;
}

}  // namespace

RegisterEstimate estimate_registers(const target::Arch& arch, const Function& function, OpId launch,
                                    std::int64_t threads) {
  const auto& data = std::get<ir::Parallel>(function.ops[launch].data);
  const std::vector<RegionId> roles = roles_in(function, data.body);
  RegisterEstimate out = estimate_region(function, data.body, roles.empty(), false);
  RegisterEstimate largest;
  for (const RegionId role : roles) {
    const RegisterEstimate inside = estimate_region(function, role, true, true);
    if (inside.wanted > largest.wanted) largest = inside;
  }
  out.fragments += largest.fragments;
  if (largest.fragments != 0) {
    out.fullest = largest.fullest;
    out.alive = largest.alive;
  }
  out.locals += largest.locals;
  out.addresses += largest.addresses + static_cast<int>(kBase);
  out.must_stay += largest.must_stay;
  out.wanted = out.fragments + out.locals + out.addresses;
  const int again = out.wanted - below_a_step(out);
  out.addresses -= again;
  out.wanted -= again;
  const int limit = target::registers_at_start(arch, threads);
  const int shared_out = registers_set(function, data.body);
  out.total = shared_out > 0 ? std::min(shared_out, limit) : std::min(out.wanted, limit);
  return out;
}

}  // namespace kiln::explain
