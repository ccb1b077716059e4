// What the threads of a warp or warpgroup do together, they do at one place.
//
//   parallel p by 2 : group-4, t by 128 : thread
//     mb = mma.load.swiz<128> b_s.subspan(64, 64).at(p, 0);       the same for all threads of a warpgroup
//     mb = mma.load.swiz<128> b_s.subspan(64, 64).at(t / 64, 0);  two, of which the hardware would take one
#include <optional>
#include <random>
#include <set>

#include "coverage/coverage.h"
#include "coverage/several_values.h"
#include "ir/effects.h"
#include "ir/reflect.h"
#include "ir/vary.h"
#include "target/arch.h"

namespace kiln::coverage {

namespace {

// A place that depends on the threads of a unit is worked out for each of them, with so many values of all else.
constexpr int kPlaceTries = 8;
constexpr std::int64_t kPlaceValueMax = 1 << 14;
constexpr std::int64_t kThreadsMax = 1024;

class Places {
 public:
  Places(const ir::Function& function, Diagnostics& diags)
      : function_(function), diags_(diags), varying_(function) {
    ir::walk(function, function.body, [&](ir::OpId id) { follow(function.ops[id]); });
  }

  // `unit`: whose threads work together there; of threads that `inthreads` picks out of a block it is not known.
  void check(ir::RegionId region, std::optional<ir::Level> unit) {
    for (const ir::OpId id : function_.regions[region].ops) {
      const ir::Op& op = function_.ops[id];
      if (unit) check_op(op, *unit);
      std::optional<ir::Level> inner = unit;
      if (const auto* parallel = std::get_if<ir::Parallel>(&op.data)) {
        if (parallel->level != ir::Level::kThread) inner = parallel->level;
      }
      const auto* some = std::get_if<ir::Inthreads>(&op.data);
      const bool whole = unit != ir::Level::kBlock && some != nullptr &&
                         some->threads % target::kWarpgroupLanes == 0;
      if (some != nullptr && !whole) inner = std::nullopt;
      for (const ir::RegionId each : ir::regions_of(op)) check(each, inner);
    }
  }

 private:
  // What has been through code in CUDA may be the same for all threads, a number that one of them
  // has handed to the others: Kiln does not look into it.
  void follow(const ir::Op& op) {
    bool uses = false;
    ir::for_each_operand(op, [&](std::string_view, ir::ValueId value) {
      uses = uses || from_cuda_.contains(value);
    });
    if (const auto* code = std::get_if<ir::Cuda>(&op.data)) {
      from_cuda_.insert(code->passed.begin(), code->passed.end());
    }
    if (!uses) return;
    if (op.result.valid()) from_cuda_.insert(op.result);
    if (const auto* set = std::get_if<ir::Set>(&op.data)) from_cuda_.insert(set->cell);
    if (const auto* bind = std::get_if<ir::Bind>(&op.data)) unknown_.insert(bind->var);
  }

  void check_op(const ir::Op& op, ir::Level unit) {
    const ir::Executor executor = ir::executor_of(op);
    if (executor == ir::Executor::kThread) return;
    if (executor == ir::Executor::kBlock && unit != ir::Level::kBlock) return;
    for (const ir::Touch& touch : ir::memory_touched(function_, op)) {
      if (touch.index != nullptr) continue;
      for (const ir::Expr& place : ir::resolve_view(function_, touch.value).origin) {
        if (varies(place, unit)) return report(op.span, place, unit);
      }
    }
  }

  bool varies(const ir::Expr& place, ir::Level unit) {
    std::vector<ir::VarId> vars;
    place.collect_vars(vars);
    std::vector<ir::VarId> threads;
    std::int64_t count = 1;
    for (const ir::VarId var : vars) {
      if (unknown_.contains(var) || !varying_.var(var, unit)) continue;
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
        values[var.index] = 1 + static_cast<std::int64_t>(random() % kPlaceValueMax);
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

  void report(Span span, const ir::Expr& place, ir::Level unit) {
    const std::string_view who = unit == ir::Level::kGroup    ? "warp"
                                 : unit == ir::Level::kGroup4 ? "warpgroup"
                                                              : "block";
    const auto name = [&](ir::VarId var) { return function_.vars[var].name; };
    (void)diags_.report<diag::PlaceDiffers>(span, who, place.text(name))
        .help("let the place be the same for all threads of the {}", who)
        .emit();
  }

  const ir::Function& function_;
  Diagnostics& diags_;
  ir::Varying varying_;
  std::set<ir::ValueId> from_cuda_;
  std::set<ir::VarId> unknown_;  // bound to such values
};

}  // namespace

void check_unit_places(const ir::Function& function, Diagnostics& diags) {
  Places(function, diags).check(function.body, std::nullopt);
}

}  // namespace kiln::coverage
