#include "passes/place_barriers.h"

#include <algorithm>

#include "ir/prove.h"

namespace kiln::passes {

namespace {

// One access to a shared buffer since the last barrier.
struct Access {
  ir::ValueId root;
  bool writes = false;
  bool collective = false;
  bool in_flight = false;  // an asynchronous write that nobody has waited for
  int nest = 0;            // which entry of which inner `parallel` it stood in; 0: none
};

using State = std::vector<Access>;

void add(State& state, const Access& access) {
  const bool known = std::any_of(state.begin(), state.end(), [&](const Access& a) {
    return a.root == access.root && a.writes == access.writes &&
           a.collective == access.collective && a.in_flight == access.in_flight &&
           a.nest == access.nest;
  });
  if (!known) state.push_back(access);
}

State merge(State a, const State& b) {
  for (const Access& access : b) add(a, access);
  return a;
}

class Placer {
 public:
  Placer(ir::Function& function, bool one_warp) : function_(function), one_warp_(one_warp) {}

  void run(ir::RegionId body) {
    State state = place(body, {});
    if (in_flight(state)) append_wait(body);
  }

 private:
  State place(ir::RegionId region, State state) {
    for (std::size_t i = 0; i < function_.regions[region].ops.size(); ++i) {
      const ir::OpId id = function_.regions[region].ops[i];
      const State wanted = accesses_at(id);
      if (needs_barrier(state, wanted)) {
        i += insert_barrier(region, i, state, function_.ops[id].span);
        state.clear();
      }
      state = enter(id, region, i, std::move(state));
    }
    return state;
  }

  // The accesses that must be ordered before operation `id` starts. A divergent `if` is one
  // operation: no barrier may stand inside it.
  State accesses_at(ir::OpId id) {
    const ir::Op& op = function_.ops[id];
    if (const auto* branch = std::get_if<ir::If>(&op.data)) {
      return is_divergent(branch->condition) ? all_accesses(id) : State{};
    }
    // A loop waits once in front of it for what came before, not again in every trip.
    const bool as_one =
        std::holds_alternative<ir::Once>(op.data) || std::holds_alternative<ir::For>(op.data);
    return as_one ? all_accesses(id) : own_accesses(op, false);
  }

  State enter(ir::OpId id, ir::RegionId region, std::size_t& index, State state) {
    // Copies of the fields: inserting operations moves the arrays.
    const ir::OpData data = function_.ops[id].data;
    if (const auto* loop = std::get_if<ir::For>(&data)) {
      const State once = place(loop->body, state);
      const State again = place(loop->body, merge(state, leave(once)));
      const auto trips = ir::minimum(function_, loop->upper - loop->lower);
      const bool always_runs = trips && *trips >= 1;
      return always_runs ? again : merge(std::move(state), again);
    }
    if (const auto* parallel = std::get_if<ir::Parallel>(&data)) {
      const int outer = nest_;
      nest_ = ++nests_;
      State after = place(parallel->body, std::move(state));
      nest_ = outer;
      return after;
    }
    if (const auto* branch = std::get_if<ir::If>(&data)) {
      if (is_divergent(branch->condition)) return merge(std::move(state), all_accesses(id));
      const State taken = place(branch->then_body, state);
      return merge(taken, branch->else_body.valid() ? place(branch->else_body, state) : state);
    }
    if (std::holds_alternative<ir::Once>(data)) return merge(std::move(state), all_accesses(id));
    if (const auto* barrier = std::get_if<ir::Barrier>(&data)) {
      if (!barrier->inferred && in_flight(state)) {
        insert_op(region, index, ir::CopyWait{}, function_.ops[id].span);
        ++index;
      }
      const bool whole_block = barrier->level == ir::Level::kBlock || one_warp_;
      return whole_block ? State{} : state;
    }
    return merge(std::move(state), own_accesses(function_.ops[id], false));
  }

  // Accesses of the last trip belong to no current entry of a `parallel` inside the loop.
  State leave(State state) const {
    for (Access& access : state) {
      if (access.nest > nest_) access.nest = -access.nest;
    }
    return state;
  }

  State own_accesses(const ir::Op& op, bool elected) const {
    State out;
    const auto touch = [&](ir::ValueId view, bool writes, bool collective, bool async) {
      const ir::ValueId root = ir::resolve_view(function_, view).root;
      if (function_.view_type(root).space != ir::Space::kShared) return;
      out.push_back({root, writes, collective || elected, async, nest_});
    };
    if (const auto* copy = std::get_if<ir::Copy>(&op.data)) {
      touch(copy->src, false, true, false);
      touch(copy->dst, true, true, copy->engine == ir::CopyEngine::kCpAsync);
    } else if (const auto* load = std::get_if<ir::Load>(&op.data)) {
      touch(load->view, false, true, false);
    } else if (const auto* store = std::get_if<ir::Store>(&op.data)) {
      touch(store->view, true, true, false);
    } else if (const auto* read = std::get_if<ir::Read>(&op.data)) {
      touch(read->view, false, false, false);
    } else if (const auto* write = std::get_if<ir::Write>(&op.data)) {
      touch(write->view, true, false, false);
    } else if (const auto* alloc = std::get_if<ir::Alloc>(&op.data)) {
      const auto* type = std::get_if<ir::ViewType>(&function_.type(op.result));
      if (type != nullptr && alloc->initial.valid()) touch(op.result, true, true, false);
    }
    return out;
  }

  // What the operation and everything inside it touches.
  State all_accesses(ir::OpId id) const {
    const ir::Op& op = function_.ops[id];
    const bool elected = std::holds_alternative<ir::Once>(op.data);
    State out;
    for (ir::RegionId region : ir::regions_of(op)) {
      ir::walk(function_, region, [&](ir::OpId inner) {
        out = merge(std::move(out), own_accesses(function_.ops[inner], elected));
      });
    }
    return out;
  }

  static bool needs_barrier(const State& before, const State& now) {
    for (const Access& a : before) {
      for (const Access& b : now) {
        const bool conflict = a.root == b.root && (a.writes || b.writes);
        const bool ordered_by_language = a.collective || b.collective || a.nest != b.nest;
        if (conflict && ordered_by_language) return true;
      }
    }
    return false;
  }

  static bool in_flight(const State& state) {
    return std::any_of(state.begin(), state.end(), [](const Access& a) { return a.in_flight; });
  }

  void insert_op(ir::RegionId region, std::size_t index, ir::OpData data, Span span) {
    const ir::OpId id = function_.ops.push({span, std::move(data), {}});
    auto& ops = function_.regions[region].ops;
    ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(index), id);
  }

  std::size_t insert_barrier(ir::RegionId region, std::size_t index, const State& state,
                             Span span) {
    const ir::Level level = one_warp_ ? ir::Level::kGroup : ir::Level::kBlock;
    insert_op(region, index, ir::Barrier{level, true}, span);
    if (!in_flight(state)) return 1;
    insert_op(region, index, ir::CopyWait{}, span);
    return 2;
  }

  void append_wait(ir::RegionId region) {
    const Span span = function_.ops[function_.regions[region].ops.back()].span;
    insert_op(region, function_.regions[region].ops.size(), ir::CopyWait{}, span);
  }

  bool is_divergent(ir::ValueId value) const {
    return ir::value_varies_in(function_, value, ir::Level::kBlock);
  }

  ir::Function& function_;
  bool one_warp_;
  int nest_ = 0;
  int nests_ = 0;
};

}  // namespace

Checked<bool> place_barriers(ir::Module& module, Diagnostics&) {
  for (ir::Function& function : module.functions) {
    for (ir::OpId launch : ir::launches(function)) {
      const auto& parallel = std::get<ir::Parallel>(function.ops[launch].data);
      const auto threads = parallel.threads.constant();
      const bool one_warp = threads && *threads <= module.arch->warp_size;
      const ir::RegionId body = parallel.body;
      Placer(function, one_warp).run(body);
    }
  }
  return true;
}

}  // namespace kiln::passes
