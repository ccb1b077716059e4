#include "passes/persist.h"

#include <algorithm>
#include <optional>

#include "ir/effects.h"
#include "ir/prove.h"
#include "passes/cloner.h"
#include "passes/copies_ahead.h"
#include "passes/division.h"
#include "passes/for_each_launch.h"
#include "passes/marked_loops.h"
#include "passes/op_maker.h"
#include "passes/tile_order.h"
#include "target/occupancy.h"
#include "target/registers.h"

namespace kiln::passes {

namespace {

using ir::Expr;
using ir::OpId;
using ir::ValueId;

constexpr ir::ScalarType kNumber{DType::kS32};

// What makes the block's work one that cannot be done again and again.
class Hindrance {
 public:
  Hindrance(const ir::Function& function, OpId launch)
      : function_(function), launch_(std::get<ir::Parallel>(function.ops[launch].data)) {
    if (!launch_.cluster.empty())
      found_ = Obstacle{"they belong to clusters", function.ops[launch].span};
    if (launch_.cooperative) found_ = Obstacle{"they meet each other", function.ops[launch].span};
    ir::walk(function, launch_.body, [&](OpId id) { look_at(id); });
  }
  [[nodiscard]] const std::optional<Obstacle>& found() const { return found_; }

 private:
  void look_at(OpId id) {
    const ir::Op& op = function_.ops[id];
    const auto refuse = [&](std::string why) {
      if (!found_) found_ = Obstacle{std::move(why), op.span};
    };
    const auto* alloc = std::get_if<ir::Alloc>(&op.data);
    const auto* view =
        alloc == nullptr ? nullptr : std::get_if<ir::ViewType>(&function_.type(op.result));
    if (view != nullptr && view->space == ir::Space::kShared && alloc->initial.valid()) {
      refuse("a shared buffer of the tile begins with a value");
    }
    const ir::OpKind kind = op.kind();
    const bool leaves = kind == ir::OpKind::kYield || kind == ir::OpKind::kReturn;
    if (leaves) refuse("its threads leave before the end");
    if (kind == ir::OpKind::kRegisters) refuse("it moves registers by itself");
    if (kind == ir::OpKind::kCuda) refuse("it contains CUDA or a fence of its own");
    if (kind == ir::OpKind::kEvent && !is_of_copy(op.result)) {
      refuse("it meets at an event of its own, whose turns would go on from tile to tile");
    }
  }

  // Whether the event only says that a copy, which is complete at the end of its statement, has landed.
  [[nodiscard]] bool is_of_copy(ValueId event) const {
    bool out = false;
    ir::walk(function_, launch_.body, [&](OpId id) {
      const auto* copy = std::get_if<ir::Copy>(&function_.ops[id].data);
      out = out || (copy != nullptr && !copy->async && copy->event == event);
    });
    return out;
  }

  const ir::Function& function_;
  const ir::Parallel& launch_;
  std::optional<Obstacle> found_;
};

// What the block will need, its rings included.
target::BlockNeeds needs_of(const ir::Function& function, OpId launch, std::int64_t producers) {
  const auto& data = std::get<ir::Parallel>(function.ops[launch].data);
  target::BlockNeeds out{.threads = data.threads.constant().value_or(1) + producers};
  const auto add = [&](auto& self, ir::RegionId region, std::int64_t stages) -> void {
    for (const OpId id : function.regions[region].ops) {
      const ir::Op& op = function.ops[id];
      if (op.kind() == ir::OpKind::kAlloc) {
        const ir::Type& type = function.type(op.result);
        if (const auto* view = std::get_if<ir::ViewType>(&type);
            view != nullptr && view->space == ir::Space::kShared) {
          out.shared_bytes += buffer_bytes(function, op.result) * stages;
        }
      }
      const auto* loop = std::get_if<ir::For>(&op.data);
      const std::int64_t inside = loop == nullptr || loop->stages <= 0 ? stages : loop->stages;
      for (const ir::RegionId inner : ir::regions_of(op)) self(self, inner, inside);
    }
  };
  add(add, data.body, 1);
  out.registers = registers_wanted(function, launch);
  return out;
}

std::int64_t blocks_at_once(const ir::Module& module, const ir::Function& function, OpId launch) {
  const auto& data = std::get<ir::Parallel>(function.ops[launch].data);
  const target::Arch& arch = *module.arch;
  if (data.blocks_min != 0) return data.blocks_min * arch.sms;
  Division division;
  const bool produced = !loops_with_producer(function, launch).empty() &&
                        !division_of(module, function, launch, division);
  // Consumers that are given a producer's registers leave none for a second block.
  if (produced && consumer_registers(arch, data, division) != 0) return arch.sms;
  target::BlockNeeds needs = needs_of(function, launch, produced ? division.unit() : 0);
  needs.registers = std::min(needs.registers, arch.registers_per_thread_max);
  return std::max<std::int64_t>(target::occupancy(arch, needs).blocks, 1) * arch.sms;
}

class Persister : private OpMaker {
 public:
  Persister(const ir::Module& module, ir::Function& function, OpId launch)
      : OpMaker(function, function.ops[launch].span), module_(module), launch_(launch) {}

  void run() {
    const std::vector<ir::VarId> axes = data().vars;
    std::vector<Expr> extents;
    Expr tiles = 1;
    for (const ir::VarId axis : axes) {
      extents.push_back(function_.vars[axis].extent);
      tiles = tiles * extents.back();
    }
    drop_grid_checks(extents);
    std::vector<OpId> first;
    if (data().persistent) take_shared(first);
    const std::vector<OpId> rest = function_.regions[data().body].ops;
    const std::int64_t blocks = data().persistent ? blocks_at_once(module_, function_, launch_) : 0;
    const ir::VarId block = new_var(data().persistent ? "block" : "tile", ir::VarKind::kParallel,
                                    blocks == 0 ? tiles : Expr(blocks));
    data().vars = {block};
    blocks == 0 ? number_blocks(axes, extents, Expr::var(block), tiles)
                : go_through(axes, extents, {Expr::var(block), tiles, blocks}, rest, first);
    if (blocks == 0) {
      out_.insert(out_.end(), rest.begin(), rest.end());
      function_.regions[data().body].ops = std::move(out_);
    }
    data().persistent = false;
    set_order(data(), {});
  }

  // What tile_at makes its numbers with.
  using Number = Expr;

  // A name for the expression.
  Expr bind(const std::string& name, const Expr& value, const Expr& extent) {
    return name_it(name, emit_value(ir::Index{value}, kNumber), extent);
  }

  ValueId less(const std::string& name, const Expr& left, const Expr& right) {
    const ValueId a = emit_value(ir::Index{left}, kNumber);
    const ValueId b = emit_value(ir::Index{right}, kNumber);
    return emit_value(ir::Binary{ir::BinaryKind::kLt, a, b}, ir::ScalarType{DType::kBool}, name);
  }

  Expr choose(const std::string& name, ValueId condition, const Expr& if_true, const Expr& if_false,
              const Expr& extent) {
    const ValueId a = emit_value(ir::Index{if_true}, kNumber);
    const ValueId b = emit_value(ir::Index{if_false}, kNumber);
    return name_it(name, emit_value(ir::Choose{condition, a, b}, kNumber), extent);
  }

 private:
  ir::Parallel& data() { return std::get<ir::Parallel>(function_.ops[launch_].data); }

  ir::VarId new_var(const std::string& name, ir::VarKind kind, Expr extent) {
    return function_.vars.push(
        {unique_var_name(function_, name), kind, std::move(extent), span_, 0});
  }

  Expr name_it(const std::string& name, ValueId value, const Expr& extent) {
    const ir::VarId var = new_var(name, ir::VarKind::kBound, extent);
    emit(ir::Bind{var, value});
    return Expr::var(var);
  }

  // The grid's axes are others now, and so are their limits; those of other launches stay.
  void drop_grid_checks(const std::vector<Expr>& extents) {
    for (std::size_t i = 0; i < extents.size(); ++i) {
      if (another_has(i, extents[i])) continue;
      std::erase_if(function_.checks, [&](const ir::EntryCheck& check) {
        return check.message == format("axis {} of the grid is too long", i) &&
               check.left == extents[i];
      });
    }
  }

  [[nodiscard]] bool another_has(std::size_t axis, const Expr& extent) const {
    return std::ranges::any_of(ir::launches(function_), [&](OpId id) {
      const auto& vars = std::get<ir::Parallel>(function_.ops[id].data).vars;
      return id != launch_ && axis < vars.size() && function_.vars[vars[axis]].extent == extent;
    });
  }

  // Numbers of tiles are numbers of 32 bits.
  void check_tiles(const Expr& tiles, std::int64_t beyond, std::string message) {
    const Expr limit(module_.arch->grid_max[0] - beyond);
    if (ir::always_less_equal(function_, tiles, limit)) return;
    function_.checks.push_back({tiles, ir::Relation::kLessEqual, limit, std::move(message), span_});
  }

  void take_shared(std::vector<OpId>& first) {
    first = shared_of(function_, data().body);
    for (const OpId id : first) remove_op(function_, id);
  }

  // A block for each tile.
  void number_blocks(const std::vector<ir::VarId>& axes, const std::vector<Expr>& extents,
                     const Expr& tile, const Expr& tiles) {
    check_tiles(tiles, 0, "axis 0 of the grid is too long");
    place(axes, extents, tile);
  }

  // The grid of those that stay.
  struct Grid {
    Expr block;
    Expr tiles;
    std::int64_t blocks;
  };

  void go_through(const std::vector<ir::VarId>& axes, const std::vector<Expr>& extents,
                  const Grid& grid, const std::vector<OpId>& work, std::vector<OpId> first) {
    check_tiles(grid.tiles, grid.blocks, "there are too many tiles");
    const Expr rounds = cdiv(grid.tiles, Expr(grid.blocks));
    const ir::VarId round = new_var("round", ir::VarKind::kLoop, rounds);
    const Expr tile =
        bind("tile", Expr::var(round) * grid.blocks + grid.block, rounds * grid.blocks);
    const ValueId number = emit_value(ir::Index{tile}, kNumber);
    const ValueId all = emit_value(ir::Index{grid.tiles}, kNumber);
    const ValueId is_there =
        emit_value(ir::Binary{ir::BinaryKind::kLt, number, all}, ir::ScalarType{DType::kBool});
    std::vector<OpId> body = std::move(out_);
    out_.clear();
    place(axes, extents, tile);
    std::vector<OpId> inside = std::move(out_);
    out_.clear();
    inside.insert(inside.end(), work.begin(), work.end());
    const ir::RegionId then_body = function_.regions.push({std::move(inside)});
    body.push_back(make(ir::If{is_there, then_body, {}}));
    ir::For loop;
    loop.var = round;
    loop.upper = rounds;
    loop.body = function_.regions.push({std::move(body)});
    first.push_back(make(loop));
    function_.regions[data().body].ops = std::move(first);
  }

  // The old variables of the tile with this number.
  void place(const std::vector<ir::VarId>& axes, const std::vector<Expr>& extents,
             const Expr& tile) {
    const TileOrder order = order_of(data());
    if (order.kind == TileOrder::Kind::kGrid) {
      Expr rest = tile;
      for (std::size_t i = 0; i < axes.size(); ++i) {
        const bool last = i + 1 == axes.size();
        set(axes[i], last ? rest : mod(rest, extents[i]));
        if (!last) rest = floor_div(rest, extents[i]);
      }
      return;
    }
    const TilePlace<Expr> at = tile_at(*this, order, tile, {extents[0], extents[1]});
    set(axes[0], at.row);
    set(axes[1], at.column);
  }

  void set(ir::VarId axis, const Expr& value) {
    function_.vars[axis].kind = ir::VarKind::kBound;
    emit(ir::Bind{axis, emit_value(ir::Index{value}, kNumber)});
  }

  const ir::Module& module_;
  OpId launch_;
};

}  // namespace

TileOrder order_of(const ir::Parallel& launch) {
  if (launch.hilbert) return {TileOrder::Kind::kHilbert};
  if (launch.columns_together != 0) return {TileOrder::Kind::kColumns, launch.columns_together};
  if (launch.rows_together != 0) return {TileOrder::Kind::kRows, launch.rows_together};
  return {};
}

void set_order(ir::Parallel& launch, const TileOrder& order) {
  launch.columns_together = order.kind == TileOrder::Kind::kColumns ? order.together : 0;
  launch.rows_together = order.kind == TileOrder::Kind::kRows ? order.together : 0;
  launch.hilbert = order.kind == TileOrder::Kind::kHilbert;
}

Checked<bool> persist(ir::Module& module, Diagnostics& diags) {
  bool failed = false;
  for_each_launch(module, [&](ir::Function& function, OpId launch) {
    const auto& data = std::get<ir::Parallel>(function.ops[launch].data);
    if (!data.persistent && order_of(data).kind == TileOrder::Kind::kGrid) return;
    if (const Hindrance hindrance(function, launch); hindrance.found()) {
      (void)diags.report<diag::PersistentKernel>(function.ops[launch].span, hindrance.found()->why)
          .label(hindrance.found()->place, "here")
          .help("take `[[persistent]]` or `[[order]]` away, or write the loop over tiles by hand")
          .emit();
      failed = true;
      return;
    }
    Persister(module, function, launch).run();
  });
  if (failed) return diags.failed();
  return true;
}

}  // namespace kiln::passes
