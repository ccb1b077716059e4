// Rules of how kernels are called and launched; the latter is decided by plan-launches.
#include "ir/prove.h"
#include "ir/rules.h"

namespace kiln::ir {

namespace {

// The blocks of a cluster, by axis of the grid, are those that its variables number.
bool has_shape_of_cluster(const Function& f, const Parallel& launch) {
  if (launch.cluster.empty()) return launch.cluster_shape.empty();
  if (launch.cluster_shape.size() != launch.vars.size()) return false;
  for (std::size_t axis = 0; axis < launch.vars.size(); ++axis) {
    const bool numbered = axis < launch.cluster.size();
    const auto blocks = numbered ? f.vars[launch.cluster[axis]].extent.constant() : 1;
    if (blocks != launch.cluster_shape[axis]) return false;
  }
  return true;
}

// Threads and blocks that a kernel's compiler is told, or registers.
void check_bounds(const Function& f, const Parallel& launch, OpId id, Mistakes& mistakes) {
  const std::vector<std::int64_t>& bounds = launch.bounds;
  if (bounds.empty() != (launch.registers_max != 0) || bounds.size() > 2) {
    complain(mistakes, f, id, "{} bounds, and {} registers", bounds.size(), launch.registers_max);
    return;
  }
  bool changes = false;
  walk(f, launch.body,
       [&](OpId op) { changes = changes || f.ops[op].kind() == OpKind::kRegisters; });
  if (changes && bounds.size() == 1) {
    complain(mistakes, f, id,
             "its threads' registers change in number, and nobody knows from what");
  }
  const std::int64_t threads = launch.threads.constant().value_or(1);
  if (!bounds.empty() && (bounds[0] < threads || bounds.back() < 1)) {
    complain(mistakes, f, id, "a bound of {} threads, of which a block has {}", bounds[0], threads);
  }
}

// Whether all blocks of the launch meet somewhere.
bool has_grid_barrier(const Function& f, const Parallel& launch) {
  bool found = false;
  walk(f, launch.body, [&](OpId id) {
    const auto* event = std::get_if<Event>(&f.ops[id].data);
    found = found || (event != nullptr && event->grid);
    const auto* barrier = std::get_if<Barrier>(&f.ops[id].data);
    found = found || (barrier != nullptr && barrier->grid);
  });
  return found;
}

void launches_are_planned(const Module& module, const Function& f, Mistakes& mistakes) {
  for_each_op<Parallel>(f, [&](const Parallel& launch, OpId id) {
    if (launch.level != Level::kBlock) return;
    if (!has_shape_of_cluster(f, launch)) complain(mistakes, f, id, "another shape of clusters");
    if (launch.threads.constant().has_value() == (launch.threads_max != 0)) {
      complain(mistakes, f, id, "{} threads of a block at most", launch.threads_max);
    }
    check_bounds(f, launch, id, mistakes);
    if (launch.admits_next && !launch.overlaps) {
      complain(mistakes, f, id, "it admits launches, and cannot begin early itself");
    }
    if (launch.cooperative ? launch.overlaps : has_grid_barrier(f, launch)) {
      complain(mistakes, f, id, "{}",
               launch.cooperative ? "a cooperative launch begins early"
                                  : "its blocks meet, and may not all be there");
    }
    if (module.arch == nullptr) return;
    if (launch.threads_max > module.arch->threads_per_block_max) {
      complain(mistakes, f, id, "{} has {} threads of a block", module.arch->name,
               module.arch->threads_per_block_max);
    }
    if (launch.overlaps && !module.arch->has(target::Feature::kGriddepcontrol)) {
      complain(mistakes, f, id, "{} begins no launch early", module.arch->name);
    }
    const bool much = launch.shared_bytes > module.arch->smem_static_max;
    if (launch.opts_in != (much || !launch.shared_more.is(0))) {
      complain(mistakes, f, id, "a kernel has {} bytes of shared memory unasked",
               module.arch->smem_static_max);
    }
  });
}

// A call knows what it is given, not what its kernels compute.
void checks_are_of_the_call(const Module&, const Function& f, Mistakes& mistakes) {
  for (const EntryCheck& check : f.checks) {
    for (const Expr& side : {check.left, check.right}) {
      if (known_at_launch(f, side)) continue;
      mistakes.push_back(format("`check` of `{}`, which no call knows", f.text(side)));
    }
  }
}

constexpr Rule kLaunchRules[] = {
    {"checks-are-of-the-call", Form::kTile, checks_are_of_the_call},
    {"launches-are-planned", Form::kDecided, launches_are_planned},
};

}  // namespace

std::span<const Rule> launch_rules() { return kLaunchRules; }

}  // namespace kiln::ir
