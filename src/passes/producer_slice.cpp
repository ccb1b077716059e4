#include "passes/producer_slice.h"

#include <map>
#include <optional>

#include "ir/effects.h"
#include "ir/reflect.h"
#include "passes/copies_ahead.h"
#include "passes/for_each_launch.h"

namespace kiln::passes {

namespace {

using ir::OpId;
using ir::ValueId;

class Slicer {
 public:
  Slicer(const ir::Function& function, OpId launch, OpId loop, const LoopCopies& found)
      : function_(function), loop_(loop), found_(found), body_(body_of(function, launch)) {
    ir::walk(function, body_, [&](OpId id) {
      inside_.insert(id);
      const auto* bind = std::get_if<ir::Bind>(&op(id).data);
      if (bind != nullptr) binds_[bind->var] = id;
    });
    around_ = ancestors_of(function, launch, loop);
  }

  std::optional<Obstacle> run(std::set<OpId>& out) {
    std::optional<Obstacle> obstacle = is_left_early();
    for (const OpId id : around_) {
      if (!obstacle) obstacle = keep(id);
    }
    if (!obstacle) obstacle = keep_exprs(loop_);
    for (const CopyAhead& each : found_.copies) {
      for (const OpId id : each.address) {
        if (!obstacle) obstacle = keep(id);
      }
      const auto& copy = std::get<ir::Copy>(op(each.copy).data);
      if (!obstacle) obstacle = keep_value(copy.src);
      if (!obstacle) obstacle = keep_exprs(each.copy);
    }
    if (!obstacle) out.insert(needed_.begin(), needed_.end());
    return obstacle;
  }

 private:
  [[nodiscard]] const ir::Op& op(OpId id) const { return function_.ops[id]; }
  [[nodiscard]] const std::string& name(ValueId value) const {
    return function_.values[value].name;
  }

  // Jumps over the loop, which the producer would not take.
  std::optional<Obstacle> is_left_early() const { return jump_in(body_, true); }

  std::optional<Obstacle> jump_in(ir::RegionId region, bool around) const {
    for (const OpId id : function_.regions[region].ops) {
      const bool yields =
          op(id).kind() == ir::OpKind::kYield || op(id).kind() == ir::OpKind::kReturn;
      if (ir::leaves_early(op(id).kind()) && (yields || around)) {
        return Obstacle{"the kernel's threads may leave in front of it", op(id).span};
      }
      const bool other_loop =
          ir::is_loop(op(id).kind()) && std::ranges::find(around_, id) == around_.end();
      for (const ir::RegionId inner : ir::regions_of(op(id))) {
        if (auto found = jump_in(inner, around && !other_loop)) return found;
      }
    }
    return std::nullopt;
  }

  std::optional<Obstacle> keep(OpId id) {
    if (!inside_.contains(id) || !needed_.insert(id).second) return std::nullopt;
    if (auto found = cannot_keep(id)) return found;
    std::optional<Obstacle> found;
    ir::for_each_operand(op(id), [&](std::string_view, ValueId operand) {
      if (!found && operand.valid()) found = keep_value(operand);
    });
    if (!found) found = keep_exprs(id);
    return found;
  }

  std::optional<Obstacle> keep_value(ValueId value) {
    const OpId def = function_.values[value].def;
    return def.valid() ? keep(def) : std::nullopt;
  }

  std::optional<Obstacle> keep_exprs(OpId id) {
    std::optional<Obstacle> found;
    ir::for_each_expr(op(id), [&](const ir::Expr& expr) {
      std::vector<ir::VarId> vars;
      expr.collect_vars(vars);
      for (const ir::VarId var : vars) {
        const auto bind = binds_.find(var);
        if (!found && bind != binds_.end()) found = keep(bind->second);
      }
    });
    return found;
  }

  std::optional<Obstacle> cannot_keep(OpId id) const {
    const ir::OpKind kind = op(id).kind();
    if (kind == ir::OpKind::kFor || kind == ir::OpKind::kIf || ir::is_pure(kind))
      return std::nullopt;
    if (kind == ir::OpKind::kSubview || kind == ir::OpKind::kAlias || kind == ir::OpKind::kBind ||
        kind == ir::OpKind::kGet) {
      return std::nullopt;
    }
    if (kind == ir::OpKind::kAlloc) return is_set(id);
    if (const auto* read = std::get_if<ir::Read>(&op(id).data)) {
      return is_written(ir::root_of(function_, read->view));
    }
    return Obstacle{"whether and how often it runs depends on what the kernel computes",
                    op(id).span};
  }

  // A variable that keeps its first value is as good as a number.
  std::optional<Obstacle> is_set(OpId alloc) const {
    const ValueId cell = op(alloc).result;
    for (const OpId id : inside_) {
      const auto* set = std::get_if<ir::Set>(&op(id).data);
      if (set == nullptr || set->cell != cell) continue;
      return Obstacle{format("whether and how often it runs depends on `{}`, which the kernel sets",
                             name(cell)),
                      op(id).span};
    }
    return std::nullopt;
  }

  std::optional<Obstacle> is_written(ValueId root) const {
    for (const OpId id : inside_) {
      bool writes = false;
      for (const ir::Touch& touch : ir::memory_touched(function_, op(id))) {
        writes = writes || (touch.writes() && ir::root_of(function_, touch.value) == root);
      }
      if (!writes) continue;
      return Obstacle{
          format("whether and how often it runs depends on `{}`, which the kernel writes",
                 name(root)),
          op(id).span};
    }
    return std::nullopt;
  }

  const ir::Function& function_;
  OpId loop_;
  const LoopCopies& found_;
  ir::RegionId body_;
  std::set<OpId> inside_;
  std::map<ir::VarId, OpId> binds_;
  std::vector<OpId> around_;
  std::set<OpId> needed_;
};

bool find_way(const ir::Function& function, ir::RegionId region, OpId wanted,
              std::vector<OpId>& way) {
  for (const OpId id : function.regions[region].ops) {
    if (id == wanted) return true;
    way.push_back(id);
    for (const ir::RegionId inner : ir::regions_of(function.ops[id])) {
      if (find_way(function, inner, wanted, way)) return true;
    }
    way.pop_back();
  }
  return false;
}

}  // namespace

std::optional<Obstacle> producer_slice(const ir::Function& function, ir::OpId launch, ir::OpId loop,
                                       const LoopCopies& found, std::set<ir::OpId>& out) {
  return Slicer(function, launch, loop, found).run(out);
}

std::vector<ir::OpId> ancestors_of(const ir::Function& function, ir::OpId launch, ir::OpId wanted) {
  std::vector<OpId> way;
  find_way(function, body_of(function, launch), wanted, way);
  return way;
}

}  // namespace kiln::passes
