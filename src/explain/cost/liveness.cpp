#include "explain/cost/liveness.h"

#include <set>
#include <unordered_map>

#include "ir/effects.h"
#include "ir/reflect.h"

namespace kiln::explain {

namespace {

using ir::Function;
using ir::OpId;
using ir::RegionId;
using ir::ValueId;

using Values = std::set<std::uint32_t>;  // indices of ValueIds

void add_all(const Values& more, Values& to) { to.insert(more.begin(), more.end()); }

bool runs_beside(const ir::Op& op) {
  const auto* role = std::get_if<ir::Inthreads>(&op.data);
  return role != nullptr && role->async;
}

// Backwards through the program: what is needed behind an operation tells what is needed before it.
class Needs {
 public:
  Needs(const Function& function, RegionId body, const std::vector<int>& registers)
      : function_(function), registers_(registers) {
    number(body);
    (void)region(body, {});
  }

  [[nodiscard]] const FullestPlace& fullest() const { return fullest_; }

 private:
  // Where a jump in a loop goes on.
  struct Loop {
    Values behind;
    Values next_trip;
  };

  void number(RegionId region) {
    for (const OpId id : function_.regions[region].ops) {
      order_.emplace(id.index, order_.size());
      for (const RegionId inner : ir::regions_of(function_.ops[id])) number(inner);
    }
  }

  Values region(RegionId id, Values needed) {
    const auto& ops = function_.regions[id].ops;
    for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
      note(*op, needed);
      needed = before(*op, std::move(needed));
      note(*op, needed);
    }
    return needed;
  }

  Values before(OpId id, Values behind) {
    const ir::Op& op = function_.ops[id];
    if (runs_beside(op)) return behind;
    if (ir::is_loop(op.kind())) return before_loop(op, std::move(behind));
    if (ir::leaves_early(op.kind())) return before_jump(op.kind(), std::move(behind));
    if (const auto* apply = std::get_if<ir::Apply>(&op.data)) {
      return before_apply(*apply, std::move(behind));
    }
    if (op.kind() == ir::OpKind::kParallel) {
      return region(ir::regions_of(op).front(), std::move(behind));
    }
    return before_other(op, std::move(behind));
  }

  [[nodiscard]] Values before_jump(ir::OpKind kind, Values behind) const {
    if (kind == ir::OpKind::kYield) return {};
    if (loops_.empty()) return behind;
    return kind == ir::OpKind::kBreak ? loops_.back().behind : loops_.back().next_trip;
  }

  // Until nothing more is carried from one trip to the next.
  Values before_loop(const ir::Op& op, Values behind) {
    Values needed = behind;
    for (std::size_t known = SIZE_MAX; known != needed.size();) {
      known = needed.size();
      loops_.push_back({behind, needed});
      for (const RegionId body : ir::regions_of(op)) {
        add_all(region(body, needed), needed);
      }
      loops_.pop_back();
    }
    return needed;
  }

  // Each element is made of those at its place: a tile of which all are set need not be there before.
  Values before_apply(const ir::Apply& apply, Values needed) {
    for (const OpId id : function_.regions[apply.body].ops) {
      const auto* set = std::get_if<ir::SetElement>(&function_.ops[id].data);
      if (set != nullptr && same_extents(set->frag, apply.frag)) needed.erase(set->frag.index);
    }
    ir::walk(function_, apply.body, [&](OpId id) {
      const ir::Op& op = function_.ops[id];
      const auto* set = std::get_if<ir::SetElement>(&op.data);
      if (set != nullptr && !same_extents(set->frag, apply.frag)) add(needed, set->frag);
      if (set == nullptr) add_reads(op, needed);
    });
    return needed;
  }

  Values before_other(const ir::Op& op, Values behind) {
    Values needed = std::move(behind);
    const Values past = needed;  // past an `if`, or an `inthreads` of others
    for (const RegionId inner : ir::regions_of(op)) {
      add_all(region(inner, past), needed);
    }
    if (op.result.valid()) needed.erase(op.result.index);
    ir::for_each_touch(op, [&](const ir::Touch& touch) {
      const bool all = touch.use == ir::Use::kWrites && !is_view(touch.value);
      if (all) needed.erase(touch.value.index);
    });
    add_reads(op, needed);
    return needed;
  }

  // Also what is written in part.
  void add_reads(const ir::Op& op, Values& needed) const {
    ir::for_each_touch(op, [&](const ir::Touch& touch) {
      const bool part = touch.writes() && is_view(touch.value);
      if (touch.reads() || part) add(needed, touch.value);
    });
  }

  void add(Values& needed, ValueId value) const {
    const ValueId root = is_view(value) ? ir::root_of(function_, value) : value;
    if (registers_[root.index] != 0) needed.insert(root.index);
  }

  [[nodiscard]] bool is_view(ValueId value) const {
    return std::holds_alternative<ir::ViewType>(function_.type(value));
  }

  [[nodiscard]] bool same_extents(ValueId a, ValueId b) const {
    const ir::FragType& left = function_.frag_type(a);
    const ir::FragType& right = function_.frag_type(b);
    return left.rows == right.rows && left.cols == right.cols;
  }

  void note(OpId id, const Values& needed) {
    int sum = 0;
    for (const std::uint32_t value : needed) sum += registers_[value];
    if (sum == 0 || sum < fullest_.registers) return;
    const bool earlier = fullest_.at.valid() && order_.at(id.index) < order_.at(fullest_.at.index);
    if (sum == fullest_.registers && !earlier) return;
    fullest_ = {sum, id, {}};
    for (const std::uint32_t value : needed) fullest_.alive.push_back(ValueId{value});
  }

  const Function& function_;
  const std::vector<int>& registers_;
  std::unordered_map<std::uint32_t, std::size_t> order_;  // by OpId
  std::vector<Loop> loops_;
  FullestPlace fullest_;
};

}  // namespace

FullestPlace fullest_place(const Function& function, RegionId body,
                           const std::vector<int>& registers) {
  return Needs(function, body, registers).fullest();
}

}  // namespace kiln::explain
