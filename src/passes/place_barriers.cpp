#include "passes/place_barriers.h"

#include <algorithm>

#include "ir/vary.h"
#include "ir/verify.h"
#include "passes/for_each_launch.h"
#include "passes/placer.h"

namespace kiln::passes {

namespace {

class Meetings {
 public:
  Meetings(const ir::Function& function, Diagnostics& diags)
      : function_(function),
        diags_(diags),
        varying_(function),
        unmet_(ir::reads_without_barrier(function)) {}

  // Whether all can wait. `differs`: where not all go the same way, the outermost.
  bool check(ir::RegionId region, Span differs) {
    bool right = true;
    for (const ir::OpId id : function_.regions[region].ops) {
      const ir::Op& op = function_.ops[id];
      if (differs.valid() && std::ranges::find(unmet_, id) != unmet_.end()) {
        right = false;
        report(op.span, differs);
      }
      const bool part = !differs.valid() && splits(id);
      for (const ir::RegionId inner : ir::regions_of(op)) {
        right = check(inner, part ? where(op) : differs) && right;
      }
    }
    return right;
  }

 private:
  bool splits(ir::OpId id) {
    const ir::OpKind kind = function_.ops[id].kind();
    const bool is_way =
        kind == ir::OpKind::kIf || kind == ir::OpKind::kFor || kind == ir::OpKind::kLoop;
    return is_way && varying_.control(id, ir::Level::kBlock);
  }

  Span where(const ir::Op& op) const {
    const auto* branch = std::get_if<ir::If>(&op.data);
    if (branch == nullptr) return op.span;
    return function_.ops[function_.values[branch->condition].def].span;
  }

  void report(Span span, Span differs) {
    (void)diags_.report<diag::CollectiveDivergent>(span, "a barrier in front of this", "block")
        .label(differs, "this differs between the threads of a block")
        .help(
            "let the threads of the unit wait for each other in between, `sync.local;` for a "
            "warp's and `sync.barrier : group-4;` for a warpgroup's, or write in front of the "
            "condition")
        .emit();
  }

  const ir::Function& function_;
  Diagnostics& diags_;
  ir::Varying varying_;
  std::vector<ir::OpId> unmet_;
};

}  // namespace

Checked<bool> place_barriers(ir::Module& module, Diagnostics& diags) {
  bool failed = false;
  for_each_launch(module, [&](ir::Function& function, ir::OpId launch) {
    const auto threads = std::get<ir::Parallel>(function.ops[launch].data).threads.constant();
    const bool one_warp = threads && *threads <= target::kWarpLanes;
    Placer placer(function, body_of(function, launch), one_warp);
    placer.run();
    for (const ir::OpId id : placer.impossible()) {
      failed = true;
      (void)diags
          .report<diag::CollectiveDivergent>(function.ops[id].span,
                                             "a barrier of the cluster in front of this", "block")
          .help(
              "let all threads write and read what blocks of the cluster share, and choose behind "
              "it")
          .emit();
    }
  });
  if (failed) return diags.failed();
  return true;
}

Checked<bool> check_meetings(ir::Module& module, Diagnostics& diags) {
  bool right = true;
  for (const ir::Function& function : module.functions) {
    right = Meetings(function, diags).check(function.body, {}) && right;
  }
  if (!right) return diags.failed();
  return true;
}

}  // namespace kiln::passes
