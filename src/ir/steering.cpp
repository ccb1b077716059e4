#include "ir/steering.h"

#include "ir/effects.h"
#include "ir/reflect.h"

namespace kiln::ir {

namespace {

class Slice {
 public:
  explicit Slice(const Function& function)
      : function_(function), steers_(function.ops.size()), matters_(function.values.size()) {}

  std::vector<bool> take() {
    bool more = true;
    while (more) {
      more = false;
      // Uses mostly come behind what they use.
      for (auto id = static_cast<std::uint32_t>(steers_.size()); id-- > 0;) {
        const Op& op = function_.ops[OpId{id}];
        if (steers_[id] || !decides(op)) continue;
        steers_[id] = more = true;
        note_operands(op);
      }
    }
    return std::move(steers_);
  }

 private:
  [[nodiscard]] static bool always(const Op& op) {
    const auto* cuda = std::get_if<Cuda>(&op.data);
    if (cuda != nullptr && cuda->stand_in.valid()) return true;  // around what does
    if (op.kind() == OpKind::kPrint) return false;  // nobody reads what a run that counts prints
    switch (traits(op.kind()).sort) {
      case Sort::kStructure:
      case Sort::kJump:
      case Sort::kOrder:
      case Sort::kState: return true;
      case Sort::kName:
      case Sort::kPure:
      case Sort::kFetch:
      case Sort::kMove: break;
    }
    return false;
  }

  [[nodiscard]] bool decides(const Op& op) const {
    if (always(op) || matters(op.result)) return true;
    bool found = false;
    for_each_touch(
        op, [&](const Touch& touch) { found = found || (touch.writes() && matters(touch.value)); });
    return found;
  }

  // An operation that always steers depends on scalars alone: an apply on no element of its tile.
  // A vote has none: where elements are not computed, it is false.
  void note_operands(const Op& op) {
    if (op.kind() == OpKind::kVote) return;
    for_each_operand(op, [&](std::string_view, ValueId value) {
      if (!value.valid()) return;
      if (always(op) && !std::holds_alternative<ScalarType>(function_.type(value))) return;
      matters_[root_of(function_, value).index] = true;
    });
  }

  [[nodiscard]] bool matters(ValueId value) const {
    return value.valid() && matters_[root_of(function_, value).index];
  }

  const Function& function_;
  std::vector<bool> steers_;  // by OpId
  std::vector<bool>
      matters_;  // by ValueId: a scalar's value, or what memory, a tile or a cell holds
};

}  // namespace

std::vector<bool> steering(const Function& function) { return Slice(function).take(); }

}  // namespace kiln::ir
