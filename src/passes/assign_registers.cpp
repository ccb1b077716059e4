#include "passes/assign_registers.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ir/effects.h"
#include "ir/registers.h"
#include "ir/vary.h"
#include "passes/for_each_launch.h"
#include "passes/plan_copies.h"
#include "support/integer.h"

namespace kiln::passes {

namespace {

using target::Fragment;

constexpr std::int64_t kVectorBytes = 16;
constexpr int kTradedBits = 16;  // of elements that the lanes of a quad trade before a store

// The threads that execute together what stands in a region, and which of several units of so many
// they are.
struct Unit {
  std::int64_t threads = 0;
  ir::Expr number = 0;
  std::int64_t count = 1;
  bool diverged = false;  // not all threads of the block, or of its region, get here
  bool inner = false;     // of a level below the block: a region has such units, too
};

// Where an operation stands.
struct Spot {
  ir::RegionId region;
  std::size_t index = 0;
};

class Assigner {
 public:
  Assigner(ir::Function& function, const target::Arch& arch, Diagnostics& diags)
      : function_(function), arch_(arch), varying_(function), diags_(diags) {}

  bool run(ir::OpId launch) {
    const auto& parallel = std::get<ir::Parallel>(function_.ops[launch].data);
    look(parallel.body, {parallel.threads.constant().value_or(0), 0, 1});
    if (tiles_.empty()) return true;
    settle();
    while (const auto seed = next_unknown()) {
      limit_values(*seed, least_values(*seed));  // before its elements are counted in an int
      if (failed_) return false;
      give(*seed, spread(*seed, scanned(function_.frag_type(*seed))));
      check_size(*seed);  // before anybody goes through them
      if (failed_) return false;
      settle();
    }
    for (const ir::ValueId tile : tiles_) check_size(tile);
    if (!failed_) convert(parallel.body);
    return !failed_;
  }

 private:
  // --- what there is

  void look(ir::RegionId region, const Unit& unit) {
    for (const ir::OpId id : function_.regions[region].ops) {
      const ir::Op& op = function_.ops[id];
      order_.push_back(id);
      unit_of_[id] = unit;
      const bool is_tile = op.kind() == ir::OpKind::kAlloc && is_free(op.result);
      if (is_tile) tiles_.push_back(op.result);
      for (const ir::RegionId inner : ir::regions_of(op)) look(inner, unit_inside(op, unit));
    }
  }

  // Whether the threads of a block part at it.
  bool diverges(const ir::Op& op) {
    const auto varies = [&](const ir::Expr& expr) {
      std::vector<ir::VarId> vars;
      expr.collect_vars(vars);
      return std::ranges::any_of(
          vars, [&](ir::VarId var) { return varying_.var(var, ir::Level::kBlock); });
    };
    if (op.kind() == ir::OpKind::kOnce || op.kind() == ir::OpKind::kLoop) return true;
    if (const auto* loop = std::get_if<ir::For>(&op.data)) {
      return varies(loop->lower) || varies(loop->upper);
    }
    const auto* branch = std::get_if<ir::If>(&op.data);
    return branch != nullptr && varying_.value(branch->condition, ir::Level::kBlock);
  }

  Unit unit_inside(const ir::Op& op, const Unit& unit) {
    if (diverges(op)) {
      Unit inside = unit;
      inside.diverged = true;
      return inside;
    }
    if (const auto* some = std::get_if<ir::Inthreads>(&op.data)) {
      Unit inside = unit.inner ? unit : Unit{some->threads, 0, 1};
      inside.diverged = false;
      return inside;
    }
    const auto* parallel = std::get_if<ir::Parallel>(&op.data);
    if (parallel == nullptr || parallel->level == ir::Level::kThread) return unit;
    Unit inside{parallel->unit, 0, 1, unit.diverged, true};
    for (const ir::VarId var : parallel->vars) {
      const std::int64_t extent = function_.vars[var].extent.constant().value_or(1);
      inside.number = inside.number * ir::Expr(extent) + ir::Expr::var(var);
      inside.count *= extent;
    }
    return inside;
  }

  bool is_free(ir::ValueId value) const {
    const auto* type = std::get_if<ir::FragType>(&function_.type(value));
    return type != nullptr && type->role == ir::Role::kTile;
  }

  // --- who has which layout

  std::optional<Fragment> known(ir::ValueId frag) const {
    const auto* alloc = function_.def_as<ir::Alloc>(frag);
    if (alloc->atom == nullptr && !alloc->registers.valid()) return std::nullopt;
    const ir::TileRegisters registers = ir::tile_registers(function_, frag);
    return registers.swapped ? turned(registers.map) : registers.map;
  }

  static Fragment turned(const Fragment& map) {
    return target::fragment_of(target::transposed(map), map.cols, map.rows);
  }

  static void set_registers(ir::Alloc& alloc, const Fragment& map) {
    alloc.registers = map.tv;
    if (map.is_padded()) alloc.padded = {map.rows, map.cols};
  }

  bool give(ir::ValueId frag, const Fragment& map) {
    auto& alloc = std::get<ir::Alloc>(function_.ops[function_.values[frag].def].data);
    if (!is_free(frag) || alloc.registers.valid()) return false;
    set_registers(alloc, map);
    return true;
  }

  // What a tile becomes whose rows (0) or columns (1) are made into so many elements, of each lane's
  // part or by `repeated` of all.
  static Fragment with_extent(const Fragment& of, int dimension, int count, const Layout& layout) {
    return dimension == 0 ? target::fragment_of(layout, count, of.cols, {count, of.edge.col})
                          : target::fragment_of(layout, of.rows, count, {of.edge.row, count});
  }
  static Fragment reduced(const Fragment& whole, int dimension, int parts = 1) {
    return with_extent(whole, dimension, parts, target::reduced(whole, dimension, parts));
  }
  static Fragment repeated(const Fragment& one, int dimension, int count) {
    return with_extent(one, dimension, count, target::repeated(one, dimension, count));
  }

  // How a tile of the frag's extents stands beside one of `whole`.
  Fragment beside(ir::ValueId frag, const Fragment& whole) const {
    const ir::FragType& type = function_.frag_type(frag);
    Fragment part = whole;
    if (type.cols == 1 && whole.cols > 1) part = reduced(part, 1);
    if (type.rows == 1 && whole.rows > 1) part = reduced(part, 0);
    return part;
  }

  static bool is_same(const Fragment& one, const Fragment& other) {
    return one.tv == other.tv && one.rows == other.rows && one.cols == other.cols;
  }

  bool has_extents(ir::ValueId frag, const ir::FragType& of) const {
    const ir::FragType& type = function_.frag_type(frag);
    return type.rows == of.rows && type.cols == of.cols;
  }

  bool pass_on(const ir::Apply& apply) {
    const std::vector<ir::ValueId> tiles = ir::tiles_in(function_, apply);
    const ir::FragType whole = function_.frag_type(apply.frag);
    std::optional<Fragment> layout;
    for (const ir::ValueId tile : tiles) {
      if (!layout && has_extents(tile, whole)) layout = known(tile);
    }
    bool changed = false;
    for (const ir::ValueId tile : tiles) {
      if (layout && !known(tile)) changed = give(tile, beside(tile, *layout)) || changed;
    }
    return changed;
  }

  // The layout of either tile of a recast says that of the other.
  bool pass_on(const ir::Recast& recast) {
    const ir::RecastSides sides = ir::sides_of(function_, recast);
    const auto wide = known(sides.wide);
    const auto narrow = known(sides.narrow);
    if (wide && !narrow) return give(sides.narrow, target::split_columns(*wide, sides.count));
    if (!narrow || wide) return false;
    const auto joined = target::joined_columns(*narrow, sides.count);
    return joined && give(sides.wide, *joined);
  }

  bool pass_on(ir::OpId id) {
    const ir::OpData& data = function_.ops[id].data;
    if (const auto* apply = std::get_if<ir::Apply>(&data)) return pass_on(*apply);
    if (const auto* reduce = std::get_if<ir::Reduce>(&data)) {
      const auto source = known(reduce->source);
      return source && !known(reduce->frag) && give(reduce->frag, beside(reduce->frag, *source));
    }
    if (const auto* scan = std::get_if<ir::Scan>(&data)) {
      const auto source = known(scan->source);
      const auto result = known(scan->frag);
      if (is_lined_up(source, *scan)) return !result && give(scan->frag, *source);
      return is_lined_up(result, *scan) && give(scan->source, *result);
    }
    const auto* recast = std::get_if<ir::Recast>(&data);
    return recast != nullptr && pass_on(*recast);
  }

  // Whether a scan can go along the lines of a tile with that layout.
  static bool is_lined_up(const std::optional<Fragment>& layout, const ir::Scan& scan) {
    return layout && target::lines_along(*layout, static_cast<int>(scan.dimension)).has_value();
  }

  void settle() {
    while (true) {
      bool changed = false;
      for (const ir::OpId id : order_) changed = pass_on(id) || changed;
      if (changed) continue;
      // An operand's wish counts where nobody else has one.
      for (const ir::OpId id : order_) {
        const auto* convert = std::get_if<ir::Convert>(&function_.ops[id].data);
        if (convert == nullptr || known(convert->source)) continue;
        const auto wanted = known(convert->frag);
        changed = (wanted && give(convert->source, *wanted)) || changed;
      }
      if (!changed) return;
    }
  }

  // The largest tile without a layout, the first of several.
  std::optional<ir::ValueId> next_unknown() const {
    std::optional<ir::ValueId> out;
    std::int64_t most = 0;
    for (const ir::ValueId tile : tiles_) {
      const ir::FragType& type = function_.frag_type(tile);
      if (known(tile) || type.rows * type.cols <= most) continue;
      most = type.rows * type.cols;
      out = tile;
    }
    return out;
  }

  // Runs of elements that memory moves at once: as short as those of the widest elements of tiles
  // of this shape that are loaded or stored.
  // `within`: the dimension whose lines are not to be in several warps.
  Fragment spread(ir::ValueId tile, std::optional<int> within) const {
    const ir::FragType& type = function_.frag_type(tile);
    std::int64_t bytes = 0;
    for (const ir::OpId id : order_) {
      const ir::OpData& data = function_.ops[id].data;
      const auto* load = std::get_if<ir::Load>(&data);
      const auto* store = std::get_if<ir::Store>(&data);
      if (load == nullptr && store == nullptr) continue;
      const ir::ValueId moved = load != nullptr ? load->frag : store->frag;
      const ir::ValueId view = load != nullptr ? load->view : store->view;
      if (!has_extents(moved, type)) continue;
      const std::int64_t size = size_bytes(function_.view_type(view).dtype);
      bytes = bytes == 0 ? size : std::min(bytes, size);
    }
    if (bytes == 0) bytes = size_bytes(type.dtype);
    const Unit& unit = unit_of_.at(function_.values[tile].def);
    const int parts = parts_together(type);
    const Fragment whole =
        target::spread_padded(static_cast<int>(type.rows), static_cast<int>(type.cols) / parts,
                              static_cast<int>(unit.threads),
                              std::max(1, static_cast<int>(kVectorBytes / bytes) / parts), within);
    return parts == 1 ? whole : target::split_columns(whole, parts);
  }

  // How many neighbours in a row of a tile with these extents are the bits of one element elsewhere.
  int parts_together(const ir::FragType& type) const {
    int out = 1;
    for (const ir::OpId id : order_) {
      const auto* recast = std::get_if<ir::Recast>(&function_.ops[id].data);
      if (recast == nullptr) continue;
      const ir::RecastSides sides = ir::sides_of(function_, *recast);
      if (has_extents(sides.narrow, type)) out = std::max(out, sides.count);
    }
    return out;
  }

  // The dimension that a scan of a tile with these extents goes along, the first of several.
  std::optional<int> scanned(const ir::FragType& type) const {
    for (const ir::OpId id : order_) {
      const auto* scan = std::get_if<ir::Scan>(&function_.ops[id].data);
      if (scan != nullptr && has_extents(scan->source, type)) {
        return static_cast<int>(scan->dimension);
      }
    }
    return std::nullopt;
  }

  // Whether the place of the largest is asked along the lines of a tile with these extents.
  bool searched(const ir::FragType& type) const {
    return std::ranges::any_of(order_, [&](ir::OpId id) {
      const auto* reduce = std::get_if<ir::Reduce>(&function_.ops[id].data);
      return reduce != nullptr && reduce->kind == ir::ReduceKind::kArgMax &&
             has_extents(reduce->source, type);
    });
  }

  // How many of a tile's elements a thread has when they are dealt out evenly.
  std::int64_t least_values(ir::ValueId tile) const {
    const ir::FragType& type = function_.frag_type(tile);
    return ceil_div(type.rows * type.cols, unit_of_.at(function_.values[tile].def).threads);
  }

  // A tile alone may not take more registers than a thread has.
  void check_size(ir::ValueId tile) { limit_values(tile, ir::share_of(function_, tile).values); }

  // The same for a tile of which each thread has so many elements.
  void limit_values(ir::ValueId tile, std::int64_t values) {
    constexpr std::int64_t kRegisterBits = 32;
    const ir::FragType& type = function_.frag_type(tile);
    const std::int64_t bits = info(type.dtype).bits;
    // Whole registers first: the bits of a tile of 2^60 elements are more than 64 bits count.
    const std::int64_t registers =
        values / kRegisterBits * bits + ceil_div(values % kRegisterBits * bits, kRegisterBits);
    const std::int64_t limit = arch_.registers_per_thread_max;
    if (registers <= limit) return;
    failed_ = true;
    const ir::OpId def = function_.values[tile].def;
    const std::int64_t threads = unit_of_.at(def).threads;
    const char* help =
        scanned(type)    ? "a line that is scanned lies in one warp: scan shorter parts, "
                           "and add the last sum of each to the next"
        : searched(type) ? "a line of which the place of the largest is asked lies in one warp: "
                           "search shorter parts, and then their largest"
                         : "make the tile smaller, or spread it over more threads";
    (void)diags_
        .report<diag::TileRegisters>(function_.ops[def].span, function_.values[tile].name,
                                     type.rows, type.cols, threads, registers, limit)
        .help("{}", help)
        .emit();
  }

  // --- where they do not meet

  void convert(ir::RegionId region) {
    for (std::size_t i = 0; i < function_.regions[region].ops.size(); ++i) {
      const ir::OpId id = function_.regions[region].ops[i];
      Spot spot{region, i};
      const ir::Op op = function_.ops[id];
      if (const auto* apply = std::get_if<ir::Apply>(&op.data)) meet(*apply, id, spot);
      if (const auto* reduce = std::get_if<ir::Reduce>(&op.data)) gather(*reduce, id, spot);
      if (const auto* scan = std::get_if<ir::Scan>(&op.data)) line_up(*scan, id, spot);
      if (const auto* moved = std::get_if<ir::Convert>(&op.data)) move(*moved, id, spot);
      if (const auto* recast = std::get_if<ir::Recast>(&op.data)) recast_here(*recast, id, spot);
      if (const auto* store = std::get_if<ir::Store>(&op.data)) widen(*store, id, spot);
      i = spot.index;
      for (const ir::RegionId inner : ir::regions_of(op)) convert(inner);
    }
  }

  ir::OpId insert(Spot& spot, ir::OpId beside, ir::OpData data) {
    const ir::OpId id = function_.ops.push({function_.ops[beside].span, std::move(data), {}});
    auto& ops = function_.regions[spot.region].ops;
    ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(spot.index), id);
    ++spot.index;
    unit_of_[id] = unit_of_.at(beside);
    return id;
  }

  ir::ValueId insert_value(Spot& spot, ir::OpId beside, ir::OpData data, ir::Type type,
                           const std::string& name) {
    const ir::OpId id = insert(spot, beside, std::move(data));
    const ir::ValueId value = function_.values.push({unique(name), std::move(type), id});
    function_.ops[id].result = value;
    return value;
  }

  std::string unique(const std::string& wanted) const {
    const auto taken = [&](const std::string& name) {
      return std::ranges::any_of(function_.values,
                                 [&](const ir::Value& value) { return value.name == name; });
    };
    std::string name = wanted;
    for (int i = 1; taken(name); ++i) name = format("{}_{}", wanted, i);
    return name;
  }

  ir::ValueId new_tile(Spot& spot, ir::OpId at, const ir::FragType& like, const Fragment& map,
                       const std::string& name) {
    ir::FragType type = like;
    type.role = ir::Role::kTile;
    const std::string made = unique(name);
    ir::Alloc alloc{.name = made};
    set_registers(alloc, map);
    return insert_value(spot, at, std::move(alloc), type, made);
  }

  // Shared memory for a tile of each unit, and this unit's part of it.
  ir::ValueId scratch(Spot& spot, ir::OpId at, const ir::FragType& type, const std::string& name) {
    const Unit unit = unit_of_.at(at);
    check_meeting(at, name);
    ir::ViewType whole{type.dtype, ir::Space::kShared, {type.rows, type.cols}};
    if (unit.count == 1) {
      return insert_value(spot, at, ir::Alloc{.name = unique(name)}, whole, name);
    }
    const ir::ViewType part = whole;
    whole.shape.insert(whole.shape.begin(), ir::Expr(unit.count));
    const ir::ValueId all = insert_value(spot, at, ir::Alloc{.name = unique(name)}, whole, name);
    return insert_value(spot, at,
                        ir::Subview{.base = all, .origin = {unit.number, 0, 0}, .drop = 1}, part,
                        name + "_part");
  }

  // The threads wait for each other around it: all of the block, or of its `inthreads` region.
  void check_meeting(ir::OpId at, const std::string& name) {
    if (!unit_of_.at(at).diverged) return;
    failed_ = true;
    (void)diags_.report<diag::TileDivergent>(function_.ops[at].span, name)
        .help("move it out of the `if`, or give each row to one warp: fewer threads, or more rows")
        .emit();
  }

  // An operand of an apply that lies elsewhere is converted in front of it.
  void meet(const ir::Apply& apply, ir::OpId id, Spot& spot) {
    const auto whole = known(apply.frag);
    for (const ir::ValueId tile : ir::tiles_in(function_, apply)) {
      const auto has = known(tile);
      if (tile == apply.frag || !target::values_beside(*has, *whole).empty()) continue;
      if (is_set(apply, tile)) {
        failed_ = true;
        (void)diags_
            .report<diag::TileLayout>(function_.ops[id].span, function_.values[tile].name,
                                      function_.values[apply.frag].name)
            .help("set it in a statement of its own")
            .emit();
        continue;
      }
      const ir::FragType type = function_.frag_type(tile);
      const ir::ValueId near =
          new_tile(spot, id, type, beside(tile, *whole), function_.values[tile].name + "_here");
      transfer(spot, id, tile, near);
      ir::walk(function_, apply.body, [&](ir::OpId inner) {
        auto* element = std::get_if<ir::Element>(&function_.ops[inner].data);
        if (element != nullptr && element->frag == tile) element->frag = near;
      });
    }
  }

  bool is_set(const ir::Apply& apply, ir::ValueId tile) const {
    bool found = false;
    ir::walk(function_, apply.body, [&](ir::OpId id) {
      const auto* set = std::get_if<ir::SetElement>(&function_.ops[id].data);
      found = found || (set != nullptr && set->frag == tile);
    });
    return found;
  }

  // `to` becomes `from`, the cheapest way.
  void transfer(Spot& spot, ir::OpId at, ir::ValueId from, ir::ValueId to) {
    if (ir::needs_no_memory(function_, {to, from})) {
      insert(spot, at, ir::Convert{to, from});
      return;
    }
    const ir::FragType type = function_.frag_type(from);
    const ir::ValueId view = scratch(spot, at, type, function_.values[from].name + "_turned");
    insert(spot, at, ir::Store{.frag = from, .view = view});
    insert(spot, at, ir::Load{.frag = to, .view = view, .to_registers = true});
  }

  void erase(const Spot& spot) {
    auto& ops = function_.regions[spot.region].ops;
    ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(spot.index));
  }

  void move(const ir::Convert& convert, ir::OpId id, Spot& spot) {
    if (ir::needs_no_memory(function_, convert)) return;
    transfer(spot, id, convert.source, convert.frag);
    erase(spot);
    --spot.index;
  }

  // Whether vectors can move the tile to where the store writes it, if its lanes have runs of eight.
  bool goes_in_vectors(const ir::Store& store) const {
    const ir::ViewType& view = function_.view_type(store.view);
    const ir::FragType& type = function_.frag_type(store.frag);
    const bool is_whole = store.first_column == 0 && view.shape.back().is(type.cols);
    return view.space == ir::Space::kGlobal && view.dtype == type.dtype &&
           info(type.dtype).bits == kTradedBits && !store.transposed && is_whole &&
           type.role == ir::Role::kTile &&
           begin_at_multiples(function_, store.view, kVectorBytes * 8 / kTradedBits);
  }

  // Whether the elements that a store writes may be other lanes' than those that have them. No barrier stands between two writes
  // to global memory, and none at all where threads part ways: there a program is right if each lane comes to its own elements
  // again.
  bool is_left_alone(const ir::Store& store, bool diverged) const {
    const ir::ValueId root = ir::root_of(function_, store.view);
    return std::ranges::none_of(order_, [&](ir::OpId id) {
      const ir::Op& op = function_.ops[id];
      const auto* other = std::get_if<ir::Store>(&op.data);
      const bool alike = other != nullptr &&
                         has_extents(other->frag, function_.frag_type(store.frag)) &&
                         goes_in_vectors(*other);
      if (alike) return false;
      return std::ranges::any_of(ir::memory_touched(function_, op), [&](const ir::Touch& touch) {
        return (touch.writes() || diverged) && ir::root_of(function_, touch.value) == root;
      });
    });
  }

  // Elements of 16 bits that lie in pairs leave in vectors: the lanes of a quad trade them first.
  void widen(const ir::Store& store, ir::OpId id, Spot& spot) {
    if (!goes_in_vectors(store)) return;
    const auto wide = target::with_runs(*known(store.frag));
    if (!wide || !is_left_alone(store, unit_of_.at(id).diverged)) return;
    const ir::FragType type = function_.frag_type(store.frag);
    const ir::ValueId made =
        new_tile(spot, id, type, *wide, function_.values[store.frag].name + "_runs");
    transfer(spot, id, store.frag, made);
    std::get<ir::Store>(function_.ops[id].data).frag = made;
  }

  // Parts that lie in several warps are put together in shared memory.
  void gather(ir::Reduce reduce, ir::OpId id, Spot& spot) {
    const auto dimension = static_cast<int>(reduce.dimension);
    const bool in_parts = target::parts_along(*known(reduce.source), dimension) > 1;
    if (in_parts && reduce.kind == ir::ReduceKind::kArgMax) {
      reduce.source = whole_lines(reduce, id, spot);
      if (failed_) return;
      std::get<ir::Reduce>(function_.ops[id].data).source = reduce.source;
    }
    const Fragment source = *known(reduce.source);
    const int parts = target::parts_along(source, dimension);
    const Fragment wanted = beside(reduce.frag, source);
    ir::ValueId result = reduce.frag;
    const auto has = known(reduce.frag);
    if (!is_same(*has, wanted) && target::values_beside(*has, source).empty()) {
      result = new_tile(spot, id, function_.frag_type(reduce.frag), wanted,
                        function_.values[reduce.frag].name + "_made");
    }
    auto& last = std::get<ir::Reduce>(function_.ops[id].data);
    last.frag = result;
    if (parts > 1) gather_parts(std::get<ir::Reduce>(function_.ops[id].data), id, spot, parts);
    if (result == reduce.frag) return;
    ++spot.index;
    transfer(spot, id, result, reduce.frag);
    --spot.index;
  }

  // A scan goes along lines that lie in one warp each, and alike in both of its tiles.
  void line_up(const ir::Scan& scan, ir::OpId id, Spot& spot) {
    const Fragment source = *known(scan.source);
    const Fragment result = *known(scan.frag);
    const Fragment wanted = is_lined_up(source, scan) ? source
                            : is_lined_up(result, scan)
                                ? result
                                : spread(scan.source, static_cast<int>(scan.dimension));
    if (!is_same(source, wanted)) {
      const ir::ValueId lines = new_tile(spot, id, function_.frag_type(scan.source), wanted,
                                         function_.values[scan.source].name + "_lines");
      check_size(lines);
      if (failed_) return;
      transfer(spot, id, scan.source, lines);
      std::get<ir::Scan>(function_.ops[id].data).source = lines;
    }
    if (is_same(result, wanted)) return;
    const ir::ValueId sums = new_tile(spot, id, function_.frag_type(scan.frag), wanted,
                                      function_.values[scan.frag].name + "_made");
    std::get<ir::Scan>(function_.ops[id].data).frag = sums;
    ++spot.index;
    transfer(spot, id, sums, scan.frag);
    --spot.index;
  }

  // Lanes recast what they hold: into a tile with a layout of its own, if the other wants another.
  void recast_here(const ir::Recast& recast, ir::OpId id, Spot& spot) {
    const ir::RecastSides sides = ir::sides_of(function_, recast);
    if (!ir::parts_of_values(ir::tile_registers(function_, sides.wide),
                             ir::tile_registers(function_, sides.narrow), sides.count)
             .empty()) {
      return;
    }
    // The wide tile's layout always has one beside it; its values are fewer to move, too.
    const ir::ValueId made = new_tile(spot, id, function_.frag_type(sides.narrow),
                                      target::split_columns(*known(sides.wide), sides.count),
                                      function_.values[sides.narrow].name + "_made");
    if (sides.narrow == recast.source) {
      transfer(spot, id, recast.source, made);
      std::get<ir::Recast>(function_.ops[id].data).source = made;
      return;
    }
    std::get<ir::Recast>(function_.ops[id].data).frag = made;
    ++spot.index;
    transfer(spot, id, made, recast.frag);
    --spot.index;
  }

  // A place cannot be told from the places of parts: the tile is converted to one each of whose lines
  // lies in one warp.
  ir::ValueId whole_lines(const ir::Reduce& reduce, ir::OpId id, Spot& spot) {
    const ir::ValueId lines = new_tile(spot, id, function_.frag_type(reduce.source),
                                       spread(reduce.source, static_cast<int>(reduce.dimension)),
                                       function_.values[reduce.source].name + "_lines");
    check_size(lines);
    if (!failed_) transfer(spot, id, reduce.source, lines);
    return lines;
  }

  void gather_parts(ir::Reduce reduce, ir::OpId id, Spot& spot, int parts) {
    const auto dimension = static_cast<int>(reduce.dimension);
    const Fragment source = *known(reduce.source);
    const std::string name = function_.values[reduce.frag].name;
    ir::FragType type = function_.frag_type(reduce.frag);
    (dimension == 0 ? type.rows : type.cols) = parts;
    const ir::ValueId part =
        new_tile(spot, id, type, reduced(source, dimension, parts), name + "_parts");
    insert(spot, id,
           ir::Reduce{.frag = part,
                      .source = reduce.source,
                      .kind = reduce.kind,
                      .dimension = dimension,
                      .parts = parts});
    const ir::ValueId view = scratch(spot, id, type, name + "_shared");
    insert(spot, id, ir::Store{.frag = part, .view = view});
    const ir::TileRegisters one = ir::tile_registers(function_, reduce.frag);
    const ir::ValueId all =
        new_tile(spot, id, type, repeated(one.map, dimension, parts), name + "_all");
    insert(spot, id, ir::Load{.frag = all, .view = view, .to_registers = true});
    std::get<ir::Reduce>(function_.ops[id].data).source = all;
  }

  ir::Function& function_;
  const target::Arch& arch_;
  ir::Varying varying_;
  Diagnostics& diags_;
  std::vector<ir::ValueId> tiles_;
  std::vector<ir::OpId> order_;
  std::map<ir::OpId, Unit> unit_of_;
  bool failed_ = false;
};

}  // namespace

Checked<bool> assign_registers(ir::Module& module, Diagnostics& diags) {
  bool failed = false;
  for_each_launch(module, [&](ir::Function& function, ir::OpId launch) {
    failed = !Assigner(function, *module.arch, diags).run(launch) || failed;
  });
  if (failed) return diags.failed();
  return true;
}

}  // namespace kiln::passes
