// Which operations are said where their value is used.
//
//   %7 = get cell=%v                      v = v + x.at(i);
//   %8 = read view=%x index=[i]      =>
//   %9 = binary kind=add ...
//   set cell=%v value=%9
//
// A value that is used once moves to its use, unless what it reads may change on the way; numbers and
// index expressions move to all of theirs. Any other value gets a name.
#include "emit/co/say.h"
#include "ir/effects.h"
#include "ir/reflect.h"

namespace kiln::emit_co {

namespace {

using ir::OpId;
using ir::ValueId;

bool is_said_anywhere(const ir::Op& op) {
  return op.kind() == ir::OpKind::kConst || op.kind() == ir::OpKind::kIndex;
}

bool gives_scalar(const Co& co, const ir::Op& op) {
  return op.result.valid() && std::holds_alternative<ir::ScalarType>(co.function.type(op.result));
}

class Planner {
 public:
  explicit Planner(Co& co) : co_(co), points_(co.function.ops.size()) {}

  // From the last operation to the first, so that users are decided before what they use.
  void region(ir::RegionId id) {
    const auto& ops = co_.function.regions[id].ops;
    for (std::size_t i = ops.size(); i-- > 0;) {
      const ir::Op& op = co_.function.ops[ops[i]];
      const auto regions = ir::regions_of(op);
      for (std::size_t r = regions.size(); r-- > 0;) region(regions[r]);
      decide(ops[i], op);
    }
  }

 private:
  void decide(OpId id, const ir::Op& op) {
    points_[id.index] = id;
    if (!gives_scalar(co_, op)) return;
    const auto& users = co_.users[op.result.index];
    if (is_said_anywhere(op)) {
      co_.inlined[id.index] = true;
      return;
    }
    if (users.empty()) return;
    const OpId point = points_[users[0].index];
    const bool is_name = op.kind() == ir::OpKind::kGet || op.kind() == ir::OpKind::kElement;
    if (users.size() > 1 && !is_name) return;
    for (const OpId user : users) {
      if (points_[user.index] != point) return;
    }
    if (!may_move(id, op, point)) return;
    co_.inlined[id.index] = true;
    points_[id.index] = point;
  }

  [[nodiscard]] bool may_move(OpId id, const ir::Op& op, OpId point) const {
    const Site from = co_.sites[id.index];
    const Site to = co_.sites[point.index];
    if (from.region != to.region) return false;
    const auto& ops = co_.function.regions[from.region].ops;
    // What the whole expression reads was looked at, and stands, before it.
    for (std::size_t i = from.index + 1; i < to.index; ++i) {
      if (disturbs(ops[i], op, id)) return false;
    }
    return true;
  }

  // Whether what the operation's value is made of may be another after `between`.
  [[nodiscard]] bool disturbs(OpId between, const ir::Op& op, OpId id) const {
    bool found = false;
    for (const OpId leaf : leaves(op, id)) found = found || changes(between, leaf);
    return found;
  }

  // The operations that read something, of the expression.
  [[nodiscard]] std::vector<OpId> leaves(const ir::Op& op, OpId id) const {
    std::vector<OpId> out;
    if (ir::traits(op.kind()).sort == ir::Sort::kFetch) out.push_back(id);
    ir::for_each_operand(op, [&](std::string_view, ValueId operand) {
      const OpId def = co_.function.values[operand].def;
      if (!def.valid() || !gives_scalar(co_, co_.function.ops[def])) return;
      const auto inner = leaves(co_.function.ops[def], def);
      out.insert(out.end(), inner.begin(), inner.end());
    });
    return out;
  }

  [[nodiscard]] bool changes(OpId between, OpId leaf) const {
    const ir::OpData& what = co_.function.ops[leaf].data;
    bool found = is_change(co_.function.ops[between], what);
    for (const ir::RegionId region : ir::regions_of(co_.function.ops[between])) {
      ir::walk(co_.function, region,
               [&](OpId inner) { found = found || is_change(co_.function.ops[inner], what); });
    }
    return found;
  }

  static bool is_change(const ir::Op& op, const ir::OpData& leaf) {
    if (std::holds_alternative<ir::Cuda>(op.data)) return true;
    if (const auto* get = std::get_if<ir::Get>(&leaf)) {
      const auto* set = std::get_if<ir::Set>(&op.data);
      return set != nullptr && set->cell == get->cell;
    }
    if (const auto* element = std::get_if<ir::Element>(&leaf)) {
      const auto* set = std::get_if<ir::SetElement>(&op.data);
      return set != nullptr && set->frag == element->frag;
    }
    const ir::Sort sort = ir::traits(op.kind()).sort;
    const bool harmless =
        sort == ir::Sort::kPure || sort == ir::Sort::kName ||
        std::holds_alternative<ir::Read>(op.data) || std::holds_alternative<ir::Get>(op.data) ||
        std::holds_alternative<ir::Set>(op.data) || std::holds_alternative<ir::Element>(op.data) ||
        std::holds_alternative<ir::Bind>(op.data);
    return !harmless;
  }

  Co& co_;
  std::vector<OpId> points_;  // by operation: the statement that it is said in
};

}  // namespace

void plan_inlining(Co& co) {
  const ir::Function& function = co.function;
  co.users.resize(function.values.size());
  co.sites.resize(function.ops.size());
  co.inlined.resize(function.ops.size());
  co.done.resize(function.ops.size());
  for (std::uint32_t r = 0; r < function.regions.size(); ++r) {
    const auto& ops = function.regions[ir::RegionId{r}].ops;
    for (std::size_t i = 0; i < ops.size(); ++i) co.sites[ops[i].index] = {ir::RegionId{r}, i};
  }
  ir::walk(function, function.body, [&](OpId id) {
    ir::for_each_operand(function.ops[id], [&](std::string_view, ValueId operand) {
      if (operand.valid()) co.users[operand.index].push_back(id);
    });
  });
  Planner(co).region(function.body);
}

}  // namespace kiln::emit_co
