#include "passes/keep_parts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "ir/effects.h"
#include "ir/registers.h"
#include "passes/cloner.h"
#include "passes/for_each_launch.h"
#include "passes/op_maker.h"

namespace kiln::passes {

namespace {

// What an operation means to the sum.
enum class Role : std::uint8_t {
  kNone,
  kAdds,    // what lanes have put together: `Joins` has it
  kShifts,  // adds something else
  kScales,
  kSets,
  kReads,
  kUnclear,
};

// `apply frag=%l { l = l + l_sum }`, and what made the sum.
struct Join {
  ir::ValueId row;
  ir::OpId reduce;
  std::vector<ir::OpId> asks =
      {};  // `apply frag=%flags { flags = l_sum > 5 ? 1 : 0 }`, for votes that take parts
};
using Joins = std::map<ir::OpId, Join>;

// The body of an apply in a straight line, and the one element of `tile` that it sets.
struct Body {
  const ir::Function& function;
  ir::RegionId region;
  ir::ValueId tile;
  bool straight = true;
  int sets_tile = 0;
  int sets_others = 0;
  int reads = 0;
  ir::ValueId value = {};

  Body(const ir::Function& f, const ir::Apply& apply, ir::ValueId row)
      : function(f), region(apply.body), tile(row) {
    for (const ir::OpId id : function.regions[region].ops) {
      const ir::Op& op = function.ops[id];
      straight = straight && ir::regions_of(op).empty();
      const auto* set = std::get_if<ir::SetElement>(&op.data);
      const auto* element = std::get_if<ir::Element>(&op.data);
      if (element != nullptr && element->frag == tile) ++reads;
      if (set == nullptr) continue;
      if (set->frag != tile) {
        ++sets_others;
        continue;
      }
      ++sets_tile;
      value = set->value;
    }
  }

  // Whether it is made of elements and numbers alone: for parts, the place in a row is another.
  [[nodiscard]] bool knows_no_place() const {
    return std::ranges::all_of(function.regions[region].ops, [&](ir::OpId id) {
      const ir::OpKind kind = function.ops[id].kind();
      return kind == ir::OpKind::kElement || kind == ir::OpKind::kSetElement ||
             kind == ir::OpKind::kBinary || kind == ir::OpKind::kUnary ||
             kind == ir::OpKind::kCast || kind == ir::OpKind::kConst || kind == ir::OpKind::kChoose;
    });
  }

  [[nodiscard]] ir::ValueId element_of(ir::ValueId wanted) const {
    const auto* element = function.def_as<ir::Element>(wanted);
    return element == nullptr ? ir::ValueId{} : element->frag;
  }
  [[nodiscard]] const ir::Binary* binary() const {
    return value.valid() ? function.def_as<ir::Binary>(value) : nullptr;
  }
};

bool has_extents(const ir::FragType& a, const ir::FragType& b) {
  return a.rows == b.rows && a.cols == b.cols;
}

using UsesOfTiles = std::map<ir::ValueId, std::vector<ir::OpId>>;

// The operation, if it makes flags of the sum's elements for votes that take parts as well.
bool is_ask(const ir::Function& function, ir::OpId id, ir::ValueId sum, const UsesOfTiles& uses) {
  const auto* apply = std::get_if<ir::Apply>(&function.ops[id].data);
  if (apply == nullptr || apply->frag == sum) return false;
  const Body body(function, *apply, apply->frag);
  const bool plain = body.straight && body.sets_tile == 1 && body.sets_others == 0 &&
                     body.reads == 0 && body.knows_no_place();
  if (!plain || !has_extents(function.frag_type(apply->frag), function.frag_type(sum)))
    return false;
  for (const ir::OpId use : uses.at(apply->frag)) {
    const auto* vote = std::get_if<ir::Vote>(&function.ops[use].data);
    const bool empties = function.ops[use].kind() == ir::OpKind::kFill;
    if (use != id && !empties && (vote == nullptr || !vote->parts)) return false;
  }
  return true;
}

// The sum that the apply adds a made one to.
std::optional<Join> join_of(const ir::Function& function, ir::OpId id, const UsesOfTiles& uses) {
  const auto* apply = std::get_if<ir::Apply>(&function.ops[id].data);
  if (apply == nullptr) return std::nullopt;
  const Body body(function, *apply, apply->frag);
  const ir::Binary* sum = body.binary();
  const bool plain = body.straight && body.sets_tile == 1 && body.sets_others == 0 &&
                     body.reads == 1 && body.knows_no_place();
  if (!plain || sum == nullptr || sum->kind != ir::BinaryKind::kAdd) return std::nullopt;
  const bool swapped = body.element_of(sum->right) == apply->frag;
  if (!swapped && body.element_of(sum->left) != apply->frag) return std::nullopt;
  const ir::ValueId made = body.element_of(swapped ? sum->left : sum->right);
  if (!made.valid() || made == apply->frag) return std::nullopt;
  const auto all = uses.find(made);
  if (all == uses.end()) return std::nullopt;
  Join out{apply->frag, {}};
  for (const ir::OpId use : all->second) {
    const auto* reduce = std::get_if<ir::Reduce>(&function.ops[use].data);
    if (reduce != nullptr && reduce->frag == made && !out.reduce.valid()) {
      if (reduce->kind != ir::ReduceKind::kSum || reduce->parts != 1) return std::nullopt;
      out.reduce = use;
    } else if (use != id) {
      if (!is_ask(function, use, made, uses)) return std::nullopt;
      out.asks.push_back(use);
    }
  }
  if (!out.reduce.valid()) return std::nullopt;
  return out;
}

// One sum, and what becomes of everything that touches it.
class Keeper {
 public:
  Keeper(ir::Function& function, ir::ValueId row, const Joins& joins)
      : function_(function), row_(row), joins_(joins) {}

  // Whether its parts can stay apart, and a loop adds to it that does not read it each time.
  [[nodiscard]] bool pays(ir::RegionId body) {
    const auto* alloc = function_.def_as<ir::Alloc>(row_);
    if (alloc == nullptr || !alloc->registers.valid() || !alloc->padded.empty()) return false;
    for (const auto& [apply, join] : joins_) {
      if (join.row == row_ && !lies_alike(join)) return false;
    }
    bool clear = map_.has_value();
    bool found = false;
    ir::walk(function_, body, [&](ir::OpId id) {
      const ir::Op& op = function_.ops[id];
      clear = clear && role_of(id) != Role::kUnclear;
      const bool loop = op.kind() == ir::OpKind::kFor || op.kind() == ir::OpKind::kLoop;
      if (loop) found = found || only_adds(ir::regions_of(op).front());
    });
    return clear && found;
  }

  void keep(ir::RegionId body) {
    for (const auto& [apply, join] : joins_) {
      if (join.row == row_) span_ = function_.ops[apply].span;
    }
    make_parts(body);
    (void)go(body, false);
  }

 private:
  // The parts lie the same way wherever they are added.
  bool lies_alike(const Join& join) {
    const auto& reduce = std::get<ir::Reduce>(function_.ops[join.reduce].data);
    dimension_ = static_cast<int>(reduce.dimension);
    const target::Fragment source = ir::tile_registers(function_, reduce.source).map;
    const target::Fragment row = ir::tile_registers(function_, row_).map;
    if (source.is_padded() || target::parts_along(source, dimension_) != 1) return false;
    if (target::lanes_along(source, dimension_).empty()) return false;
    if (function_.frag_type(reduce.frag).dtype != function_.frag_type(row_).dtype) return false;
    if (ir::tile_registers(function_, reduce.frag).map.tv != row.tv) return false;
    for (const ir::OpId ask : join.asks) {
      const ir::ValueId flags = std::get<ir::Apply>(function_.ops[ask].data).frag;
      const auto* alloc = function_.def_as<ir::Alloc>(flags);
      if (alloc == nullptr || !alloc->registers.valid() || !alloc->padded.empty()) return false;
    }
    const target::Fragment apart = target::reduced_by_lane(source, dimension_);
    if (target::values_beside(row, apart).empty()) return false;
    if (map_ && map_->tv != apart.tv) return false;
    map_ = apart;
    return true;
  }

  // In a trip, perhaps on one way of several; what reads it on one of these does not do so each time.
  [[nodiscard]] bool only_adds(ir::RegionId loop) {
    bool adds = false;
    bool reads = false;
    for (const ir::OpId id : function_.regions[loop].ops) {
      const Role role = role_of(id);
      adds = adds || role == Role::kAdds || adds_on_a_way(id);
      reads = reads || role == Role::kReads;
    }
    return adds && !reads;
  }
  [[nodiscard]] bool adds_on_a_way(ir::OpId id) {
    const auto* branch = std::get_if<ir::If>(&function_.ops[id].data);
    if (branch == nullptr) return false;
    return std::ranges::any_of(ir::regions_of(function_.ops[id]),
                               [&](ir::RegionId way) { return contains_add(way); });
  }

  [[nodiscard]] bool contains_add(ir::RegionId region) {
    bool found = false;
    ir::walk(function_, region, [&](ir::OpId id) { found = found || role_of(id) == Role::kAdds; });
    return found;
  }
  [[nodiscard]] bool touches(const ir::Op& op) const {
    bool found = false;
    ir::for_each_touch(op, [&](const ir::Touch& touch) { found = found || touch.value == row_; });
    for (const ir::RegionId region : ir::regions_of(op)) {
      ir::walk(function_, region, [&](ir::OpId id) {
        ir::for_each_touch(function_.ops[id],
                           [&](const ir::Touch& touch) { found = found || touch.value == row_; });
      });
    }
    return found;
  }

  [[nodiscard]] Role role_of(ir::OpId id) {
    const auto join = joins_.find(id);
    if (join != joins_.end() && join->second.row == row_) return Role::kAdds;
    const ir::Op& op = function_.ops[id];
    if (const auto* apply = std::get_if<ir::Apply>(&op.data)) return role_in(*apply);
    if (op.kind() == ir::OpKind::kElement || op.kind() == ir::OpKind::kSetElement) {
      return Role::kNone;  // of the apply around it
    }
    if (op.kind() == ir::OpKind::kOnce) return touches(op) ? Role::kReads : Role::kNone;
    if (op.kind() == ir::OpKind::kExchange && touches(op)) return Role::kUnclear;
    bool reads = false;
    bool writes = false;
    ir::for_each_touch(op, [&](const ir::Touch& touch) {
      if (touch.value != row_) return;
      reads = reads || touch.reads();
      writes = writes || touch.writes();
    });
    if (op.kind() == ir::OpKind::kAlloc) return Role::kNone;
    if (reads) return Role::kReads;
    return writes ? Role::kSets : Role::kNone;
  }

  [[nodiscard]] Role role_in(const ir::Apply& apply) const {
    const Body body(function_, apply, row_);
    if (!body.straight) {
      bool sets = false;
      bool found = false;
      ir::walk(function_, apply.body, [&](ir::OpId id) {
        const auto* set = std::get_if<ir::SetElement>(&function_.ops[id].data);
        const auto* element = std::get_if<ir::Element>(&function_.ops[id].data);
        sets = sets || (set != nullptr && set->frag == row_);
        found = found || (element != nullptr && element->frag == row_);
      });
      if (sets) return Role::kUnclear;
      return found ? Role::kReads : Role::kNone;
    }
    if (body.sets_tile == 0) return body.reads > 0 ? Role::kReads : Role::kNone;
    if (body.sets_tile > 1) return Role::kUnclear;
    if (!has_extents(function_.frag_type(apply.frag), function_.frag_type(row_))) {
      return Role::kUnclear;
    }
    if (body.reads == 0) return Role::kSets;
    return body.reads == 1 ? role_of_change(body) : Role::kReads;
  }

  // l * x, l + x, l - x: the one element of l is on one side. A quotient is none of its parts' quotients: not for
  // integers, nor by zero.
  [[nodiscard]] Role role_of_change(const Body& body) const {
    const ir::Binary* change = body.binary();
    if (change == nullptr) return Role::kReads;
    const bool left = body.element_of(change->left) == row_;
    const bool right = body.element_of(change->right) == row_;
    if (left == right) return Role::kReads;
    const bool scales = change->kind == ir::BinaryKind::kMul && body.knows_no_place();
    const bool shifts =
        change->kind == ir::BinaryKind::kAdd || (change->kind == ir::BinaryKind::kSub && left);
    if (scales) return body.sets_others == 0 ? Role::kScales : Role::kUnclear;
    return shifts ? Role::kShifts : Role::kReads;
  }

  // --- the change

  void make_parts(ir::RegionId body) {
    std::vector<ir::OpId> out;
    OpMaker maker(function_, span_);
    ir::FragType type = function_.frag_type(row_);
    type.rows = map_->rows;
    type.cols = map_->cols;
    parts_type_ = type;
    const std::string name = function_.values[row_].name;
    apart_ = maker.named(out, ir::Alloc{.name = name + "_apart", .registers = map_->tv}, type,
                         name + "_apart");
    empty(out);
    const bool is_there = insert_behind(body, function_.values[row_].def, out);
    KILN_CHECK(is_there, "a tile of no region");
  }

  void empty(std::vector<ir::OpId>& out) {
    OpMaker maker(function_, span_);
    const ir::ValueId zero =
        maker.named(out, ir::Const{0}, ir::ScalarType{function_.frag_type(row_).dtype}, "");
    out.push_back(maker.make(ir::Fill{apart_, zero}));
  }

  // What lanes have goes into the sum, and they begin again.
  std::vector<ir::OpId> met() {
    std::vector<ir::OpId> out;
    OpMaker maker(function_, span_);
    const ir::FragType type = function_.frag_type(row_);
    const std::string name = function_.values[row_].name + "_met";
    ir::Alloc alloc = *function_.def_as<ir::Alloc>(row_);
    alloc.name = name;
    alloc.initial = {};
    const ir::ValueId all = maker.named(out, std::move(alloc), type, name);
    out.push_back(maker.make(ir::Reduce{
        .frag = all, .source = apart_, .kind = ir::ReduceKind::kSum, .dimension = dimension_}));
    const ir::RegionId body = function_.regions.push({});
    std::vector<ir::OpId> ops;
    const ir::ScalarType scalar{type.dtype};
    const ir::ValueId one = maker.named(ops, ir::Element{row_}, scalar, "");
    const ir::ValueId other = maker.named(ops, ir::Element{all}, scalar, "");
    const ir::ValueId sum =
        maker.named(ops, ir::Binary{ir::BinaryKind::kAdd, one, other}, scalar, "");
    ops.push_back(maker.make(ir::SetElement{row_, sum}));
    function_.regions[body].ops = std::move(ops);
    out.push_back(maker.make(ir::Apply{
        .frag = row_, .row = var("row", type.rows), .col = var("col", type.cols), .body = body}));
    empty(out);
    return out;
  }

  ir::VarId var(const std::string& name, std::int64_t extent) {
    return function_.vars.push(
        {unique_var_name(function_, name), ir::VarKind::kLoop, ir::Expr(extent), span_, 0});
  }

  // The apply, about the parts instead.
  void turn(ir::OpId id) {
    Cloner other(function_);
    other.values[row_] = apart_;
    other.replace_in(id);
    auto& apply = std::get<ir::Apply>(function_.ops[id].data);
    apply.frag = apart_;
    apply.row = var("row", parts_type_.rows);
    apply.col = var("col", parts_type_.cols);
  }

  void add_apart(ir::OpId id) {
    auto& reduce = std::get<ir::Reduce>(function_.ops[joins_.at(id).reduce].data);
    const auto parts = dimension_ == 0 ? parts_type_.rows : parts_type_.cols;
    reduce.parts = parts;
    function_.values[reduce.frag].type = parts_type_;
    auto& alloc = std::get<ir::Alloc>(function_.ops[function_.values[reduce.frag].def].data);
    alloc.registers = map_->tv;
    turn(id);
    for (const ir::OpId ask : joins_.at(id).asks) ask_apart(ask);
  }

  // Of parts, whose elements are more.
  void ask_apart(ir::OpId id) {
    auto& apply = std::get<ir::Apply>(function_.ops[id].data);
    ir::FragType type = parts_type_;
    type.dtype = function_.frag_type(apply.frag).dtype;
    function_.values[apply.frag].type = type;
    std::get<ir::Alloc>(function_.ops[function_.values[apply.frag].def].data).registers = map_->tv;
    apply.row = var("row", parts_type_.rows);
    apply.col = var("col", parts_type_.cols);
  }

  ir::OpId scale_apart(ir::OpId id) {
    Cloner copy(function_);
    const ir::OpId out = copy.clone(id);
    turn(out);
    return out;
  }

  std::size_t insert(ir::RegionId region, std::size_t index, const std::vector<ir::OpId>& ops) {
    auto& there = function_.regions[region].ops;
    there.insert(there.begin() + static_cast<std::ptrdiff_t>(index), ops.begin(), ops.end());
    return ops.size();
  }
  // False where the region and those inside of it do not have the operation.
  bool insert_behind(ir::RegionId region, ir::OpId id, const std::vector<ir::OpId>& ops) {
    const std::vector<ir::OpId> there = function_.regions[region].ops;
    const auto at = std::ranges::find(there, id);
    if (at != there.end()) {
      insert(region, static_cast<std::size_t>(at - there.begin()) + 1, ops);
      return true;
    }
    return std::ranges::any_of(there, [&](ir::OpId each) {
      const ir::Regions inner = ir::regions_of(function_.ops[each]);
      return std::ranges::any_of(inner,
                                 [&](ir::RegionId next) { return insert_behind(next, id, ops); });
    });
  }

  // Returns whether lanes may have parts behind the region; `open`: in front of it.
  bool go(ir::RegionId region, bool open) {
    for (std::size_t i = 0; i < function_.regions[region].ops.size(); ++i) {
      const ir::OpId id = function_.regions[region].ops[i];
      switch (role_of(id)) {
        case Role::kAdds:
          add_apart(id);
          open = true;
          break;
        case Role::kScales: i += insert(region, i + 1, {scale_apart(id)}); break;
        case Role::kSets: {
          std::vector<ir::OpId> ops;
          if (open) empty(ops);
          i += insert(region, i + 1, ops);
          open = false;
          break;
        }
        case Role::kReads:
          if (open) i += insert(region, i, met());
          open = false;
          break;
        case Role::kNone:
        case Role::kShifts:
        case Role::kUnclear: open = enter(region, i, id, open); break;
      }
    }
    return open;
  }

  bool enter(ir::RegionId region, std::size_t& i, ir::OpId id, bool open) {
    const ir::Op op = function_.ops[id];  // a copy: operations move
    if (op.kind() == ir::OpKind::kApply) return open;
    const bool loop = op.kind() == ir::OpKind::kFor || op.kind() == ir::OpKind::kLoop;
    if (loop) {
      const ir::RegionId body = ir::regions_of(op).front();
      const bool adds = contains_add(body);
      if (open && !adds && touches(op)) {
        i += insert(region, i, met());
        open = false;
      }
      (void)go(body, open || adds);
      return open || adds;
    }
    bool after = op.kind() == ir::OpKind::kIf && ir::regions_of(op).size() < 2 && open;
    for (const ir::RegionId inner : ir::regions_of(op)) after = go(inner, open) || after;
    return ir::regions_of(op).empty() ? open : after;
  }

  ir::Function& function_;
  ir::ValueId row_;
  const Joins& joins_;
  Span span_ = {};
  int dimension_ = 1;
  std::optional<target::Fragment> map_ = {};
  ir::FragType parts_type_ = {};
  ir::ValueId apart_ = {};
};

Joins joins_in(const ir::Function& function, ir::RegionId body) {
  UsesOfTiles uses;
  ir::walk(function, body, [&](ir::OpId id) {
    const ir::Op& op = function.ops[id];
    // An apply is one use of each tile whose elements it has.
    if (op.kind() == ir::OpKind::kElement || op.kind() == ir::OpKind::kSetElement) return;
    if (const auto* apply = std::get_if<ir::Apply>(&op.data)) {
      for (const ir::ValueId tile : ir::tiles_in(function, *apply)) uses[tile].push_back(id);
      return;
    }
    if (op.kind() == ir::OpKind::kAlloc) return;
    ir::for_each_touch(op, [&](const ir::Touch& touch) {
      if (touch.value.valid()) uses[touch.value].push_back(id);
    });
  });
  Joins out;
  ir::walk(function, body, [&](ir::OpId id) {
    if (const auto join = join_of(function, id, uses)) out.emplace(id, *join);
  });
  return out;
}

}  // namespace

Checked<bool> keep_parts(ir::Module& module, Diagnostics&) {
  for_each_launch(module, [](ir::Function& function, ir::OpId launch) {
    const ir::RegionId body = body_of(function, launch);
    const Joins joins = joins_in(function, body);
    std::vector<ir::ValueId> rows;
    for (const auto& [apply, join] : joins) {
      if (std::ranges::find(rows, join.row) == rows.end()) rows.push_back(join.row);
    }
    for (const ir::ValueId row : rows) {
      Keeper keeper(function, row, joins);
      if (keeper.pays(body)) keeper.keep(body);
    }
  });
  return true;
}

}  // namespace kiln::passes
