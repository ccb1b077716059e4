// What the threads of a warp or warpgroup do together, they do at one place.
//
//   parallel p by 2 : group-4, t by 128 : thread
//     mb = mma.load.swiz<128> b_s.subspan(64, 64).at(p, 0);       the same for all threads of a warpgroup
//     mb = mma.load.swiz<128> b_s.subspan(64, 64).at(t / 64, 0);  two, of which the hardware would take one
#include <algorithm>
#include <map>
#include <optional>
#include <random>

#include "coverage/coverage.h"
#include "coverage/several_values.h"
#include "ir/effects.h"
#include "ir/prove.h"
#include "ir/reflect.h"
#include "ir/vary.h"
#include "target/arch.h"

namespace kiln::coverage {

namespace {

// A place that depends on the threads of a unit is worked out for each of them, with so many values of all else.
constexpr int kPlaceTries = 32;
constexpr std::int64_t kThreadsMax = 1024;

class Places {
 public:
  Places(const ir::Function& function, Diagnostics& diags)
      : function_(function),
        diags_(diags),
        varying_(function, ir::Varying::OfCuda::kMayBeTheSame) {}

  // `unit`: whose threads work together there; of threads that `inthreads` picks out of a block it is not known.
  void check(ir::RegionId region, std::optional<ir::Level> unit) {
    for (const ir::OpId id : function_.regions[region].ops) {
      const ir::Op& op = function_.ops[id];
      if (unit) check_op(op, *unit);
      if (const auto* loop = std::get_if<ir::For>(&op.data)) {
        least_[loop->var] = ir::minimum(function_, loop->lower).value_or(0);
      }
      std::optional<ir::Level> inner = unit;
      if (const auto* parallel = std::get_if<ir::Parallel>(&op.data)) {
        if (parallel->level != ir::Level::kThread) inner = parallel->level;
      }
      const auto* some = std::get_if<ir::Inthreads>(&op.data);
      if (some != nullptr && !(unit && ir::has_whole_units(*some, *unit))) inner = std::nullopt;
      for (const ir::RegionId each : ir::regions_of(op)) check(each, inner);
    }
  }

 private:
  void check_op(const ir::Op& op, ir::Level unit) {
    const ir::Executor executor = ir::executor_of(op);
    if (executor == ir::Executor::kThread) return;
    if (executor == ir::Executor::kBlock && unit != ir::Level::kBlock) return;
    for (const ir::Touch& touch : ir::memory_touched(function_, op)) {
      if (touch.index != nullptr) continue;
      const ir::ResolvedView view = ir::resolve_view(function_, touch.value);
      for (const ir::Expr& place : view.origin) {
        if (varies(place, unit)) return report(op.span, "place", place, unit);
      }
      for (const std::vector<ir::Expr>& limits : view.limits) {
        for (const ir::Expr& limit : limits) {
          if (varies(limit, unit)) return report(op.span, "end", limit, unit);
        }
      }
    }
  }

  bool varies(const ir::Expr& place, ir::Level unit) {
    std::vector<ir::VarId> vars;
    place.collect_vars(vars);
    std::vector<ir::VarId> threads;
    std::int64_t count = 1;
    for (const ir::VarId var : vars) {
      if (!varying_.var(var, unit)) continue;
      const auto extent = function_.vars[var].extent.constant();
      if (function_.vars[var].kind != ir::VarKind::kParallel || !extent) return true;
      threads.push_back(var);
      count *= *extent;
    }
    if (threads.empty() || count > kThreadsMax) return !threads.empty();
    std::mt19937_64 random(1);
    for (int i = 0; i < kPlaceTries; ++i) {
      std::vector<std::int64_t> values(function_.vars.size());
      for (const ir::VarId var : vars) {
        const std::int64_t value = value_it_may_have(function_.vars[var], random(), i == 0);
        const auto least = least_.find(var);
        values[var.index] = least == least_.end() ? value : std::max(value, least->second);
      }
      // `t / 32` of 32 threads is one number.
      const auto put = [&](std::int64_t thread, std::vector<std::int64_t>& of_thread) {
        for (const ir::VarId var : threads) {
          const std::int64_t extent = *function_.vars[var].extent.constant();
          of_thread[var.index] = thread % extent;
          thread /= extent;
        }
      };
      if (has_several_values(place, count, std::move(values), put)) return true;
    }
    return false;
  }

  void report(Span span, std::string_view what, const ir::Expr& place, ir::Level unit) {
    const std::string_view who = unit == ir::Level::kGroup    ? "warp"
                                 : unit == ir::Level::kGroup4 ? "warpgroup"
                                                              : "block";
    const auto name = [&](ir::VarId var) { return function_.vars[var].name; };
    (void)diags_.report<diag::PlaceDiffers>(span, who, what, place.text(name))
        .help("let the {} be the same for all threads of the {}", what, who)
        .emit();
  }

  const ir::Function& function_;
  Diagnostics& diags_;
  ir::Varying varying_;
  std::map<ir::VarId, std::int64_t> least_;  // of the loops so far
};

}  // namespace

void check_unit_places(const ir::Function& function, Diagnostics& diags) {
  Places(function, diags).check(function.body, std::nullopt);
}

}  // namespace kiln::coverage
