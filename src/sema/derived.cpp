#include "sema/derived.h"

#include <algorithm>
#include <utility>

#include "sema/constant.h"
#include "sema/expression.h"

namespace kiln::sema {

namespace {

bool names_an_element(const Sema& sema, const ast::SubscriptExpr& subscript) {
  return std::ranges::any_of(subscript.items, [&](ast::ExprId item) {
    return sema.ast.as<ast::DerivedIndexExpr>(item) != nullptr;
  });
}

// Shapes stand in `[ ]`, tuples in `{ }`.
bool check_brackets(Sema& sema, const Operand& base, const ast::SubscriptExpr& subscript,
                    Span span) {
  const bool is_tuple = base.kind == Operand::Kind::kTuple;
  if (is_tuple == subscript.braces) return true;
  const auto name = sema.sources.text(base.span);
  (void)sema.diags
      .report<diag::DerivedBrackets>(span, name, describe(base, sema.function),
                                     is_tuple ? "{ }" : "[ ]")
      .help("`{}{}(0), 4{}` makes one, `{}(0)` is one of its integers", name, is_tuple ? "{" : "[",
            is_tuple ? "}" : "]", name)
      .emit();
  return false;
}

}  // namespace

bool derives(const Sema& sema, const Operand& base, const ast::SubscriptExpr& subscript) {
  if (base.kind == Operand::Kind::kView) return names_an_element(sema, subscript);
  return base.kind == Operand::Kind::kShape || base.kind == Operand::Kind::kTuple;
}

Operand derive(Sema& sema, Operand base, const ast::SubscriptExpr& subscript, Span span) {
  if (base.kind == Operand::Kind::kView) {
    base.kind = Operand::Kind::kShape;
    for (const ir::Expr& extent : sema.function.view_type(base.id).shape) {
      base.elements.push_back({extent, std::nullopt});
    }
  }
  if (!check_brackets(sema, base, subscript, span)) return {};
  const Operand* outer = std::exchange(sema.derives_from, &base);
  const auto items = evaluate_list(sema, subscript.items, "an element of the list");
  sema.derives_from = outer;
  if (!items) return {};
  Operand out;
  out.kind = base.kind;
  out.span = span;
  for (const IndexItem& item : *items) {
    if (!item.element) {
      (void)sema.diags.report<diag::WildcardMisplaced>(item.span).emit();
      return {};
    }
    out.elements.push_back(*item.element);
  }
  return out;
}

Operand derived_index(Sema& sema, const ast::DerivedIndexExpr& index, Span span) {
  if (sema.derives_from == nullptr) return evaluate(sema, index.index);
  const auto position = evaluate_constant(sema, index.index, "the position");
  if (!position) return {};
  return element_of(sema, *sema.derives_from, *position, {sema.ast[index.index].span, span});
}

Operand element_of(Sema& sema, const Operand& list, std::int64_t position,
                   const PositionSpans& at) {
  const auto count = static_cast<std::int64_t>(list.elements.size());
  Operand out;
  out.span = at.whole;
  if (position < 0 || position >= count) {
    (void)sema.diags.report<diag::IndexOutOfRange>(at.position, "position", position, 0, count)
        .help("positions go from 0 to {}", count - 1)
        .emit();
    return out;
  }
  const Element& picked = list.elements[static_cast<std::size_t>(position)];
  out.kind = Operand::Kind::kInt;
  out.integer = picked;
  return out;
}

}  // namespace kiln::sema
