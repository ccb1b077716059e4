#include "coverage/access.h"

#include <algorithm>
#include <functional>

#include "coverage/unit_indices.h"
#include "ir/effects.h"
#include "ir/prove.h"
#include "ir/strides.h"

namespace kiln::coverage {

namespace {

struct AccessCollector {
  const ir::Function& function;
  std::vector<TileAccess>& out;
  int branches = 0;
  ir::OpId op = {};
  ir::OpId inthreads = {};

  void add(const ir::Touch& touch, bool writes) {
    TileAccess access{.op = op,
                      .view = touch.value,
                      .at = ir::resolve_view(function, touch.value),
                      .extents = {},
                      .writes = writes,
                      .is_tile = touch.index == nullptr,
                      .conditional = branches != 0,
                      .inthreads = inthreads,
                      .anywhere = touch.chooses};
    access.extents.assign(access.at.origin.size(), ir::Expr(1));
    const std::vector<ir::Expr>& shape = function.view_type(touch.value).shape;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const std::size_t root = access.at.dropped + d;
      if (access.is_tile) access.extents[root] = shape[d];
      if (!access.is_tile) access.at.origin[root] = access.at.origin[root] + (*touch.index)[d];
    }
    if (function.def_as<ir::Alias>(access.at.root) != nullptr) reshape(access);
    out.push_back(std::move(access));
  }

  void reshape(TileAccess& access) const {
    ir::Expr place = ir::root_offset(function, access.at.root);
    for (const ir::Expr& origin : access.at.origin) place = place + origin;
    access.at = ir::resolve_view(function, ir::storage_of(function, access.at.root));
    access.extents = function.view_type(access.at.root).shape;
    if (!access.at.origin.empty()) access.at.origin[0] = place;
    access.reshaped = access.anywhere = true;
  }

  // What an element starts with is no use of it.
  void add_all(const ir::Op& here) {
    for (const ir::Touch& touch : ir::memory_touched(function, here)) {
      if (touch.use == ir::Use::kStarts) continue;
      if (touch.reads()) add(touch, false);
      if (touch.writes()) add(touch, true);
    }
  }

  void walk(ir::RegionId region) {
    for (const ir::OpId id : function.regions[region].ops) {
      const ir::Op& here = function.ops[id];
      op = id;
      add_all(here);
      const bool branch = here.kind() == ir::OpKind::kIf || may_end_early(here);
      const ir::OpId outer = inthreads;
      if (here.kind() == ir::OpKind::kInthreads) inthreads = id;
      branches += branch;
      for (const ir::RegionId inner : ir::regions_of(here)) walk(inner);
      branches -= branch;
      inthreads = outer;
    }
  }

  // A loop that something leaves, or a region behind a `yield`.
  [[nodiscard]] bool may_end_early(const ir::Op& here) const {
    bool found = here.kind() == ir::OpKind::kLoop;
    for (const ir::RegionId region : ir::regions_of(here)) {
      ir::walk(function, region, [&](ir::OpId id) {
        const ir::OpKind kind = function.ops[id].kind();
        const bool of_loop = ir::leaves_early(kind) && kind != ir::OpKind::kYield;
        found = found || kind == ir::OpKind::kYield || (of_loop && here.kind() == ir::OpKind::kFor);
      });
    }
    return found;
  }
};

ir::Expr product_of(const std::vector<ir::Atom>& atoms) {
  ir::Expr product(1);
  for (const ir::Atom& atom : atoms) {
    product = product * (atom.kind == ir::AtomKind::kVar
                             ? ir::Expr::var(atom.var)
                             : ir::make_atom(atom.kind, *atom.left, *atom.right));
  }
  return product;
}

enum class Slope : std::uint8_t { kNone, kRises, kFalls, kUnknown };

// How an expression changes with a variable; kUnknown inside of quotients and the like.
Slope slope_of(const ir::Function& function, const ir::Expr& expr, ir::VarId var) {
  Slope slope = Slope::kNone;
  for (const ir::Term& term : expr.terms()) {
    std::size_t own = 0;
    for (const ir::Atom& atom : term.atoms) {
      if (atom.kind == ir::AtomKind::kVar && atom.var == var) {
        ++own;
        continue;
      }
      if (atom.kind == ir::AtomKind::kVar) continue;
      if (atom.left->uses(var) || atom.right->uses(var)) return Slope::kUnknown;
    }
    if (own == 0) continue;
    const auto factor = ir::minimum(function, product_of(term.atoms));
    if (own > 1 || !factor) return Slope::kUnknown;
    const Slope here = term.coefficient > 0 ? Slope::kRises : Slope::kFalls;
    if (slope != Slope::kNone && slope != here) return Slope::kUnknown;
    slope = here;
  }
  return slope;
}

}  // namespace

std::vector<TileAccess> accesses_of(const ir::Function& function) {
  std::vector<TileAccess> out;
  AccessCollector{function, out}.walk(function.body);
  return out;
}

std::map<ir::OpId, std::vector<ir::OpId>> loops_around(const ir::Function& function) {
  std::map<ir::OpId, std::vector<ir::OpId>> around;
  ir::walk(function, function.body, [&](ir::OpId id) {
    const ir::Op& op = function.ops[id];
    std::vector<ir::OpId> inside = around[id];
    if (op.kind() == ir::OpKind::kFor) inside.push_back(id);
    for (const ir::RegionId region : ir::regions_of(op)) {
      for (const ir::OpId inner : function.regions[region].ops) around[inner] = inside;
    }
  });
  return around;
}

Span view_span(const ir::Function& function, const TileAccess& access) {
  const ir::OpId def = function.values[access.view].def;
  const bool is_window = def.valid() && function.ops[def].kind() == ir::OpKind::kSubview;
  return is_window ? function.ops[def].span : function.ops[access.op].span;
}

std::string root_name(const ir::Function& function, ir::ValueId root) {
  root = ir::storage_of(function, root);
  const auto* alloc = function.def_as<ir::Alloc>(root);
  if (alloc == nullptr) return function.values[root].name;
  return alloc->name.empty() ? "the copied tile" : alloc->name;
}

namespace {

bool same_extents(const ir::Function& function, const ir::Parallel& a, const ir::Parallel& b) {
  return std::equal(
      a.vars.begin(), a.vars.end(), b.vars.begin(), b.vars.end(),
      [&](ir::VarId x, ir::VarId y) { return function.vars[x].extent == function.vars[y].extent; });
}

}  // namespace

Ranges::Ranges(const ir::Function& function) : function_(&function) {
  std::vector<const ir::Parallel*> inner;
  for (const ir::Op& op : function.ops) {
    if (const auto* loop = std::get_if<ir::For>(&op.data)) {
      ranges_[loop->var] = {loop->lower, loop->upper - 1, loop->step == 1};
    }
    const auto* parallel = std::get_if<ir::Parallel>(&op.data);
    if (parallel == nullptr) continue;
    for (const ir::VarId var : parallel->vars) ranges_[var] = {0, function.vars[var].extent - 1};
    for (const ir::VarId var : parallel->cluster) ranges_[var] = {0, function.vars[var].extent - 1};
    const auto twin = std::find_if(inner.begin(), inner.end(), [&](const ir::Parallel* other) {
      return other->level == parallel->level && same_extents(function, *other, *parallel);
    });
    if (parallel->level == ir::Level::kBlock) continue;
    units_.insert(parallel->vars.begin(), parallel->vars.end());
    for (std::size_t i = 0; twin != inner.end() && i < parallel->vars.size(); ++i) {
      same_[parallel->vars[i]] = (*twin)->vars[i];
    }
    inner.push_back(parallel);
  }
}

std::optional<Extreme> Ranges::largest(const ir::Expr& expr) const { return extreme(expr, true); }
std::optional<Extreme> Ranges::least(const ir::Expr& expr) const { return extreme(expr, false); }

std::optional<Extreme> Ranges::largest_along(const ir::Expr& expr, ir::VarId var) const {
  ir::Expr line = expr;
  for (const ir::VarId other : stepping(expr)) {
    if (other == var) continue;
    if (slope_of(*function_, line, other) != Slope::kRises) return std::nullopt;
    line = line.substitute([&](ir::VarId id) {
      return id == other ? std::optional(ranges_.at(id).first) : std::nullopt;
    });
  }
  return extreme(std::move(line), true);
}

std::optional<ir::Expr> Ranges::count(ir::VarId var) const {
  const Range& range = ranges_.at(var);
  return range.dense && range.first.is(0) ? std::optional(range.last + 1) : std::nullopt;
}

namespace {

// The parallels around the operation, outermost first.
std::vector<ir::OpId> parallels_around(const ir::Function& function, ir::OpId wanted) {
  std::vector<ir::OpId> out;
  const std::function<bool(ir::RegionId)> find = [&](ir::RegionId region) {
    for (const ir::OpId id : function.regions[region].ops) {
      if (id == wanted) return true;
      const bool parallel = function.ops[id].kind() == ir::OpKind::kParallel;
      if (parallel) out.push_back(id);
      for (const ir::RegionId inner : ir::regions_of(function.ops[id])) {
        if (find(inner)) return true;
      }
      if (parallel) out.pop_back();
    }
    return false;
  };
  (void)find(function.body);
  return out;
}

}  // namespace

Ranges Ranges::within(ir::OpId inthreads) const {
  Ranges out = *this;
  const auto& region = std::get<ir::Inthreads>(function_->ops[inthreads].data);
  std::vector<ir::OpId> nest = parallels_around(*function_, inthreads);
  if (nest.empty()) return out;
  const auto& launch = std::get<ir::Parallel>(function_->ops[nest[0]].data);
  const std::int64_t block_threads = launch.threads.constant().value_or(0);
  nest.erase(nest.begin());
  std::map<ir::VarId, std::set<std::int64_t>> seen;
  std::vector<std::int64_t> values(function_->vars.size());
  for (std::int64_t i = 0; i < region.threads && block_threads > 0; ++i) {
    set_unit_indices(*function_, nest, block_threads, region.first + i, values);
    for (const ir::OpId id : nest) {
      for (const ir::VarId var : std::get<ir::Parallel>(function_->ops[id].data).vars) {
        if (function_->vars[var].extent.constant()) seen[var].insert(values[var.index]);
      }
    }
  }
  for (const auto& [var, own] : seen) {
    const std::int64_t first = *own.begin();
    const std::int64_t last = *own.rbegin();
    out.ranges_[var] = {first, last, last - first + 1 == static_cast<std::int64_t>(own.size())};
  }
  return out;
}

std::vector<ir::VarId> Ranges::stepping(const ir::Expr& expr) const {
  std::vector<ir::VarId> vars;
  expr.collect_vars(vars);
  std::erase_if(vars, [&](ir::VarId var) { return !ranges_.contains(var); });
  return vars;
}

std::vector<ir::VarId> Ranges::moving(const ir::Expr& expr) const {
  std::vector<ir::VarId> vars = stepping(expr);
  std::erase_if(vars, [&](ir::VarId var) { return function_->vars[var].extent.is(1); });
  for (ir::VarId& var : vars) {
    if (const auto twin = same_.find(var); twin != same_.end()) var = twin->second;
  }
  return vars;
}

std::optional<Extreme> Ranges::extreme(ir::Expr expr, bool upper) const {
  bool attained = true;
  // Bounds of inner variables depend on outer ones only, which were declared before them.
  for (auto vars = stepping(expr); !vars.empty(); vars = stepping(expr)) {
    const ir::VarId var = *std::max_element(
        vars.begin(), vars.end(), [](ir::VarId a, ir::VarId b) { return a.index < b.index; });
    const Slope slope = slope_of(*function_, expr, var);
    if (slope == Slope::kUnknown) {
      if (upper) {
        const auto bound = ir::upper_bound(*function_, expr);
        return bound ? std::optional(Extreme{*bound, false}) : std::nullopt;
      }
      const auto bound = ir::minimum(*function_, expr);
      return bound ? std::optional(Extreme{ir::Expr(*bound), false}) : std::nullopt;
    }
    const Range& range = ranges_.at(var);
    const bool last = (slope == Slope::kRises) == upper;
    attained = attained && (range.dense || !last);
    const ir::Expr value = last ? range.last : range.first;
    expr = expr.substitute(
        [&](ir::VarId id) { return id == var ? std::optional(value) : std::nullopt; });
  }
  std::vector<ir::VarId> vars;
  expr.collect_vars(vars);
  const bool known = std::none_of(vars.begin(), vars.end(), [&](ir::VarId var) {
    return function_->vars[var].kind == ir::VarKind::kBound;
  });
  if (!known || expr.overflowed()) return std::nullopt;
  return Extreme{std::move(expr), attained};
}

std::int64_t coefficient_of(const ir::Expr& expr, ir::VarId var) {
  for (const ir::Term& term : expr.terms()) {
    const bool alone = term.atoms.size() == 1 && term.atoms[0].kind == ir::AtomKind::kVar;
    if (alone && term.atoms[0].var == var) return term.coefficient;
  }
  return 0;
}

}  // namespace kiln::coverage
