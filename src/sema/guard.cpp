#include "sema/guard.h"

#include <algorithm>
#include <vector>

#include "coverage/unit_indices.h"
#include "ir/prove.h"
#include "sema/inthreads.h"

namespace kiln::sema {

namespace {

// The integer that an operand of a comparison is, as a formula of indices and dimensions.
std::optional<ir::Expr> integer_of(const Sema& sema, ir::ValueId value) {
  if (const auto* index = sema.function.def_as<ir::Index>(value)) return index->expr;
  const auto* constant = sema.function.def_as<ir::Const>(value);
  const auto* scalar = std::get_if<ir::ScalarType>(&sema.function.type(value));
  if (constant == nullptr || scalar == nullptr || !is_integer(scalar->dtype)) return std::nullopt;
  return ir::Expr(static_cast<std::int64_t>(constant->value));
}

// Of a comparison that holds, or does not, which side is the smaller one, and whether both may be equal.
struct Order {
  bool left_first;
  bool may_equal;
};

std::optional<Order> order_of(ir::BinaryKind kind, bool holds) {
  const bool is_less = kind == ir::BinaryKind::kLt || kind == ir::BinaryKind::kLe;
  const bool is_greater = kind == ir::BinaryKind::kGt || kind == ir::BinaryKind::kGe;
  if (!is_less && !is_greater) return std::nullopt;
  const bool with_equal = kind == ir::BinaryKind::kLe || kind == ir::BinaryKind::kGe;
  return Order{.left_first = is_less == holds, .may_equal = with_equal == holds};
}

void learn_comparison(Sema& sema, const ir::Binary& binary, bool holds) {
  const auto left = integer_of(sema, binary.left);
  const auto right = integer_of(sema, binary.right);
  if (!left || !right) return;
  if (binary.kind == ir::BinaryKind::kEq && holds) {
    sema.guards.push_back(*right - *left);
    sema.guards.push_back(*left - *right);
  }
  const auto order = order_of(binary.kind, holds);
  if (!order) return;
  const ir::Expr difference = order->left_first ? *right - *left : *left - *right;
  sema.guards.push_back(difference - (order->may_equal ? 0 : 1));
}

// The threads of the innermost region, or of the block; none where their number is known at launch alone.
std::optional<ThreadRun> threads_here(const Sema& sema) {
  if (const auto run = enclosing_region(sema)) return run;
  if (!sema.place.launch.valid()) return std::nullopt;
  const auto& launch = std::get<ir::Parallel>(sema.function.ops[sema.place.launch].data);
  const auto threads = launch.threads.constant();
  if (!threads) return std::nullopt;
  return ThreadRun{0, *threads};
}

std::optional<std::int64_t> constant_bound(const Sema& sema, const ir::Expr& expr) {
  const auto bound = ir::upper_bound(sema.function, expr);
  return bound ? bound->constant() : std::nullopt;
}

// What bounds the expression in a thread: itself, or that something else is not negative.
std::optional<std::int64_t> least_bound(const Sema& sema, const ir::Expr& expr,
                                        const std::vector<ir::Expr>& guards) {
  auto out = constant_bound(sema, expr);
  for (const ir::Expr& guard : guards) {
    const auto bound = constant_bound(sema, expr + guard);
    if (bound && (!out || *bound < *out)) out = bound;
  }
  return out;
}

// None where it is not known, or no thread comes here.
std::optional<std::int64_t> largest_here(const Sema& sema, const ir::Expr& expr) {
  const auto run = threads_here(sema);
  if (!run) return least_bound(sema, expr, sema.guards);
  const auto& launch = std::get<ir::Parallel>(sema.function.ops[sema.place.launch].data);
  const std::int64_t block_threads = launch.threads.constant().value_or(run->first + run->threads);
  std::vector<std::int64_t> indices(sema.function.vars.size());
  const auto of_thread = [&](const ir::Expr& each) {
    return each.substitute([&](ir::VarId var) -> std::optional<ir::Expr> {
      if (!is_unit_index(sema.function, sema.place.nest, var)) return std::nullopt;
      return ir::Expr(indices[var.index]);
    });
  };
  std::optional<std::int64_t> out;
  for (std::int64_t t = run->first; t < run->first + run->threads; ++t) {
    coverage::set_unit_indices(sema.function, sema.place.nest, block_threads, t, indices);
    std::vector<ir::Expr> guards;
    for (const ir::Expr& guard : sema.guards) guards.push_back(of_thread(guard));
    const bool comes = std::ranges::none_of(guards, [&](const ir::Expr& guard) {
      const auto most = constant_bound(sema, guard);
      return most && *most < 0;
    });
    if (!comes) continue;
    const auto largest = least_bound(sema, of_thread(expr), guards);
    if (!largest) return std::nullopt;
    out = std::max(out.value_or(*largest), *largest);
  }
  return out;
}

}  // namespace

void learn(Sema& sema, ir::ValueId condition, bool holds) {
  if (const auto* unary = sema.function.def_as<ir::Unary>(condition)) {
    if (unary->kind == ir::UnaryKind::kNot) learn(sema, unary->operand, !holds);
    return;
  }
  const auto* binary = sema.function.def_as<ir::Binary>(condition);
  if (binary == nullptr) return;
  const bool joins =
      binary->kind == (holds ? ir::BinaryKind::kLogicalAnd : ir::BinaryKind::kLogicalOr);
  if (!joins) return learn_comparison(sema, *binary, holds);
  learn(sema, binary->left, holds);
  learn(sema, binary->right, holds);
}

std::optional<std::int64_t> too_large_here(const Sema& sema, const ir::Expr& expr,
                                           std::int64_t extent) {
  const auto anywhere = constant_bound(sema, expr);
  if (!anywhere || *anywhere < extent) return std::nullopt;
  const auto here = largest_here(sema, expr);
  return here && *here >= extent ? here : std::nullopt;
}

}  // namespace kiln::sema
