#include "passes/number_barriers.h"

#include <algorithm>
#include <map>

#include "passes/for_each_launch.h"
#include "passes/kernel_facts.h"
#include "target/arch.h"

namespace kiln::passes {

namespace {
constexpr std::int64_t kWarpgroupsMax = 8;
constexpr std::int64_t kNamedMax = 15;  // a block has 16, and number 0 is its own

class Numberer {
 public:
  Numberer(ir::Function& function, Diagnostics& diags) : function_(function), diags_(diags) {}

  Checked<bool> run(ir::RegionId body) {
    std::vector<ir::OpId> regions;
    ir::walk(function_, body, [&](ir::OpId id) {
      if (function_.ops[id].kind() == ir::OpKind::kInthreads) regions.push_back(id);
    });
    taken_ = of_warpgroups(body);
    for (const ir::OpId id : regions) number(id);
    const std::int64_t left = kNamedMax - taken_;
    if (std::ssize(ids_) > left) {
      (void)diags_.report<diag::NamedBarrierCount>(one_more_, ids_.size(), left)
          .help("let regions of one warp or one thread do what needs no more, or join regions")
          .emit();
      failed_ = true;
    }
    if (failed_) return diags_.failed();
    return true;
  }

 private:
  // How many barriers warpgroups have of their own: the first ones (kiln::barrier_group4).
  [[nodiscard]] std::int64_t of_warpgroups(ir::RegionId body) const {
    std::int64_t count = 0;
    bool meet = false;
    ir::walk(function_, body, [&](ir::OpId id) {
      const ir::Op& op = function_.ops[id];
      const auto* barrier = std::get_if<ir::Barrier>(&op.data);
      meet = meet || (barrier != nullptr && barrier->level == ir::Level::kGroup4);
      const auto* parallel = std::get_if<ir::Parallel>(&op.data);
      if (parallel == nullptr || parallel->level != ir::Level::kGroup4) return;
      std::int64_t all = 1;
      for (const ir::VarId var : parallel->vars) {
        all *= function_.vars[var].extent.constant().value_or(kWarpgroupsMax);
      }
      count = std::max(count, std::min(all, kWarpgroupsMax));
    });
    return meet ? count : 0;
  }

  void number(ir::OpId region) {
    auto& some = std::get<ir::Inthreads>(function_.ops[region].data);
    const Team team{some.first, some.threads, some.single};
    if (team.is_alone()) return drop(some.body);
    std::vector<ir::OpId> barriers;
    collect(some.body, barriers);
    if (barriers.empty()) return;
    const bool in_one_warp = team.is_in_one(target::kWarpLanes);
    if (!in_one_warp) some.barrier = named(function_.ops[barriers[0]].span, team);
    for (const ir::OpId id : barriers) {
      auto& barrier = std::get<ir::Barrier>(function_.ops[id].data);
      barrier.level = in_one_warp ? ir::Level::kGroup : ir::Level::kBlock;
      barrier.id = some.barrier;
      barrier.threads = in_one_warp && team.threads == target::kWarpLanes ? 0 : team.threads;
    }
  }

  // Barriers of the region's threads. Regions inside have their own.
  void collect(ir::RegionId region, std::vector<ir::OpId>& out) const {
    for (const ir::OpId id : function_.regions[region].ops) {
      const ir::Op& op = function_.ops[id];
      if (op.kind() == ir::OpKind::kInthreads) continue;
      const auto* barrier = std::get_if<ir::Barrier>(&op.data);
      const bool of_region = barrier != nullptr && barrier->level == ir::Level::kBlock;
      if (of_region && !barrier->cluster) out.push_back(id);
      for (const ir::RegionId inner : ir::regions_of(op)) collect(inner, out);
    }
  }

  // One thread has nobody to wait for.
  void drop(ir::RegionId region) {
    std::vector<ir::OpId>& ops = function_.regions[region].ops;
    std::erase_if(ops, [&](ir::OpId id) {
      const auto* barrier = std::get_if<ir::Barrier>(&function_.ops[id].data);
      return barrier != nullptr && !barrier->cluster;
    });
    for (const ir::OpId id : ops) {
      for (const ir::RegionId inner : ir::regions_of(function_.ops[id])) drop(inner);
    }
  }

  std::int64_t named(Span span, const Team& team) {
    if (team.first % target::kWarpLanes != 0 || team.threads % target::kWarpLanes != 0)
      report_part(span, team);
    const auto [entry, added] = ids_.emplace(std::pair{team.first, team.threads},
                                             taken_ + static_cast<std::int64_t>(ids_.size()) + 1);
    if (added && entry->second == kNamedMax + 1) one_more_ = span;
    return entry->second;
  }

  void report_part(Span span, const Team& team) {
    failed_ = true;
    const std::int64_t first = team.first / target::kWarpLanes * target::kWarpLanes;
    const std::int64_t end = (team.first + team.threads + target::kWarpLanes - 1) /
                             target::kWarpLanes * target::kWarpLanes;
    (void)diags_
        .report<diag::NamedBarrierThreads>(span, team.first, team.first + team.threads - 1,
                                           target::kWarpLanes)
        .help("threads {} to {} are whole warps: let the region begin and end there", first,
              end - 1)
        .emit();
  }

  ir::Function& function_;
  Diagnostics& diags_;
  Span one_more_ = {};  // the first barrier that has no number left
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> ids_;  // of (first, threads)
  std::int64_t taken_ = 0;
  bool failed_ = false;
};

}  // namespace

Checked<bool> number_barriers(ir::Module& module, Diagnostics& diags) {
  bool failed = false;
  for_each_launch(module, [&](ir::Function& function, ir::OpId launch) {
    failed = !Numberer(function, diags).run(body_of(function, launch)) || failed;
  });
  if (failed) return diags.failed();
  return true;
}

}  // namespace kiln::passes
