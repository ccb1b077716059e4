#include "sema/entry_check.h"

#include <algorithm>
#include <utility>

#include "ir/prove.h"
#include "sema/expression.h"

namespace kiln::sema {

namespace {

bool asks_alike(const ir::EntryCheck& one, const ir::EntryCheck& other) {
  return one.relation == other.relation && one.left == other.left && one.right == other.right &&
         one.message == other.message && one.span == other.span;
}

Operand condition_of(Sema& sema, const ir::EntryCheck& check) {
  const Operand left = make_int(check.left, check.span);
  const Operand right = make_int(check.right, check.span);
  switch (check.relation) {
    case ir::Relation::kEqual: return combine(sema, ast::BinaryOp::kEqual, check.span, left, right);
    case ir::Relation::kLessEqual:
      return combine(sema, ast::BinaryOp::kLessEqual, check.span, left, right);
    case ir::Relation::kDivides: {
      const Operand rest = combine(sema, ast::BinaryOp::kRemainder, check.span, right, left);
      return combine(sema, ast::BinaryOp::kEqual, check.span, rest, make_int(0, check.span));
    }
  }
  return {};
}

}  // namespace

void require(Sema& sema, ir::EntryCheck check) {
  if (!ir::known_at_launch(sema.function, check.left) ||
      !ir::known_at_launch(sema.function, check.right)) {
    const Operand condition = condition_of(sema, check);
    if (condition.kind == Operand::Kind::kInt && condition.integer.value.is(1)) return;
    const auto flag = convert_to_bool(sema, condition);
    if (flag) emit(sema, ir::Assert{*flag, std::move(check.message)}, check.span);
    return;
  }
  const auto is_there = [&](const ir::EntryCheck& other) { return asks_alike(check, other); };
  if (std::ranges::any_of(sema.function.checks, is_there)) return;
  sema.function.checks.push_back(std::move(check));
}

}  // namespace kiln::sema
