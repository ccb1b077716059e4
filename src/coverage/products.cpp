// Follows the tiles of each `mma` to global memory: where operands come from, where results go.
//
//   a   <- load a_s[16*wm, 16*kk]    <- copy lhs[32*bm, 32*k]
//   acc -> store out_s[16*wm, 16*wn] -> copy output[32*bm, 32*bn]
//   rows of A and of the result are 32*bm + 16*wm, A is contracted along 32*k + 16*kk
//
// Operands have to move together along the contraction, and rows and columns of the product have to
// go where the rows and columns of the operands come from.
#include <algorithm>
#include <array>

#include "coverage/access.h"
#include "coverage/coverage.h"
#include "ir/arguments.h"
#include "ir/depend.h"
#include "ir/effects.h"

namespace kiln::coverage {

namespace {

// One side of a tile in global memory.
struct Side {
  std::string buffer;
  std::size_t dimension;
  ir::Expr first;   // element of that dimension at which the tile starts
  ir::Expr extent;  // of the dimension
  Span span;        // of the tile
};

class Products {
 public:
  Products(const ir::Function& function, Diagnostics& diags)
      : function_(function),
        diags_(diags),
        ranges_(function),
        accesses_(accesses_of(function)),
        loops_(loops_around(function)),
        over_time_(function) {
    index();
  }

  void check();

 private:
  using Accesses = std::vector<const TileAccess*>;
  // What a register tile meets: the loads into it, the products and stores of it.
  struct TileUses {
    const TileAccess* load = nullptr;  // the first one
    std::vector<ir::OpId> products;    // that it accumulates
    std::vector<ir::OpId> stores;
  };
  void index();
  [[nodiscard]] const Accesses& accesses_to(ir::ValueId root, bool writes) const;
  [[nodiscard]] const Accesses& accesses_by(ir::OpId op) const;
  [[nodiscard]] const TileUses& uses_of(ir::ValueId frag) const;
  [[nodiscard]] bool is_copy(const TileAccess& access) const;
  [[nodiscard]] const TileAccess* copy_into(const TileAccess& load) const;
  [[nodiscard]] const TileAccess* copy_out_of(const TileAccess& store) const;
  [[nodiscard]] std::optional<Side> side_of(const TileAccess* tile, const TileAccess* copy,
                                            const TileAccess* far, std::size_t side) const;
  [[nodiscard]] std::optional<Side> trace(ir::ValueId frag, std::size_t side) const;
  [[nodiscard]] std::optional<Side> trace_store(ir::OpId store, std::size_t side) const;
  [[nodiscard]] bool move_apart(const Side& a, const Side& b) const;
  [[nodiscard]] std::int64_t times_as_far(const Side& a, const Side& b) const;
  [[nodiscard]] std::string way_out(const Side& a, const Side& b) const;
  [[nodiscard]] bool belong_together(const Side& a, const Side& b) const;
  void check_contraction(const ir::Op& op, const ir::Mma& mma);
  void check_place(const ir::Mma& mma);
  bool check_side(std::string_view noun, const std::optional<Side>& from,
                  const std::optional<Side>& to);
  void check_fill(ir::OpId id, const ir::Fill& fill);
  void check_store(const ir::Store& store);
  [[nodiscard]] bool reads_unwritten() const;
  struct AxisUses {
    std::vector<ir::VarId> read;  // variables in anything but the place of a write
    Accesses writes;
    bool has_product = false;
  };
  [[nodiscard]] AxisUses axis_uses(ir::OpId launch) const;
  void check_axes(ir::OpId launch);
  void report_unread(ir::VarId axis, const TileAccess& write);
  void check_units(ir::OpId id, const ir::Store& store);
  [[nodiscard]] std::vector<ir::VarId> units_deciding(const TileAccess& access) const;
  [[nodiscard]] std::vector<ir::VarId> units_moving(const TileAccess& access) const;

  const ir::Function& function_;
  Diagnostics& diags_;
  Ranges ranges_;
  std::vector<TileAccess> accesses_;
  std::map<ir::OpId, std::vector<ir::OpId>> loops_;
  ir::DependenceOverTime over_time_;
  // `accesses_` by operation, and by buffer: reads, then writes.
  std::map<ir::OpId, Accesses> by_op_;
  std::map<ir::ValueId, std::array<Accesses, 2>> by_root_;
  std::map<ir::ValueId, TileUses> tiles_;
};

void Products::index() {
  for (const TileAccess& access : accesses_) {
    by_op_[access.op].push_back(&access);
    by_root_[access.at.root][access.writes ? 1 : 0].push_back(&access);
    const auto* load = std::get_if<ir::Load>(&function_.ops[access.op].data);
    if (load != nullptr && tiles_[load->frag].load == nullptr) tiles_[load->frag].load = &access;
  }
  ir::walk(function_, function_.body, [&](ir::OpId id) {
    const auto* mma = std::get_if<ir::Mma>(&function_.ops[id].data);
    const auto* store = std::get_if<ir::Store>(&function_.ops[id].data);
    if (mma != nullptr) tiles_[mma->c].products.push_back(id);
    if (store != nullptr) tiles_[store->frag].stores.push_back(id);
  });
}

const Products::Accesses& Products::accesses_to(ir::ValueId root, bool writes) const {
  static const Accesses kNone;
  const auto found = by_root_.find(root);
  return found == by_root_.end() ? kNone : found->second[writes ? 1 : 0];
}

const Products::Accesses& Products::accesses_by(ir::OpId op) const {
  static const Accesses kNone;
  const auto found = by_op_.find(op);
  return found == by_op_.end() ? kNone : found->second;
}

const Products::TileUses& Products::uses_of(ir::ValueId frag) const {
  static const TileUses kNone;
  const auto found = tiles_.find(frag);
  return found == tiles_.end() ? kNone : found->second;
}

// A copy that keeps the order of dimensions.
bool Products::is_copy(const TileAccess& access) const {
  const auto* copy = std::get_if<ir::Copy>(&function_.ops[access.op].data);
  return copy != nullptr && copy->permutation.empty();
}

// Whether both pin the same buffer of an array.
bool same_stage(const TileAccess& a, const TileAccess& b) {
  const auto pinned = static_cast<std::ptrdiff_t>(a.at.dropped);
  return a.at.dropped == b.at.dropped &&
         std::equal(a.at.origin.begin(), a.at.origin.begin() + pinned, b.at.origin.begin());
}

// The write side of the one copy that fills the tile which `load` reads; null when several do.
const TileAccess* Products::copy_into(const TileAccess& load) const {
  const Accesses& writes = accesses_to(load.at.root, true);
  const bool one_copy = writes.size() == 1 && is_copy(*writes[0]);
  return one_copy && same_stage(load, *writes[0]) ? writes[0] : nullptr;
}

// The read side of the one copy that takes on what `store` writes.
const TileAccess* Products::copy_out_of(const TileAccess& store) const {
  const Accesses& reads = accesses_to(store.at.root, false);
  const bool one_copy = reads.size() == 1 && is_copy(*reads[0]);
  return one_copy && same_stage(store, *reads[0]) ? reads[0] : nullptr;
}

// Side 0 (rows) or 1 of a tile in global memory. `tile` is what the instruction touches; when that
// is shared memory, `copy` is the copy's use of the same buffer and `far` its other end.
std::optional<Side> Products::side_of(const TileAccess* tile, const TileAccess* copy,
                                      const TileAccess* far, std::size_t side) const {
  for (const TileAccess* access : {tile, copy, far}) {
    if (access != nullptr && access->reshaped) return std::nullopt;
  }
  std::size_t dimension = tile->at.dropped + side;
  ir::Expr first = tile->at.origin[dimension];
  if (function_.view_type(tile->at.root).space == ir::Space::kShared) {
    if (copy == nullptr) return std::nullopt;
    first = first - copy->at.origin[dimension];
    tile = far;
    dimension = tile->at.dropped + side;
    first = first + tile->at.origin[dimension];
  }
  const ir::ViewType& type = function_.view_type(tile->at.root);
  if (type.space != ir::Space::kGlobal) return std::nullopt;
  return Side{root_name(function_, tile->at.root), dimension, first, type.shape[dimension],
              view_span(function_, *tile)};
}

// Follows an operand to global memory; none when it does not come straight from there.
std::optional<Side> Products::trace(ir::ValueId frag, std::size_t side) const {
  const TileAccess* load = uses_of(frag).load;
  if (load == nullptr) return std::nullopt;
  const TileAccess* copy = copy_into(*load);
  // A copy's read stands in front of its write.
  return side_of(load, copy, copy == nullptr ? nullptr : copy - 1, side);
}

// Follows what a store writes to global memory; none when it does not go straight there.
std::optional<Side> Products::trace_store(ir::OpId store, std::size_t side) const {
  const Accesses& written = accesses_by(store);
  if (written.empty()) return std::nullopt;
  const TileAccess* copy = copy_out_of(*written.front());
  return side_of(written.front(), copy, copy == nullptr ? nullptr : copy + 1, side);
}

// Whether other variables move one than the other.
bool Products::move_apart(const Side& a, const Side& b) const {
  const auto a_vars = ranges_.moving(a.first);
  const auto b_vars = ranges_.moving(b.first);
  return !a_vars.empty() && !b_vars.empty() &&
         std::none_of(a_vars.begin(), a_vars.end(), [&](ir::VarId var) {
           return std::find(b_vars.begin(), b_vars.end(), var) != b_vars.end();
         });
}

// How many times as far as b's tile each variable moves a's; 0 when they disagree, or it is no whole number.
std::int64_t Products::times_as_far(const Side& a, const Side& b) const {
  std::int64_t times = 0;
  for (const ir::VarId var : ranges_.moving(a.first)) {
    const std::int64_t far = coefficient_of(a.first, var);
    const std::int64_t step = coefficient_of(b.first, var);
    if (step == 0 || far % step != 0 || (times != 0 && far / step != times)) return 0;
    times = far / step;
  }
  return times;
}

// What to do about two tiles that are not contracted with each other.
std::string Products::way_out(const Side& a, const Side& b) const {
  const std::int64_t of_a = times_as_far(a, b);
  const std::int64_t of_b = times_as_far(b, a);
  if (of_a > 1 || of_b > 1) {
    return format("`.at` counts tiles, not elements: `{}` moves {} times as far as `{}`",
                  (of_a > 1 ? a : b).buffer, of_a > 1 ? of_a : of_b, (of_a > 1 ? b : a).buffer);
  }
  return "`row` contracts the last dimension of a view, `col` the first: let one index move both "
         "operands along it";
}

// Whether two operands can be contracted with each other.
bool Products::belong_together(const Side& a, const Side& b) const {
  if (move_apart(a, b)) return false;
  if (!(a.extent == b.extent) || a.extent.constant()) return true;
  // One dimension of the program: a loop moves both operands along it, or neither.
  const auto apart = ranges_.moving(a.first - b.first);
  return std::none_of(apart.begin(), apart.end(), [&](ir::VarId var) {
    return function_.vars[var].kind == ir::VarKind::kLoop;
  });
}

// The side of an operand's tile along which it is contracted; the other one is free.
std::size_t contracted_side(ir::Major major) { return major == ir::Major::kRow ? 1 : 0; }

void Products::check_contraction(const ir::Op& op, const ir::Mma& mma) {
  const auto a = trace(mma.a, contracted_side(mma.a_major));
  const auto b = trace(mma.b, contracted_side(mma.b_major));
  if (!a || !b || belong_together(*a, *b)) return check_place(mma);
  (void)diags_
      .report<diag::ContractionMismatch>(op.span, a->dimension, a->buffer, function_.text(a->first),
                                         b->dimension, b->buffer, function_.text(b->first))
      .label(a->span, "A: dimension {} is `{}`", a->dimension, function_.text(a->extent))
      .label(b->span, "B: dimension {} is `{}`", b->dimension, function_.text(b->extent))
      .help("{}", way_out(*a, *b))
      .emit();
}

// Rows and columns of a product belong where the operands' rows come from.
void Products::check_place(const ir::Mma& mma) {
  const auto rows = trace(mma.a, 1 - contracted_side(mma.a_major));
  const auto columns = trace(mma.b, 1 - contracted_side(mma.b_major));
  for (const ir::OpId store : uses_of(mma.c).stores) {
    const std::size_t row_side = std::get<ir::Store>(function_.ops[store].data).transposed ? 1 : 0;
    if (check_side("rows", rows, trace_store(store, row_side))) return;
    if (check_side("columns", columns, trace_store(store, 1 - row_side))) return;
  }
}

bool Products::check_side(std::string_view noun, const std::optional<Side>& from,
                          const std::optional<Side>& to) {
  if (!from || !to || !move_apart(*from, *to)) return false;
  (void)diags_
      .report<diag::StoreMismatch>(from->span, noun, from->dimension, from->buffer,
                                   function_.text(from->first), to->dimension, to->buffer,
                                   function_.text(to->first))
      .label(to->span, "the {} go to element {} of dimension {}", noun, function_.text(to->first),
             to->dimension)
      .help("choose both tiles by the same index, or store with `mma.store.transp`")
      .emit();
  return true;
}

// A fill in a loop that the stores are outside of drops all products but those of the last step.
void Products::check_fill(ir::OpId id, const ir::Fill& fill) {
  if (loops_.at(id).empty()) return;
  const ir::OpId loop = loops_.at(id).back();
  const ir::Var& var = function_.vars[std::get<ir::For>(function_.ops[loop].data).var];
  const auto inside = [&](ir::OpId op) {
    const auto& around = loops_.at(op);
    return std::find(around.begin(), around.end(), loop) != around.end();
  };
  const TileUses& uses = uses_of(fill.frag);
  const bool multiplied = std::any_of(uses.products.begin(), uses.products.end(), inside);
  const bool stored_inside = std::any_of(uses.stores.begin(), uses.stores.end(), inside);
  if (!multiplied || stored_inside || uses.stores.empty() || var.extent.is(1)) return;
  (void)diags_
      .report<diag::FillInLoop>(function_.ops[id].span, function_.values[fill.frag].name, var.name)
      .label(var.span, "the steps of this loop do not add up")
      .help("fill `{}` in front of the loop", function_.values[fill.frag].name)
      .emit();
}

// Whether anything of the function is to be seen when it is over: it writes memory, or has a buffer of
// the caller's that is good for nothing else. A kernel without any effect is there to be compiled, not
// to be run.
bool has_effect(const ir::Function& function) {
  const std::vector<std::size_t> read = ir::read_params(function);
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    const ir::Param& param = function.params[i];
    const bool is_callers = param.is_global || param.is_reference;
    if (is_callers && std::ranges::find(read, i) == read.end()) return true;
  }
  return std::ranges::any_of(function.ops, [&](const ir::Op& op) {
    bool writes = op.kind() == ir::OpKind::kPrint;
    ir::for_each_touch(op, [&](const ir::Touch& touch) {
      const auto* view = std::get_if<ir::ViewType>(&function.type(touch.value));
      writes = writes || (touch.writes() && touch.use != ir::Use::kStarts && view != nullptr &&
                          view->space == ir::Space::kGlobal);
    });
    return writes;
  });
}

// The shared tile that takes a product should go on from there.
void Products::check_store(const ir::Store& store) {
  const ir::ValueId root = ir::root_of(function_, store.view);
  const bool shared = function_.view_type(root).space == ir::Space::kShared;
  if (!shared || !accesses_to(root, false).empty()) return;
  const std::string& name = function_.values[store.frag].name;
  if (!has_effect(function_)) {
    (void)diags_
        .report<diag::MmaResultUnused>(function_.ops[function_.values[store.frag].def].span, name)
        .label(function_.ops[function_.values[root].def].span, "it is stored here, and left here")
        .help("copy it to the output: `dma.copy {} => output.subspan(...).at(...);`",
              root_name(function_, root))
        .emit();
    return;
  }
  (void)diags_
      .report<diag::StoreUnread>(function_.ops[function_.values[root].def].span,
                                 root_name(function_, root), name)
      .help("copy it to the output: `dma.copy {} => output.subspan(...).at(...);`",
            root_name(function_, root))
      .emit();
}

// Whether a shared tile is read that nothing fills: a mistake of its own, which the simulator
// finds.
bool Products::reads_unwritten() const {
  return std::any_of(accesses_.begin(), accesses_.end(), [&](const TileAccess& read) {
    const auto* alloc = function_.def_as<ir::Alloc>(read.at.root);
    const bool shared = function_.view_type(read.at.root).space == ir::Space::kShared;
    return shared && !alloc->initial.valid() && accesses_to(read.at.root, true).empty();
  });
}

// An axis of the grid that moves what is written, but nothing that goes into it, beside one that
// does both. With no such axis the kernel writes one product everywhere, and means it.
void Products::check_axes(ir::OpId launch) {
  const auto& parallel = std::get<ir::Parallel>(function_.ops[launch].data);
  const AxisUses uses = axis_uses(launch);
  const auto is_read = [&](ir::VarId axis) {
    return std::find(uses.read.begin(), uses.read.end(), axis) != uses.read.end();
  };
  if (!uses.has_product || std::none_of(parallel.vars.begin(), parallel.vars.end(), is_read)) {
    return;
  }
  for (const ir::VarId axis : parallel.vars) {
    const ir::Var& var = function_.vars[axis];
    const auto moved =
        std::find_if(uses.writes.begin(), uses.writes.end(), [&](const TileAccess* write) {
          return std::any_of(write->at.origin.begin(), write->at.origin.end(),
                             [&](const ir::Expr& origin) { return origin.uses(axis); });
        });
    if (var.extent.is(1) || is_read(axis) || moved == uses.writes.end()) continue;
    report_unread(axis, **moved);
  }
}

Products::AxisUses Products::axis_uses(ir::OpId launch) const {
  AxisUses uses;
  ir::walk(function_, std::get<ir::Parallel>(function_.ops[launch].data).body, [&](ir::OpId id) {
    const ir::OpData& data = function_.ops[id].data;
    uses.has_product |= std::holds_alternative<ir::Mma>(data);
    if (const auto* index = std::get_if<ir::Index>(&data)) index->expr.collect_vars(uses.read);
    if (const auto* loop = std::get_if<ir::For>(&data)) {
      loop->lower.collect_vars(uses.read);
      loop->upper.collect_vars(uses.read);
    }
    for (const TileAccess* access : accesses_by(id)) {
      if (access->writes) uses.writes.push_back(access);
      if (access->writes) continue;
      for (const ir::Expr& origin : access->at.origin) origin.collect_vars(uses.read);
    }
  });
  return uses;
}

// The axes inside of the block that an access depends on.
std::vector<ir::VarId> Products::units_moving(const TileAccess& access) const {
  std::vector<ir::VarId> units;
  for (const ir::Expr& origin : access.at.origin) {
    for (const ir::VarId var : ranges_.moving(origin)) {
      if (ranges_.is_unit(var)) units.push_back(var);
    }
  }
  return units;
}

// The same through numbers that threads compute, whatever these are made of.
std::vector<ir::VarId> Products::units_deciding(const TileAccess& access) const {
  std::vector<ir::VarId> units;
  for (const ir::VarId var : over_time_.vars(access.at.origin)) {
    for (const ir::VarId moving : ranges_.moving(ir::Expr::var(var))) {
      if (ranges_.is_unit(moving)) units.push_back(moving);
    }
  }
  return units;
}

// Refuses warps of one block that store to different places and all multiply the same tiles.
void Products::check_units(ir::OpId id, const ir::Store& store) {
  std::vector<ir::VarId> read;
  bool traced = false;
  for (const ir::OpId product : uses_of(store.frag).products) {
    const auto& mma = std::get<ir::Mma>(function_.ops[product].data);
    for (const ir::ValueId operand : {mma.a, mma.b}) {
      const TileAccess* load = uses_of(operand).load;
      if (load == nullptr) return;  // computed, of whatever a unit has
      traced = true;
      for (const ir::VarId var : units_deciding(*load)) read.push_back(var);
    }
  }
  for (const TileAccess* access : accesses_by(id)) {
    if (!access->writes || !traced) continue;
    for (const ir::VarId unit : units_moving(*access)) {
      if (std::find(read.begin(), read.end(), unit) != read.end()) continue;
      report_unread(unit, *access);
      return;
    }
  }
}

void Products::report_unread(ir::VarId axis, const TileAccess& write) {
  const ir::Var& var = function_.vars[axis];
  (void)diags_.report<diag::AxisUnread>(var.span, var.name, root_name(function_, write.at.root))
      .label(view_span(function_, write), "`{}` chooses this tile", var.name)
      .help("use `{}` in the index of the operand that it belongs to", var.name)
      .emit();
}

void Products::check() {
  ir::walk(function_, function_.body, [&](ir::OpId id) {
    const ir::Op& op = function_.ops[id];
    if (const auto* mma = std::get_if<ir::Mma>(&op.data)) check_contraction(op, *mma);
    if (const auto* fill = std::get_if<ir::Fill>(&op.data)) check_fill(id, *fill);
    if (const auto* store = std::get_if<ir::Store>(&op.data)) check_store(*store);
  });
  if (diags_.has_errors() || reads_unwritten()) return;
  ir::walk(function_, function_.body, [&](ir::OpId id) {
    const auto* store = std::get_if<ir::Store>(&function_.ops[id].data);
    if (store != nullptr) check_units(id, *store);
  });
  for (const ir::OpId launch : ir::launches(function_)) check_axes(launch);
}

}  // namespace

void check_products(const ir::Function& function, Diagnostics& diags) {
  Products(function, diags).check();
}

}  // namespace kiln::coverage
