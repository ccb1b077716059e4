#include "ir/prove.h"

#include <algorithm>

namespace kiln::ir {

namespace {

// The least and largest value of one atom, in launch-time values.
struct Range {
  std::optional<Expr> low;
  std::optional<Expr> high;
};

Range range_of(const Function& function, const Atom& atom);

std::optional<Expr> bound(const Function& function, const Expr& expr, bool upper) {
  Expr sum;
  for (const Term& term : expr.terms()) {
    const bool take_high = (term.coefficient > 0) == upper;
    Expr product(term.coefficient);
    for (const Atom& atom : term.atoms) {
      const Range range = range_of(function, atom);
      // A product is monotone in each factor only while the factors cannot be negative.
      if (term.atoms.size() > 1 && !(range.low && minimum(function, *range.low) >= 0)) return {};
      const std::optional<Expr>& factor = take_high ? range.high : range.low;
      if (!factor) return {};
      product = product * *factor;
    }
    sum = sum + product;
  }
  return sum;
}

Range range_of(const Function& function, const Atom& atom) {
  const auto self = [&]() -> Expr {
    return atom.kind == AtomKind::kVar ? Expr::var(atom.var)
                                       : make_atom(atom.kind, *atom.left, *atom.right);
  };
  switch (atom.kind) {
    case AtomKind::kVar: {
      const Var& var = function.vars[atom.var];
      switch (var.kind) {
        case VarKind::kDim:
        case VarKind::kScalar: return {self(), self()};
        case VarKind::kParallel:
        case VarKind::kLoop: {
          const auto high = bound(function, var.extent - 1, true);
          return {Expr(0), high};
        }
        case VarKind::kBound:
          if (var.extent.is(0)) return {};
          return {Expr(0), bound(function, var.extent - 1, true)};
      }
      return {};
    }
    case AtomKind::kCDiv:
    case AtomKind::kFloorDiv: {
      if (!atom.right->constant() || *atom.right->constant() <= 0) return {};
      const auto low = bound(function, *atom.left, false);
      const auto high = bound(function, *atom.left, true);
      Range range;
      if (low) range.low = make_atom(atom.kind, *low, *atom.right);
      if (high) range.high = make_atom(atom.kind, *high, *atom.right);
      return range;
    }
    case AtomKind::kMod:
      if (!atom.right->constant() || *atom.right->constant() <= 0) return {};
      return {Expr(0), *atom.right - 1};
    case AtomKind::kMin: {
      auto high = bound(function, *atom.left, true);
      if (!high) high = bound(function, *atom.right, true);
      const auto a = bound(function, *atom.left, false);
      const auto b = bound(function, *atom.right, false);
      Range range{std::nullopt, high};
      if (a && b) range.low = min(*a, *b);
      return range;
    }
    case AtomKind::kMax: {
      const auto a = bound(function, *atom.left, true);
      const auto b = bound(function, *atom.right, true);
      Range range{bound(function, *atom.left, false), std::nullopt};
      if (a && b) range.high = max(*a, *b);
      return range;
    }
  }
  return {};
}

// The least value of one launch-time atom: a dimension is at least 1.
std::optional<std::int64_t> least(const Function& function, const Atom& atom) {
  switch (atom.kind) {
    case AtomKind::kVar: {
      const Var& var = function.vars[atom.var];
      if (var.kind == VarKind::kDim) return 1;
      const bool counts = var.kind == VarKind::kParallel || var.kind == VarKind::kLoop;
      if (counts || (var.kind == VarKind::kBound && !var.extent.is(0))) return 0;
      return {};
    }
    case AtomKind::kCDiv:
    case AtomKind::kFloorDiv: {
      const auto low = minimum(function, *atom.left);
      if (!low || !atom.right->constant()) return {};
      return make_atom(atom.kind, Expr(*low), *atom.right).constant();
    }
    case AtomKind::kMod: return 0;
    case AtomKind::kMin:
    case AtomKind::kMax: {
      const auto a = minimum(function, *atom.left);
      const auto b = minimum(function, *atom.right);
      if (!a || !b) return {};
      return atom.kind == AtomKind::kMin ? std::min(*a, *b) : std::max(*a, *b);
    }
  }
  return {};
}

// A multiple of `expr` made no larger by replacing quotients by constants with what bounds them:
//   x <= t * cdiv(x, t) <= x + t - 1        x - t + 1 <= t * floordiv(x, t) <= x
// so 16 * cdiv(n, 16) - n gives 16 * n - 16 * n, which shows that it is never negative.
Expr without_quotients(Expr expr) {
  constexpr int kQuotientsMax = 8;
  for (int i = 0; i < kQuotientsMax; ++i) {
    const Term* found = nullptr;
    for (const Term& term : expr.terms()) {
      if (term.atoms.size() != 1) continue;
      const Atom& atom = term.atoms[0];
      const bool quotient = atom.kind == AtomKind::kCDiv || atom.kind == AtomKind::kFloorDiv;
      if (quotient && atom.right->constant().value_or(0) > 0) found = &term;
    }
    if (found == nullptr) return expr;
    const Atom atom = found->atoms[0];
    const std::int64_t divisor = *atom.right->constant();
    const Expr coefficient(found->coefficient);
    const bool rises = found->coefficient > 0;
    Expr bound = *atom.left;  // of divisor * quotient, from the side that the sign asks for
    if (atom.kind == AtomKind::kCDiv && !rises) bound = bound + (divisor - 1);
    if (atom.kind == AtomKind::kFloorDiv && rises) bound = bound - (divisor - 1);
    const Expr quotient = make_atom(atom.kind, *atom.left, *atom.right);
    expr = (expr - coefficient * quotient) * divisor + coefficient * bound;
  }
  return expr;
}

}  // namespace

bool known_at_launch(const Function& function, const Expr& expr) {
  std::vector<VarId> vars;
  expr.collect_vars(vars);
  return std::all_of(vars.begin(), vars.end(), [&](VarId var) {
    const VarKind kind = function.vars[var].kind;
    return kind == VarKind::kDim || kind == VarKind::kScalar;
  });
}

std::optional<Expr> upper_bound(const Function& function, const Expr& expr) {
  return bound(function, expr, true);
}

std::optional<std::int64_t> minimum(const Function& function, const Expr& expr) {
  if (expr.overflowed()) return {};
  std::int64_t sum = 0;
  for (const Term& term : expr.terms()) {
    std::int64_t product = 1;
    for (const Atom& atom : term.atoms) {
      const auto factor = least(function, atom);
      if (!factor || *factor < 0) return {};
      product *= *factor;
    }
    if (term.coefficient < 0 && !term.atoms.empty()) return {};
    sum += term.coefficient * product;
  }
  return sum;
}

bool always_less_equal(const Function& function, const Expr& left, const Expr& right) {
  if (left.overflowed() || right.overflowed()) return false;
  const auto direct = minimum(function, right - left);
  if (direct && *direct >= 0) return true;
  const auto slack = bound(function, right - left, false);
  if (!slack) return false;
  for (const Expr& least : {*slack, without_quotients(*slack)}) {
    const auto value = minimum(function, least);
    if (value && *value >= 0) return true;
  }
  return false;
}

bool always_divisible(const Expr& expr, std::int64_t divisor) {
  return !expr.overflowed() && expr.known_divisor() % divisor == 0;
}

namespace {

// Answers for one unit. Cells are assumed not to vary until an assignment says otherwise, so that a
// counter that is only ever increased by a constant does not.
class Variation {
 public:
  Variation(const Function& function, Level unit) : function_(function), unit_(unit) {}

  [[nodiscard]] bool var(VarId id);
  [[nodiscard]] bool value(ValueId id);
  [[nodiscard]] bool control(OpId id);

  bool operator()(const Const&) { return false; }
  bool operator()(const Index& op) { return expr(op.expr); }
  bool operator()(const Unary& op) { return value(op.operand); }
  bool operator()(const Binary& op) { return value(op.left) || value(op.right); }
  bool operator()(const Cast& op) { return value(op.operand); }
  bool operator()(const Choose& op) {
    return value(op.condition) || value(op.if_true) || value(op.if_false);
  }
  bool operator()(const Read& op) {
    const ResolvedView view = resolve_view(function_, op.view);
    const bool per_thread = function_.view_type(view.root).space == Space::kLocal;
    return per_thread || any(op.index) || any(view.origin);
  }
  bool operator()(const Get& op) { return cell(op.cell); }
  // How the operation that declares or sets a variable makes it vary.
  bool operator()(const Parallel& op) { return op.level > unit_; }
  bool operator()(const For& op) { return expr(op.lower) || expr(op.upper); }
  bool operator()(const Bind& op) { return value(op.value); }
  bool operator()(const auto&) { return true; }

 private:
  [[nodiscard]] bool expr(const Expr& expression) {
    std::vector<VarId> vars;
    expression.collect_vars(vars);
    return std::any_of(vars.begin(), vars.end(), [&](VarId id) { return var(id); });
  }
  [[nodiscard]] bool any(const std::vector<Expr>& exprs) {
    return std::any_of(exprs.begin(), exprs.end(), [&](const Expr& e) { return expr(e); });
  }
  [[nodiscard]] bool cell(ValueId id);
  [[nodiscard]] bool reached_apart(OpId set, OpId alloc);
  [[nodiscard]] bool leaves_apart(OpId jump, OpId loop);
  void find_owners();

  const Function& function_;
  Level unit_;
  std::vector<ValueId> assumed_;  // cells
  // By OpId: the operation around it. Regions that are still being built have no owner.
  std::vector<OpId> owner_;
};

bool declares(const Op& op, VarId var) {
  if (const auto* parallel = std::get_if<Parallel>(&op.data)) {
    const auto& own = parallel->vars;
    const auto& cluster = parallel->cluster;
    return std::find(own.begin(), own.end(), var) != own.end() ||
           std::find(cluster.begin(), cluster.end(), var) != cluster.end();
  }
  if (const auto* loop = std::get_if<For>(&op.data)) return loop->var == var;
  if (const auto* each = std::get_if<Apply>(&op.data)) return each->row == var || each->col == var;
  if (const auto* bind = std::get_if<Bind>(&op.data)) return bind->var == var;
  return false;
}

bool Variation::var(VarId id) {
  const Var& declared = function_.vars[id];
  if (declared.kind == VarKind::kDim || declared.kind == VarKind::kScalar) return false;
  if (declared.extent.is(1)) return false;  // it is always 0
  for (const Op& op : function_.ops) {
    if (declares(op, id)) return std::visit(*this, op.data);
  }
  return true;
}

bool Variation::value(ValueId id) {
  const OpId def = function_.values[id].def;
  if (!def.valid()) return false;  // a parameter
  return std::visit(*this, function_.ops[def].data);
}

bool Variation::cell(ValueId id) {
  if (std::find(assumed_.begin(), assumed_.end(), id) != assumed_.end()) return false;
  assumed_.push_back(id);
  const Alloc* alloc = function_.def_as<Alloc>(id);
  if (alloc == nullptr || (alloc->initial.valid() && value(alloc->initial))) return true;
  for (std::uint32_t i = 0; i < function_.ops.size(); ++i) {
    const auto* set = std::get_if<Set>(&function_.ops[OpId{i}].data);
    if (set == nullptr || set->cell != id) continue;
    if (value(set->value) || reached_apart(OpId{i}, function_.values[id].def)) return true;
  }
  return false;
}

void Variation::find_owners() {
  owner_.resize(function_.ops.size());
  for (std::uint32_t i = 0; i < function_.ops.size(); ++i) {
    for (const RegionId region : regions_of(function_.ops[OpId{i}])) {
      for (const OpId inner : function_.regions[region].ops) owner_[inner.index] = OpId{i};
    }
  }
}

// Whether some threads of the unit get to the assignment and others do not, or not as often; of
// those threads that have the cell.
bool Variation::reached_apart(OpId set, OpId alloc) {
  if (owner_.empty()) find_owners();
  const OpId end = owner_[alloc.index];
  for (OpId at = owner_[set.index]; at.valid() && at != end; at = owner_[at.index]) {
    if (control(at)) return true;
  }
  return false;
}

// Whether what leaves the loop, or a trip of it, does so for some threads of the unit only.
bool Variation::leaves_apart(OpId jump, OpId loop) {
  const bool of_kernel = function_.ops[jump].kind() == OpKind::kYield;
  bool apart = false;
  for (OpId at = owner_[jump.index]; at != loop; at = owner_[at.index]) {
    if (!at.valid()) return false;
    const OpKind kind = function_.ops[at].kind();
    const bool is_loop = kind == OpKind::kFor || kind == OpKind::kLoop;
    if (is_loop && !of_kernel) return false;  // that loop's
    if (kind == OpKind::kIf) apart = apart || control(at);
    if (const auto* inner = std::get_if<For>(&function_.ops[at].data)) {
      apart = apart || (*this)(*inner);
    }
  }
  return apart;
}

bool Variation::control(OpId id) {
  if (owner_.empty()) find_owners();
  const OpData& data = function_.ops[id].data;
  if (const auto* branch = std::get_if<If>(&data)) {
    return branch->condition.valid() && value(branch->condition);
  }
  if (std::holds_alternative<Once>(data)) return true;
  if (std::holds_alternative<Inthreads>(data)) return true;
  const auto* counted = std::get_if<For>(&data);
  if (counted == nullptr && !std::holds_alternative<Loop>(data)) return false;
  if (counted != nullptr && (*this)(*counted)) return true;
  bool apart = false;
  for (const RegionId body : regions_of(function_.ops[id])) {
    walk(function_, body, [&](OpId inner) {
      const OpKind kind = function_.ops[inner].kind();
      const bool leaves =
          kind == OpKind::kBreak || kind == OpKind::kContinue || kind == OpKind::kYield;
      if (leaves && !apart) apart = leaves_apart(inner, id);
    });
  }
  return apart;
}

}  // namespace

bool varies_in(const Function& function, VarId var, Level unit) {
  return Variation(function, unit).var(var);
}

bool value_varies_in(const Function& function, ValueId value, Level unit) {
  return Variation(function, unit).value(value);
}

bool control_varies_in(const Function& function, OpId op, Level unit) {
  return Variation(function, unit).control(op);
}

}  // namespace kiln::ir
