#include "sema/guard.h"

#include <algorithm>
#include <limits>
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

std::optional<std::int64_t> constant_bound(const Sema& sema, const ir::Expr& expr) {
  if (expr.overflowed()) return std::nullopt;
  const auto bound = ir::upper_bound(sema.function, expr);
  return bound ? bound->constant() : std::nullopt;
}

// Whether the formula may leave 32 bits, so that the program, which wraps, may compare another number.
bool may_wrap(const Sema& sema, const ir::Expr& expr) {
  if (expr.overflowed()) return true;
  const std::vector<ir::Term>& terms = expr.terms();
  const bool is_variable = terms.size() == 1 && terms[0].coefficient == 1 &&
                           terms[0].atoms.size() == 1 &&
                           terms[0].atoms[0].kind == ir::AtomKind::kVar;
  if (is_variable) return false;
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const auto most = constant_bound(sema, expr);
  const auto most_below = constant_bound(sema, ir::Expr(0) - expr);
  return !most || *most > kMost || !most_below || *most_below > kMost;
}

void remember(Sema& sema, const ir::Expr& not_negative) {
  if (!not_negative.overflowed()) sema.guards.push_back(not_negative);
}

void learn_comparison(Sema& sema, const ir::Binary& binary, bool holds) {
  const auto left = integer_of(sema, binary.left);
  const auto right = integer_of(sema, binary.right);
  if (!left || !right || may_wrap(sema, *left) || may_wrap(sema, *right)) return;
  if (binary.kind == ir::BinaryKind::kEq && holds) {
    remember(sema, *right - *left);
    remember(sema, *left - *right);
  }
  const auto order = order_of(binary.kind, holds);
  if (!order) return;
  const ir::Expr difference = order->left_first ? *right - *left : *left - *right;
  remember(sema, difference - (order->may_equal ? 0 : 1));
}

// The threads of the innermost region, or of the block; none where their number is not known yet, or at
// launch alone.
std::optional<ThreadRun> threads_here(const Sema& sema) {
  if (const auto run = enclosing_region(sema)) return run;
  if (!sema.threads_from.contains(sema.place.launch)) return std::nullopt;
  const auto& launch = std::get<ir::Parallel>(sema.function.ops[sema.place.launch].data);
  const auto threads = launch.threads.constant();
  if (!threads) return std::nullopt;
  return ThreadRun{0, *threads};
}

// What bounds the expression in a thread: `anywhere`, or that something else is not negative.
std::int64_t least_bound(const Sema& sema, const ir::Expr& expr,
                         const std::vector<ir::Expr>& guards, std::int64_t anywhere) {
  std::int64_t out = constant_bound(sema, expr).value_or(anywhere);
  for (const ir::Expr& guard : guards) {
    out = std::min(out, constant_bound(sema, expr + guard).value_or(out));
  }
  return out;
}

// A formula for one thread after the other: a number where it is made of the thread's indices alone.
class OfThread {
 public:
  OfThread(const Sema& sema, const ir::Expr& expr, const std::vector<std::int64_t>& indices)
      : sema_(sema), expr_(expr), indices_(indices) {
    is_number_ = substituted().constant().has_value();
  }
  [[nodiscard]] ir::Expr now() const {
    return is_number_ ? ir::Expr(expr_.evaluate(indices_)) : substituted();
  }
  [[nodiscard]] bool is_number() const { return is_number_; }

 private:
  [[nodiscard]] ir::Expr substituted() const {
    return expr_.substitute([&](ir::VarId var) -> std::optional<ir::Expr> {
      if (!is_unit_index(sema_.function, sema_.place.nest, var)) return std::nullopt;
      return ir::Expr(indices_[var.index]);
    });
  }

  const Sema& sema_;
  const ir::Expr& expr_;
  const std::vector<std::int64_t>& indices_;
  bool is_number_ = false;
};

// None where no thread comes here.
std::optional<std::int64_t> largest_of(const Sema& sema, const ThreadRun& run, const ir::Expr& expr,
                                       std::int64_t anywhere) {
  const auto& launch = std::get<ir::Parallel>(sema.function.ops[sema.place.launch].data);
  const std::int64_t block_threads = launch.threads.constant().value_or(run.first + run.threads);
  std::vector<std::int64_t> indices(sema.function.vars.size());
  const OfThread value(sema, expr, indices);
  std::vector<OfThread> conditions;
  for (const ir::Expr& guard : sema.guards) conditions.emplace_back(sema, guard, indices);
  std::optional<std::int64_t> out;
  for (std::int64_t t = run.first; t < run.first + run.threads; ++t) {
    coverage::set_unit_indices(sema.function, sema.place.nest, block_threads, t, indices);
    std::vector<ir::Expr> guards;
    const bool comes = std::ranges::none_of(conditions, [&](const OfThread& condition) {
      const auto most = constant_bound(sema, guards.emplace_back(condition.now()));
      return most && *most < 0;
    });
    if (!comes) continue;
    const std::int64_t largest = least_bound(
        sema, value.now(), value.is_number() ? std::vector<ir::Expr>{} : guards, anywhere);
    out = std::max(out.value_or(largest), largest);
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
  const std::int64_t of_any_thread = least_bound(sema, expr, sema.guards, *anywhere);
  if (of_any_thread < extent) return std::nullopt;
  const auto run = threads_here(sema);
  const auto here = run ? largest_of(sema, *run, expr, of_any_thread) : of_any_thread;
  return here && *here >= extent ? here : std::nullopt;
}

}  // namespace kiln::sema
