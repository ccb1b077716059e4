#include "emit/cuda/uses.h"

#include <algorithm>

#include "ir/effects.h"
#include "ir/reflect.h"
#include "ir/strides.h"

namespace kiln::emit {

using ir::Expr;
using ir::Function;
using ir::Op;
using ir::OpId;
using ir::OpKind;
using ir::RegionId;
using ir::ValueId;
using ir::VarId;

namespace {

bool is_read(OpKind kind) {
  return kind == OpKind::kRead || kind == OpKind::kGet || kind == OpKind::kElement;
}

// The side of a bulk copy that the kernel sees through a tensor map; invalid of other operations.
ValueId mapped_view(const Function& function, const Op& op) {
  const auto* copy = std::get_if<ir::Copy>(&op.data);
  if (copy == nullptr || copy->way != ir::CopyWay::kBulk) return {};
  return function.view_type(copy->dst).space == ir::Space::kGlobal ? copy->dst : copy->src;
}

class Marker {
 public:
  Marker(const Function& function, OpId launch) : function_(function) {
    out_.live_ops.resize(function.ops.size());
    out_.inside.resize(function.ops.size());
    out_.vars.resize(function.vars.size());
    out_.value_uses.resize(function.values.size());
    out_.written_roots.resize(function.values.size());
    binds_.resize(function.vars.size());
    inner_vars_.resize(function.vars.size());
    inside_ = collect(launch);
  }

  KernelUses run() {
    for (const OpId id : inside_) {
      if (is_root(function_.ops[id])) mark(id);
      while (!marked_.empty()) {
        const OpId next = marked_.back();
        marked_.pop_back();
        look_at(next);
      }
    }
    for (const OpId id : inside_) {
      const bool bulk = mapped_view(function_, function_.ops[id]).valid();
      if (bulk) out_.bulk_copies.push_back(id);
    }
    for (std::uint32_t v = 0; v < function_.vars.size(); ++v) {
      if (out_.vars[v] && !inner_vars_[v]) out_.outer_vars.push_back(VarId{v});
    }
    for (std::uint32_t v = 0; v < function_.values.size(); ++v) {
      if (is_captured(ValueId{v})) out_.outer_values.push_back(ValueId{v});
    }
    return std::move(out_);
  }

 private:
  std::vector<OpId> collect(OpId launch) {
    const auto& parallel = std::get<ir::Parallel>(function_.ops[launch].data);
    ir::for_each_var_set(function_.ops[launch], [&](VarId var) { inner_vars_[var.index] = true; });
    std::vector<OpId> ops;
    collect(parallel.body, ops);
    return ops;
  }

  // What stands in for CUDA is not in the kernel: the CUDA is.
  void collect(RegionId region, std::vector<OpId>& ops) {
    for (const OpId id : function_.regions[region].ops) {
      ops.push_back(id);
      out_.inside[id.index] = true;
      const Op& op = function_.ops[id];
      ir::for_each_var_set(op, [&](VarId var) { inner_vars_[var.index] = true; });
      if (const auto* bind = std::get_if<ir::Bind>(&op.data)) binds_[bind->var.index] = id;
      ir::for_each_touch(op, [&](const ir::Touch& touch) {
        if (touch.reads()) cells_read_.push_back(touch.value);
      });
      if (op.kind() == OpKind::kCuda) continue;
      for (const RegionId inner : ir::regions_of(op)) collect(inner, ops);
    }
  }

  // Operations that must be there whoever uses them.
  bool is_root(const Op& op) const {
    if (const auto* set = std::get_if<ir::Set>(&op.data)) {
      return std::ranges::find(cells_read_, set->cell) != cells_read_.end();
    }
    if (op.result.valid()) return ir::changes_memory(function_, op);
    return op.kind() != OpKind::kBind;
  }

  // What it needs is looked at later: values may hang together in long chains.
  void mark(OpId id) {
    if (out_.live_ops[id.index]) return;
    out_.live_ops[id.index] = true;
    marked_.push_back(id);
  }

  void look_at(OpId id) {
    const Op& op = function_.ops[id];
    ir::for_each_expr(op, [&](const Expr& expr) { mark(expr); });
    const ValueId mapped = mapped_view(function_, op);
    if (mapped.valid()) mark_origin(mapped);
    ir::for_each_operand(op, [&](std::string_view, ValueId value) {
      if (value.valid() && value != mapped) mark(value);
    });
    if (op.result.valid()) mark_shape(op.result);
    if (const auto* inner = std::get_if<ir::Parallel>(&op.data)) {
      // The outermost extent is never printed: nothing is taken modulo it.
      for (std::size_t i = 1; i < inner->vars.size(); ++i) {
        mark(function_.vars[inner->vars[i]].extent);
      }
    }
    for (const ir::Touch& touch : ir::memory_touched(function_, op)) {
      if (!touch.writes()) continue;
      const ValueId root = ir::resolve_view(function_, touch.value).root;
      out_.written_roots[root.index] = true;
      out_.written_roots[ir::storage_of(function_, root).index] = true;
    }
  }

  void mark(ValueId value) {
    ++out_.value_uses[value.index];
    mark_shape(value);
    const OpId def = function_.values[value].def;
    if (def.valid() && comes_along(def)) mark(def);
    for (const ir::Param& param : function_.params) {
      if (param.value == value && param.var.valid()) mark(Expr::var(param.var));
    }
  }

  // Of a window behind a tensor map only the coordinates are spelled.
  void mark_origin(ValueId view) {
    for (const Expr& coordinate : ir::resolve_view(function_, view).origin) mark(coordinate);
  }

  // Host values that are spelled again inside the kernel instead of being passed.
  bool comes_along(OpId def) const {
    if (out_.inside[def.index]) return true;
    const OpKind kind = function_.ops[def].kind();
    return kind == OpKind::kSubview || kind == OpKind::kAlias || kind == OpKind::kConst ||
           kind == OpKind::kIndex;
  }

  void mark_shape(ValueId value) {
    const auto* view = std::get_if<ir::ViewType>(&function_.type(value));
    if (view == nullptr) return;
    for (const Expr& extent : view->shape) mark(extent);
  }

  void mark(const Expr& expr) {
    std::vector<VarId> used;
    expr.collect_vars(used);
    for (const VarId var : used) {
      out_.vars[var.index] = true;
      if (binds_[var.index].valid()) mark(binds_[var.index]);
    }
  }

  bool is_captured(ValueId value) const {
    if (out_.value_uses[value.index] == 0) return false;
    for (const ir::Param& param : function_.params) {
      if (param.value == value) return !param.var.valid();
    }
    const OpId def = function_.values[value].def;
    return def.valid() && !comes_along(def);
  }

  const Function& function_;
  KernelUses out_;
  std::vector<OpId> marked_;  // and not yet looked at
  std::vector<OpId> inside_;
  std::vector<OpId> binds_;  // by VarId: the Bind inside the kernel
  std::vector<bool> inner_vars_;
  std::vector<ValueId> cells_read_;
};

// Decides, backwards through one region, where each scalar is spelled: `printed_at_` is the
// position of the statement whose text holds it.
class Inliner {
 public:
  Inliner(const Function& function, const KernelUses& uses) : function_(function), uses_(uses) {
    inlined_.resize(function.values.size());
    nesting_.resize(function.values.size());
    user_position_.resize(function.values.size(), -1);
  }

  void visit(RegionId region) {
    const std::vector<OpId>& ops = function_.regions[region].ops;
    for (auto at = static_cast<std::ptrdiff_t>(ops.size()) - 1; at >= 0; --at) {
      const OpId id = ops[static_cast<std::size_t>(at)];
      if (uses_.live_ops[id.index]) place(ops, at);
    }
    for (const OpId id : ops) {
      if (function_.ops[id].kind() == OpKind::kCuda) continue;
      for (const RegionId inner : ir::regions_of(function_.ops[id])) visit(inner);
    }
  }

  std::vector<bool> take() { return std::move(inlined_); }

 private:
  void place(const std::vector<OpId>& ops, std::ptrdiff_t at) {
    const Op& op = function_.ops[ops[static_cast<std::size_t>(at)]];
    std::ptrdiff_t printed = at;
    int nesting = 1;
    if (op.result.valid() && nesting_[op.result.index] < kNestingMax && may_move(op, ops, at)) {
      inlined_[op.result.index] = true;
      printed = user_position_[op.result.index];
      nesting = nesting_[op.result.index] + 1;
    }
    ir::for_each_operand(op, [&](std::string_view, ValueId value) {
      if (!value.valid()) return;
      user_position_[value.index] = printed;
      nesting_[value.index] = nesting;
    });
  }

  bool may_move(const Op& op, const std::vector<OpId>& ops, std::ptrdiff_t at) const {
    if (op.kind() == OpKind::kConst) return true;
    if (const auto* index = std::get_if<ir::Index>(&op.data)) {
      if (index->expr.constant() || index->expr.as_var()) return true;
    }
    if (!ir::is_pure(op.kind()) && !is_read(op.kind())) return false;
    if (uses_.value_uses[op.result.index] != 1) return false;
    const std::ptrdiff_t user = user_position_[op.result.index];
    if (user < at) return false;  // used in another region
    if (ir::is_pure(op.kind())) return true;
    return std::all_of(ops.begin() + at + 1, ops.begin() + user, [&](OpId between) {
      const OpKind kind = function_.ops[between].kind();
      return ir::is_pure(kind) || is_read(kind) || kind == OpKind::kSubview ||
             kind == OpKind::kAlias;
    });
  }

  // Expressions in the text are nested no deeper; what is deeper gets a name.
  static constexpr int kNestingMax = 512;

  const Function& function_;
  const KernelUses& uses_;
  std::vector<bool> inlined_;
  std::vector<int> nesting_;  // by ValueId: how many spelled operations are around it
  // By ValueId: where in the region now visited its user is printed; -1 when not there.
  std::vector<std::ptrdiff_t> user_position_;
};

}  // namespace

KernelUses kernel_uses(const Function& function, OpId launch) {
  return Marker(function, launch).run();
}

std::vector<bool> inlined_values(const Function& function, RegionId body, const KernelUses& uses) {
  Inliner inliner(function, uses);
  inliner.visit(body);
  return inliner.take();
}

}  // namespace kiln::emit
