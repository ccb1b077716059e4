// `.transp` and `.pad`: copies whose destination is another shape than their source.
#include <algorithm>

#include "sema/expression.h"
#include "sema/move.h"

namespace kiln::sema {

namespace {

std::optional<std::vector<std::int64_t>> constants(Sema& sema, const std::vector<ast::ExprId>& ids,
                                                   std::string_view what) {
  std::vector<std::int64_t> out;
  for (const ast::ExprId id : ids) {
    const auto value = evaluate_constant(sema, id, what);
    if (!value) return std::nullopt;
    out.push_back(*value);
  }
  return out;
}

// What a copy's word has one of for each dimension.
struct Counted {
  std::string_view word;
  std::string_view noun;
};

bool check_count(Sema& sema, Span span, const Counted& what, std::size_t rank, std::size_t count) {
  if (count == rank) return true;
  (void)sema.diags.report<diag::MoveConfigCount>(span, what.word, rank, count, what.noun)
      .help("give one for each of the {} dimension(s)", rank)
      .emit();
  return false;
}

}  // namespace

std::optional<std::vector<std::int64_t>> permutation_of(Sema& sema, const ast::MoveStmt& stmt,
                                                        std::size_t rank) {
  if (stmt.op != ast::MoveOp::kTransp) return std::vector<std::int64_t>{};
  auto out = constants(sema, stmt.permutation, "a dimension of the permutation");
  if (!out ||
      !check_count(sema, stmt.permutation_span, {".transp", "dimensions"}, rank, out->size())) {
    return std::nullopt;
  }
  std::vector<bool> seen(rank);
  for (const std::int64_t dimension : *out) {
    const bool inside = dimension >= 0 && dimension < static_cast<std::int64_t>(rank);
    const bool again = inside && seen[static_cast<std::size_t>(dimension)];
    if (inside && !again) {
      seen[static_cast<std::size_t>(dimension)] = true;
      continue;
    }
    (void)sema.diags
        .report<diag::MovePermutation>(stmt.permutation_span, ".transp", dimension, rank - 1)
        .help("list every dimension once, as in `.transp<1, 0>`")
        .emit();
    return std::nullopt;
  }
  return out;
}

std::optional<Padding> padding_of(Sema& sema, const ast::MoveStmt& stmt, std::size_t rank) {
  const Span span = stmt.pad->span;
  const auto low = constants(sema, stmt.pad->low, "the padding");
  const auto high = constants(sema, stmt.pad->high, "the padding");
  const auto middle = constants(sema, stmt.pad->middle, "the padding");
  if (!low || !high || !middle) return std::nullopt;
  for (const auto* list : {&*low, &*high, &*middle}) {
    if (!check_count(sema, span, {".pad", "amounts"}, rank, list->size())) return std::nullopt;
    for (std::size_t d = 0; d < rank; ++d) {
      if ((*list)[d] >= 0) continue;
      (void)sema.diags.report<diag::PadNegative>(span, d, (*list)[d])
          .help("take a part of the source with `.subspan` or `.view` to cut it")
          .emit();
      return std::nullopt;
    }
  }
  const bool between =
      std::any_of(middle->begin(), middle->end(), [](std::int64_t n) { return n != 0; });
  if (!between) return Padding{*low, *high};
  refuse(sema, span, "padding between elements");
  return std::nullopt;
}

std::optional<ir::ValueId> fill_border(Sema& sema, const Transfer& transfer,
                                       const Padding& padding) {
  const ir::ValueId dst = transfer.copy.dst;
  ir::ViewType inner = sema.function.view_type(dst);
  const auto value = convert(sema, evaluate(sema, transfer.stmt.pad->value), inner.dtype);
  if (!value) return std::nullopt;
  emit(sema, ir::Splat{.view = dst, .value = *value, .unit = transfer.copy.unit}, transfer.span);
  ir::Subview window{dst, {}, 0};
  for (std::size_t d = 0; d < inner.shape.size(); ++d) {
    window.origin.emplace_back(padding.low[d]);
    inner.shape[d] = inner.shape[d] - (padding.low[d] + padding.high[d]);
  }
  return emit_value(sema, std::move(window), transfer.span, std::move(inner));
}

}  // namespace kiln::sema
