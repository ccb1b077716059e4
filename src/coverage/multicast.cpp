// Multicasts in a cluster: each block fetches a part of one tile for all, so that all of them have to
// ask for the same.
//
//   parallel {rank} by [2] : cluster, parallel i by 2*n : block
//     tma.copy.multicast x.subspan(64, 64).at(i / 2, k) => s    the same in neighbours
//     tma.copy.multicast x.subspan(64, 64).at(i, k) => s        half of one tile, half of another
#include <algorithm>
#include <random>

#include "coverage/coverage.h"
#include "coverage/several_values.h"
#include "support/format.h"

namespace kiln::coverage {

namespace {

// Places are compared with so many values of all other variables. One that is the same in the
// cluster for some of them may always be: where blocks are numbered through, it depends on how many
// there are along an axis, and whoever launches sees to that.
constexpr int kTries = 64;

class Cluster {
 public:
  Cluster(const ir::Function& function, const ir::Parallel& launch)
      : function_(function), launch_(launch) {
    for (const ir::VarId var : launch.cluster) {
      extents_.push_back(function.vars[var].extent.constant().value_or(1));
      blocks_ *= extents_.back();
    }
  }

  // Whether it has several values in the cluster, whatever else it depends on.
  [[nodiscard]] bool always_differs(const ir::Expr& place) const {
    std::vector<ir::VarId> vars;
    place.collect_vars(vars);
    const bool bound = std::ranges::any_of(
        vars, [&](ir::VarId var) { return function_.vars[var].kind == ir::VarKind::kBound; });
    if (bound || place.overflowed()) return false;
    std::mt19937_64 random(1);
    for (int i = 0; i < kTries; ++i) {
      std::vector<std::int64_t> values(function_.vars.size());
      for (const ir::VarId var : vars) {
        values[var.index] = value_it_may_have(function_.vars[var], random(), i == 0);
      }
      if (!has_several_values(place, blocks_, std::move(values),
                              [&](std::int64_t block, auto& of_block) { put(block, of_block); })) {
        return false;
      }
    }
    return true;
  }

 private:
  // The block's place, with those of the grid's variables as `values` has them rounded down to a cluster.
  void put(std::int64_t block, std::vector<std::int64_t>& values) const {
    for (std::size_t axis = extents_.size(); axis-- > 0;) {
      const std::int64_t rank = block % extents_[axis];
      block /= extents_[axis];
      std::int64_t& at = values[launch_.vars[axis].index];
      at = at / extents_[axis] * extents_[axis] + rank;
      values[launch_.cluster[axis].index] = rank;
    }
  }

  const ir::Function& function_;
  const ir::Parallel& launch_;
  std::vector<std::int64_t> extents_;
  std::int64_t blocks_ = 1;
};

// The first dimension of a place that differs, said.
std::optional<std::string> difference(const ir::Function& function, const Cluster& cluster,
                                      ir::ValueId view, std::string_view way) {
  const auto name = [&](ir::VarId var) { return function.vars[var].name; };
  const ir::ResolvedView end = ir::resolve_view(function, view);
  for (std::size_t d = 0; d < end.origin.size(); ++d) {
    if (!cluster.always_differs(end.origin[d])) continue;
    return format("where it copies {} `{}`, dimension {} is `{}`", way,
                  function.values[end.root].name, d, end.origin[d].text(name));
  }
  return std::nullopt;
}

// What differs. Where both ends do, each block may take the same tiles to the same places in an order of its own.
std::optional<std::string> difference(const ir::Function& function, const Cluster& cluster,
                                      const ir::Copy& copy) {
  auto from = difference(function, cluster, copy.src, "from");
  auto to = difference(function, cluster, copy.dst, "to");
  if (from && to) return std::nullopt;
  return from ? from : to;
}

// Whether the numbers of a loop's trips may differ between blocks.
bool depends_on_block(const ir::Function& function, const ir::For& loop) {
  std::vector<ir::VarId> vars;
  loop.lower.collect_vars(vars);
  loop.upper.collect_vars(vars);
  return std::ranges::any_of(vars, [&](ir::VarId var) {
    const ir::VarKind kind = function.vars[var].kind;
    return kind == ir::VarKind::kParallel || kind == ir::VarKind::kBound;
  });
}

// Whether blocks may go on elsewhere, and come to multicasts yet. (One that has left a loop leaves the others in it
// without its part of each.)
bool jumps(const ir::Function& function, const ir::Op& op) {
  bool found = false;
  for (const ir::RegionId region : ir::regions_of(op)) {
    ir::walk(function, region, [&](ir::OpId id) {
      const ir::OpKind kind = function.ops[id].kind();
      found = found || (ir::leaves_early(kind) && kind != ir::OpKind::kBreak);
    });
  }
  return found;
}

void report(Span span, std::string_view differs, Diagnostics& diags) {
  (void)diags
      .report<diag::MulticastDiffers>(
          span, format("a multicast of different tiles: {}, which differs between the blocks of a "
                       "cluster",
                       differs))
      .help(
          "each block fetches a part of one tile for all: let its place be the same in all blocks "
          "of a cluster, or leave `.multicast` out")
      .emit();
}

// Under a condition, behind a jump and in a loop of which blocks have trips of their own another operation, or another
// trip, may be the other blocks': the run compares those. False: some jump, so that not all need come behind it.
bool check_region(const ir::Function& function, const Cluster& cluster, ir::RegionId region,
                  Diagnostics& diags) {
  for (const ir::OpId id : function.regions[region].ops) {
    const ir::Op& op = function.ops[id];
    const auto* copy = std::get_if<ir::Copy>(&op.data);
    const auto differs =
        copy != nullptr && copy->multicast ? difference(function, cluster, *copy) : std::nullopt;
    if (differs) report(op.span, *differs, diags);
    if (op.kind() == ir::OpKind::kIf && jumps(function, op)) return false;
    const auto* loop = std::get_if<ir::For>(&op.data);
    const bool apart = loop != nullptr && depends_on_block(function, *loop);
    if (op.kind() == ir::OpKind::kIf || apart) continue;
    for (const ir::RegionId inner : ir::regions_of(op)) {
      const bool all = check_region(function, cluster, inner, diags);
      if (!all && !ir::is_loop(op.kind())) return false;
    }
  }
  return true;
}

}  // namespace

void check_multicasts(const ir::Function& function, Diagnostics& diags) {
  ir::walk(function, function.body, [&](ir::OpId id) {
    const auto* launch = std::get_if<ir::Parallel>(&function.ops[id].data);
    if (launch == nullptr || launch->cluster.empty()) return;
    (void)check_region(function, Cluster(function, *launch), launch->body, diags);
  });
}

}  // namespace kiln::coverage
