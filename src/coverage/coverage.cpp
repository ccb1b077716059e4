#include "coverage/coverage.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "coverage/access.h"
#include "ir/prove.h"

namespace kiln::coverage {

namespace {

// A dimension of a root buffer that tiles of one side step through.
struct Walk {
  const TileAccess* tile;
  std::size_t dimension;
  ir::VarId var;      // the variable that takes the largest steps
  std::int64_t step;  // its step, in elements
};

// The number that a sum starts from.
std::int64_t offset_of(const ir::Expr& expr) {
  for (const ir::Term& term : expr.terms()) {
    if (term.atoms.empty()) return term.coefficient;
  }
  return 0;
}

class Coverage {
 public:
  Coverage(const ir::Function& function, const std::vector<std::int64_t>* launch,
           Diagnostics& diags)
      : function_(function),
        launch_(launch),
        diags_(diags),
        ranges_(function),
        accesses_(accesses_of(function)) {
    for (const ir::Op& op : function.ops) has_product_ |= op.kind() == ir::OpKind::kMma;
    for (const TileAccess& access : accesses_) {
      const ir::OpId region = access.inthreads;
      if (region.valid() && !narrowed_.contains(region)) {
        narrowed_.emplace(region, ranges_.within(region));
      }
    }
  }

  void check_strides();
  void check_past_end();
  void check_short();

 private:
  using Group = std::vector<const TileAccess*>;
  struct Reach {
    ir::Expr first;
    ir::Expr end;  // one past the last element
  };

  // The values that variables take where the access is.
  [[nodiscard]] const Ranges& ranges(const TileAccess& access) const {
    return access.inthreads.valid() ? narrowed_.at(access.inthreads) : ranges_;
  }
  [[nodiscard]] const ir::Expr& extent(const TileAccess& access, std::size_t dimension) const {
    return function_.view_type(access.at.root).shape[dimension];
  }
  [[nodiscard]] bool less_equal(const ir::Expr& left, const ir::Expr& right) const {
    if (launch_ == nullptr) return ir::always_less_equal(function_, left, right);
    return left.evaluate(*launch_) <= right.evaluate(*launch_);
  }
  [[nodiscard]] std::string text(const ir::Expr& expr) const {
    return launch_ == nullptr ? function_.text(expr) : format("{}", expr.evaluate(*launch_));
  }
  // An integer parameter: the caller decides which part it is.
  [[nodiscard]] bool caller_chooses(const ir::Expr& expr) const {
    std::vector<ir::VarId> vars;
    expr.collect_vars(vars);
    return std::any_of(vars.begin(), vars.end(), [&](ir::VarId var) {
      return function_.vars[var].kind == ir::VarKind::kScalar;
    });
  }
  [[nodiscard]] bool is_loop(ir::VarId var) const {
    return function_.vars[var].kind == ir::VarKind::kLoop;
  }
  [[nodiscard]] std::string tiles_text(const Walk& walk) const {
    const ir::Expr& whole = extent(*walk.tile, walk.dimension);
    const std::string count = whole.constant()
                                  ? function_.text(ir::cdiv(whole, walk.step))
                                  : format("`cdiv({}, {})`", function_.text(whole), walk.step);
    return format("`{}` covers the dimension in steps of {} with {} values",
                  function_.vars[walk.var].name, walk.step, count);
  }
  [[nodiscard]] std::optional<Walk> walk_of(const TileAccess& access, std::size_t dimension) const;
  [[nodiscard]] std::optional<ir::Expr> end_of(const TileAccess& access, std::size_t dimension,
                                               const Ranges& values) const;
  [[nodiscard]] bool reaches_limit(const TileAccess& access, std::size_t dimension,
                                   const ir::Expr& end) const;
  [[nodiscard]] bool strides_past_end(const TileAccess& access, std::size_t dimension,
                                      ir::VarId var) const;
  [[nodiscard]] bool check_stride(const TileAccess& access, std::size_t dimension);
  [[nodiscard]] std::string in_tiles(const TileAccess& access) const;
  void check_past_end(const TileAccess& access, std::size_t dimension);
  // `narrowed`: the threads of each access's region count only.
  [[nodiscard]] std::optional<Reach> reach_of(const Group& group, std::size_t dimension,
                                              bool narrowed) const;
  void check_group(const Group& group, const Group& others);
  void check_dimension(const Group& group, const Group& others, std::size_t dimension);
  void report_short(const Walk& walk, const ir::Expr& first, const ir::Expr& last);

  const ir::Function& function_;
  const std::vector<std::int64_t>* launch_;  // null: every launch
  Diagnostics& diags_;
  Ranges ranges_;
  std::map<ir::OpId, Ranges> narrowed_;  // by `inthreads` region
  std::vector<TileAccess> accesses_;
  std::set<ir::VarId> blamed_;
  bool has_product_ = false;
};

// How tiles go along the dimension, without gaps between them; none when they do not.
std::optional<Walk> Coverage::walk_of(const TileAccess& access, std::size_t dimension) const {
  const auto tile = access.extents[dimension].constant();
  if (!access.is_tile || access.anywhere || !tile || dimension < access.at.dropped)
    return std::nullopt;
  const bool is_shared = function_.view_type(access.at.root).space == ir::Space::kShared;
  std::optional<Walk> walk;
  std::int64_t least = 0;
  for (const ir::VarId var : ranges(access).stepping(access.at.origin[dimension])) {
    const std::int64_t step = coefficient_of(access.at.origin[dimension], var);
    if (step <= 0) return std::nullopt;
    // One block, one step: the index is there for form.
    if (!is_shared && function_.vars[var].extent.is(1)) continue;
    least = least == 0 ? step : std::min(least, step);
    if (!walk || step > walk->step) walk = Walk{&access, dimension, var, step};
  }
  if (least > *tile) return std::nullopt;
  return walk;
}

// One past the last element that the access reaches, as far as can be told.
std::optional<ir::Expr> Coverage::end_of(const TileAccess& access, std::size_t dimension,
                                         const Ranges& values) const {
  std::vector<ir::Expr> ends = access.at.limits[dimension];
  ends.push_back(access.at.origin[dimension] + access.extents[dimension]);
  std::optional<ir::Expr> least;
  for (const ir::Expr& end : ends) {
    const auto largest = values.largest(end);
    if (!largest) continue;
    if (!least || !less_equal(*least, largest->value)) least = largest->value;
  }
  return least;
}

// Does the access reach the end of the view it was cut from? Where the caller decides how much of
// the buffer that is, the view says what is wanted; one that is always smaller is a suspect still.
bool Coverage::reaches_limit(const TileAccess& access, std::size_t dimension,
                             const ir::Expr& end) const {
  const ir::Expr& whole = extent(access, dimension);
  return std::ranges::any_of(access.at.limits[dimension], [&](const ir::Expr& limit) {
    // Those that step are the ends of tiles.
    return ranges(access).stepping(limit).empty() && less_equal(limit, end) &&
           !ir::always_less_equal(function_, limit + 1, whole);
  });
}

void Coverage::check_past_end(const TileAccess& access, std::size_t dimension) {
  const auto walk = walk_of(access, dimension);
  if (!walk || access.conditional || blamed_.contains(walk->var)) return;
  const ir::Expr& origin = access.at.origin[dimension];
  const bool ahead = offset_of(origin) != 0;
  if (ahead && is_loop(walk->var)) return;  // a loop that fetches the next tile
  const auto start = ranges(access).largest_along(origin, walk->var);
  const ir::Expr& whole = extent(access, dimension);
  if (!start || !start->attained || !less_equal(whole, start->value)) return;
  blamed_.insert(walk->var);
  const ir::Var& var = function_.vars[walk->var];
  const Span tile = view_span(function_, access);
  (void)diags_
      .report<diag::TilePastEnd>(ahead ? tile : var.span, var.name, text(start->value), dimension,
                                 root_name(function_, access.at.root), text(whole))
      .label(tile, "this tile starts at element {}", text(origin))
      .help("{}", tiles_text(*walk))
      .emit();
}

// Whether the variable's step is a multiple of the tile in tiles, so as if its index counted
// elements, and leads past the end as soon as there are two steps.
bool Coverage::strides_past_end(const TileAccess& access, std::size_t dimension,
                                ir::VarId var) const {
  const ir::Expr& origin = access.at.origin[dimension];
  const auto tile = access.extents[dimension].constant();
  const std::int64_t step = coefficient_of(origin, var);
  if (!tile || *tile < 2 || *tile > INT32_MAX || step <= 0 || step % (*tile * *tile) != 0) {
    return false;
  }
  if (is_loop(var) && offset_of(origin) != 0) return false;  // it fetches the next tile
  const auto least = ranges(access).least(origin - ir::Expr::var(var) * step);
  const auto count = ranges(access).count(var);
  if (!least || !count || !less_equal(0, least->value)) return false;
  const ir::Expr& whole = extent(access, dimension);
  if (launch_ != nullptr || count->constant()) {
    return less_equal(2, *count) && less_equal(whole, (*count - 1) * step);
  }
  // From two values on, the last start is at least each of these.
  return less_equal(whole, *count * (step / 2)) ||
         less_equal(whole, *count * (step / 4) + step / 2);
}

// "bm, k": the tile indices that element offsets were written for; empty when that is not clear.
std::string Coverage::in_tiles(const TileAccess& access) const {
  const auto* window = function_.def_as<ir::Subview>(access.view);
  const std::vector<ir::Expr>& shape = function_.view_type(access.view).shape;
  if (window == nullptr || window->origin.size() != shape.size()) return "";
  std::string out;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const auto tile = shape[d].constant();
    if (!tile || *tile < 1 || !ir::always_divisible(window->origin[d], *tile)) return "";
    ir::Expr index = ir::floor_div(window->origin[d], *tile);
    if (ir::always_divisible(index, *tile)) index = ir::floor_div(index, *tile);
    out += (d == 0 ? "" : ", ") + function_.text(index);
  }
  return out;
}

// Element offsets where tile indices are meant. True after a report.
bool Coverage::check_stride(const TileAccess& access, std::size_t dimension) {
  for (const ir::VarId var : ranges(access).stepping(access.at.origin[dimension])) {
    if (blamed_.contains(var) || !strides_past_end(access, dimension, var)) continue;
    const std::int64_t tile = *access.extents[dimension].constant();
    const ir::Expr& origin = access.at.origin[dimension];
    const Span span = view_span(function_, access);
    for (const ir::Expr& each : access.at.origin) {
      for (const ir::VarId other : ranges(access).stepping(each)) blamed_.insert(other);
    }
    const std::string meant = in_tiles(access);
    (void)diags_
        .report<diag::TileStride>(
            span, function_.vars[var].name, coefficient_of(origin, var) / tile, tile, dimension,
            root_name(function_, access.at.root), text(extent(access, dimension)))
        .label(span, "this tile starts at element {}", function_.text(origin))
        .help("`.at` counts tiles, not elements{}",
              meant.empty() ? "" : format(": did you mean `.at({})`?", meant))
        .emit();
    return true;
  }
  return false;
}

void Coverage::check_strides() {
  for (const TileAccess& access : accesses_) {
    if (!access.is_tile || access.anywhere || access.conditional) continue;
    for (std::size_t d = access.at.dropped; d < access.extents.size(); ++d) {
      if (check_stride(access, d)) break;
    }
  }
}

void Coverage::check_past_end() {
  for (const TileAccess& access : accesses_) {
    for (std::size_t d = 0; d < access.extents.size(); ++d) check_past_end(access, d);
  }
}

void Coverage::report_short(const Walk& walk, const ir::Expr& first, const ir::Expr& last) {
  if (!blamed_.insert(walk.var).second) return;
  const ir::Var& var = function_.vars[walk.var];
  const std::string root = root_name(function_, walk.tile->at.root);
  auto builder = is_loop(walk.var)
                     ? diags_.report<diag::LoopShort>(var.span, var.name, text(first), text(last),
                                                      walk.dimension, root)
                     : diags_.report<diag::GridShort>(var.span, var.name, text(first), text(last),
                                                      walk.dimension, root);
  (void)std::move(builder)
      .label(view_span(function_, *walk.tile), "this tile starts at element {}",
             function_.text(walk.tile->at.origin[walk.dimension]))
      .help("{}", tiles_text(walk))
      .emit();
}

// What the accesses reach together; none when one of them cannot be told.
std::optional<Coverage::Reach> Coverage::reach_of(const Group& group, std::size_t dimension,
                                                  bool narrowed) const {
  std::optional<Reach> reach;
  for (const TileAccess* access : group) {
    if (access->anywhere || dimension < access->at.dropped) return std::nullopt;
    const Ranges& values = narrowed ? ranges(*access) : ranges_;
    const auto low = values.least(access->at.origin[dimension]);
    const auto high = end_of(*access, dimension, values);
    if (!low || !high || caller_chooses(low->value) || caller_chooses(*high)) return std::nullopt;
    if (!reach) reach = Reach{low->value, *high};
    if (less_equal(low->value, reach->first)) reach->first = low->value;
    if (less_equal(reach->end, *high)) reach->end = *high;
  }
  return reach;
}

// The accesses of one side of a buffer should reach both ends of a dimension that tiles walk along:
// of a global buffer its own ends, of a shared one those that the other side reaches.
void Coverage::check_dimension(const Group& group, const Group& others, std::size_t dimension) {
  std::optional<Walk> walk;
  for (const TileAccess* access : group) {
    if (!walk) walk = walk_of(*access, dimension);
  }
  if (!walk) return;
  const bool shared = function_.view_type(walk->tile->at.root).space == ir::Space::kShared;
  // As much as it may be on this side, what it is for sure on the other.
  const auto reach = reach_of(group, dimension, false);
  const auto goal = shared ? reach_of(others, dimension, true)
                           : std::optional(Reach{0, extent(*walk->tile, dimension)});
  if (!reach || !goal) return;
  // Where two accesses cannot be compared, each of them must fall short.
  const auto all = [&](const auto& falls_short) {
    return std::all_of(group.begin(), group.end(), falls_short);
  };
  if (all([&](const TileAccess* access) {
        const ir::Expr end = *end_of(*access, dimension, ranges_);
        return less_equal(end + 1, goal->end) && !reaches_limit(*access, dimension, end);
      })) {
    return report_short(*walk, reach->end, goal->end - 1);
  }
  if (all([&](const TileAccess* access) {
        return less_equal(goal->first + 1, ranges_.least(access->at.origin[dimension])->value);
      })) {
    report_short(*walk, goal->first, reach->first - 1);
  }
}

void Coverage::check_group(const Group& group, const Group& others) {
  if (group.empty()) return;
  const TileAccess& any = *group.front();
  if (!any.writes && !has_product_) return;  // reading a part only is usual elsewhere
  const auto* alloc = function_.def_as<ir::Alloc>(any.at.root);
  if (any.writes && alloc != nullptr && alloc->initial.valid()) return;
  for (std::size_t d = 0; d < any.extents.size(); ++d) check_dimension(group, others, d);
}

void Coverage::check_short() {
  std::map<ir::ValueId, Group> reads;
  std::map<ir::ValueId, Group> writes;
  for (const TileAccess& access : accesses_) {
    (access.writes ? writes : reads)[access.at.root].push_back(&access);
  }
  // Outputs first: a short grid also reads too little.
  for (const auto& [root, group] : writes) check_group(group, reads[root]);
  for (const auto& [root, group] : reads) check_group(group, writes[root]);
}

}  // namespace

void check_coverage(const ir::Function& function, Diagnostics& diags) {
  Coverage coverage(function, nullptr, diags);
  coverage.check_strides();
  coverage.check_past_end();
  coverage.check_short();
}

void check_coverage(const ir::Function& function, const std::vector<std::int64_t>& vars,
                    Diagnostics& diags) {
  Coverage coverage(function, &vars, diags);
  coverage.check_strides();
  coverage.check_short();
}

}  // namespace kiln::coverage
