#include "passes/check_registers.h"

#include <algorithm>
#include <vector>

#include "passes/for_each_launch.h"
#include "passes/kernel_facts.h"
#include "target/registers.h"

namespace kiln::passes {

namespace {

// What one warpgroup does to its registers, in order.
using Changes = std::vector<ir::OpId>;

class Checker {
 public:
  // The kernel starts with what blocks of `bound` threads leave each.
  Checker(const ir::Function& function, const target::Arch& arch, std::int64_t threads,
          std::int64_t bound, Diagnostics& diags)
      : function_(function),
        diags_(diags),
        threads_(threads),
        groups_(static_cast<std::size_t>((threads + kWarpgroup - 1) / kWarpgroup)),
        limit_(target::registers_at_start(arch, bound)) {}

  void collect(ir::RegionId region, std::int64_t first, std::int64_t threads) {
    for (const ir::OpId id : function_.regions[region].ops) {
      const ir::Op& op = function_.ops[id];
      if (const auto* set = std::get_if<ir::Registers>(&op.data)) {
        largest_ = std::max(largest_, set->count);
        for (std::int64_t at = first; at < first + threads; at += kWarpgroup) {
          groups_[static_cast<std::size_t>(at / kWarpgroup)].push_back(id);
        }
      }
      const auto* some = std::get_if<ir::Inthreads>(&op.data);
      for (const ir::RegionId inner : ir::regions_of(op)) {
        some == nullptr ? collect(inner, first, threads)
                        : collect(inner, some->first, some->threads);
      }
    }
  }

  bool check() {
    if (largest_ == 0) return true;
    bool right = true;
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      right = check_order(group) && right;
    }
    return right && check_pool();
  }

 private:
  [[nodiscard]] const ir::Registers& change(ir::OpId id) const {
    return std::get<ir::Registers>(function_.ops[id].data);
  }
  // ptxas lets a kernel start with what its largest warpgroup gets, if there is as much.
  [[nodiscard]] std::int64_t start() const { return std::min(largest_, limit_); }

  bool check_order(std::size_t group) {
    std::int64_t now = start();
    for (const ir::OpId id : groups_[group]) {
      const ir::Registers& next = change(id);
      const bool wrong = next.increases ? next.count < now : next.count > now;
      if (wrong && reported_.empty()) {
        reported_.push_back(id);
        static_cast<void>(
            diags_
                .report<diag::RegistersOrder>(function_.ops[id].span,
                                              next.increases ? "setreg_inc" : "setreg_dec",
                                              next.count, group, now)
                .help("use `{}({})`, or leave it out", next.increases ? "setreg_dec" : "setreg_inc",
                      next.count)
                .emit());
      }
      if (wrong) return false;
      now = next.count;
    }
    return true;
  }

  bool check_pool() {
    const std::int64_t pool = start() * threads_;
    std::int64_t sum = 0;
    std::int64_t others = 0;  // of warpgroups that take no more
    std::int64_t takers = 0;
    ir::OpId last;
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      std::int64_t count = groups_[group].empty() ? start() : change(groups_[group][0]).count;
      bool takes = false;
      for (const ir::OpId id : groups_[group]) {
        count = std::min(count, change(id).count);
        takes = takes || change(id).increases;
        if (change(id).increases) last = id;
      }
      const auto first = static_cast<std::int64_t>(group) * kWarpgroup;
      const std::int64_t mine = count * std::min(kWarpgroup, threads_ - first);
      sum += mine;
      takers += takes ? 1 : 0;
      others += takes ? 0 : mine;
    }
    if (sum <= pool || !last.valid()) return true;
    const std::int64_t step = target::kRegisterCounts.step;
    const std::int64_t fair = (pool - others) / (takers * kWarpgroup) / step * step;
    static_cast<void>(diags_
                          .report<diag::RegistersPool>(function_.ops[last].span, groups_.size(),
                                                       sum, threads_, pool, start())
                          .help("{}", fair >= start()
                                          ? format("take {}, or give more away elsewhere", fair)
                                          : format("give some away first, with `setreg_dec` in "
                                                   "another warpgroup"))
                          .emit());
    return false;
  }

  const ir::Function& function_;
  Diagnostics& diags_;
  std::int64_t threads_;
  std::vector<Changes> groups_;
  std::int64_t limit_;
  std::int64_t largest_ = 0;
  std::vector<ir::OpId> reported_;
};

// False after an error.
bool check_launch(const ir::Function& function, ir::OpId launch, const target::Arch& arch,
                  Diagnostics& diags) {
  const auto& parallel = std::get<ir::Parallel>(function.ops[launch].data);
  const auto threads = parallel.threads.constant();
  if (!threads || *threads < 1) return true;
  Checker checker(function, arch, *threads, std::max(*threads, parallel.threads_bound), diags);
  checker.collect(parallel.body, 0, *threads);
  return checker.check();
}

}  // namespace

Checked<bool> check_registers(ir::Module& module, Diagnostics& diags) {
  bool failed = false;
  for_each_launch(module, [&](const ir::Function& function, ir::OpId launch) {
    failed = !check_launch(function, launch, *module.arch, diags) || failed;
  });
  if (failed) return diags.failed();
  return true;
}

}  // namespace kiln::passes
