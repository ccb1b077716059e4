#include "passes/place_barriers.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/prove.h"
#include "ir/reflect.h"
#include "ir/strides.h"

namespace kiln::passes {

namespace {

// One access since the last barrier: to a shared buffer, or to the registers of a fragment by an
// asynchronous product.
struct Access {
  ir::ValueId root;
  bool writes = false;
  bool collective = false;
  bool in_flight = false;  // an asynchronous write that nobody has waited for
  bool product = false;    // by an asynchronous product that nobody has waited for
  int nest = 0;            // which entry of which inner `parallel` it stood in; 0: none

  friend bool operator==(const Access&, const Access&) = default;
};

using State = std::vector<Access>;

State merge(State a, const State& b) {
  for (const Access& access : b) {
    if (std::find(a.begin(), a.end(), access) == a.end()) a.push_back(access);
  }
  return a;
}

bool is_asynchronous(const ir::Op& op) {
  const auto* mma = std::get_if<ir::Mma>(&op.data);
  return mma != nullptr && mma->atom != nullptr && mma->atom->asynchronous;
}

class Placer {
 public:
  Placer(ir::Function& function, bool one_warp) : function_(function), one_warp_(one_warp) {}

  void run(ir::RegionId body) {
    ir::walk(function_, body, [&](ir::OpId id) { look(function_.ops[id]); });
    State state = place(body, {});
    if (in_flight(state)) append_wait(body);
  }

 private:
  // What is asked about the whole kernel before anything is placed.
  void look(const ir::Op& op) {
    const auto* wait = std::get_if<ir::MmaWait>(&op.data);
    program_waits_ = program_waits_ || (wait != nullptr && wait->stated);
    const auto* load = std::get_if<ir::Load>(&op.data);
    if (load == nullptr || !load->in_shared) return;
    tile_of_[load->frag] = ir::storage_of(function_, ir::resolve_view(function_, load->view).root);
    read_in_place_.insert(tile_of_[load->frag]);
  }

  State place(ir::RegionId region, State state) {
    for (std::size_t i = 0; i < function_.regions[region].ops.size(); ++i) {
      const ir::OpId id = function_.regions[region].ops[i];
      if (touches_products(id, state)) {
        insert_op(region, i, ir::MmaWait{}, function_.ops[id].span);
        ++i;
        state = waited(std::move(state));
      }
      const State wanted = accesses_at(id);
      // Behind it not all threads of the block are there to wait for each other.
      const bool last_chance = !state.empty() && some_threads_yield(id);
      if (needs_barrier(state, wanted) || last_chance) {
        i += insert_barrier(region, i, state, function_.ops[id].span);
        state.clear();
      }
      state = enter(id, region, i, std::move(state));
    }
    return state;
  }

  bool is_fragment(ir::ValueId value) const {
    return std::holds_alternative<ir::FragType>(function_.type(value));
  }

  // This unit's products are done: its registers are free, and what they read in shared memory has
  // been read, which other threads do not know yet.
  State waited(State state) const {
    std::erase_if(state, [&](const Access& a) { return a.product && is_fragment(a.root); });
    for (Access& access : state) access.product = false;
    return state;
  }

  // Whether the operation, or for a loop any inside it, uses registers that a product in flight
  // uses too. Further products on the same accumulator follow each other in order.
  bool touches_products(ir::OpId id, const State& state) const {
    const ir::Op& op = function_.ops[id];
    if (const auto* loop = std::get_if<ir::For>(&op.data)) {
      bool inside = false;
      ir::walk(function_, loop->body,
               [&](ir::OpId inner) { inside = inside || touches_products(inner, state); });
      return inside;
    }
    const auto* load = std::get_if<ir::Load>(&op.data);
    const bool in_place = load != nullptr && load->in_shared;
    if (program_waits_ || in_place || op.kind() == ir::OpKind::kMma) return false;
    bool found = false;
    ir::for_each_operand(op, [&](std::string_view, ir::ValueId value) {
      found = found || (value.valid() && is_fragment(value) &&
                        std::any_of(state.begin(), state.end(), [&](const Access& access) {
                          return access.product && access.root == value;
                        }));
    });
    return found;
  }

  // The accesses that must be ordered before operation `id` starts. A divergent `if` is one
  // operation: no barrier may stand inside it.
  State accesses_at(ir::OpId id) {
    const ir::Op& op = function_.ops[id];
    if (const auto* branch = std::get_if<ir::If>(&op.data)) {
      return is_divergent(branch->condition) ? all_accesses(id) : State{};
    }
    // A loop waits once in front of it for what came before, not again in every trip.
    const bool as_one = std::holds_alternative<ir::Once>(op.data) ||
                        std::holds_alternative<ir::For>(op.data) ||
                        std::holds_alternative<ir::Loop>(op.data);
    return as_one ? all_accesses(id) : own_accesses(op, false);
  }

  State enter(ir::OpId id, ir::RegionId region, std::size_t& index, State state) {
    // Copies of the fields: inserting operations moves the arrays.
    const ir::OpData data = function_.ops[id].data;
    if (const auto* loop = std::get_if<ir::For>(&data)) {
      const State once = place(loop->body, state);
      State again = place(loop->body, merge(state, leave(once)));
      if (wait_at_the_end(loop->body)) again = waited(std::move(again));
      const auto trips = ir::minimum(function_, loop->upper - loop->lower);
      const bool always_runs = trips && *trips >= 1;
      return always_runs ? again : merge(std::move(state), again);
    }
    if (const auto* loop = std::get_if<ir::Loop>(&data)) {
      const State once = place(loop->body, state);
      const State again = place(loop->body, merge(state, leave(once)));
      return merge(std::move(state), again);
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
    if (const auto* wait = std::get_if<ir::MmaWait>(&data)) {
      return wait->pending == 0 ? waited(std::move(state)) : state;
    }
    if (std::holds_alternative<ir::Once>(data)) return merge(std::move(state), all_accesses(id));
    if (const auto* barrier = std::get_if<ir::Barrier>(&data)) {
      if (!barrier->inferred) {
        index +=
            insert_ops(region, index, missing_before(region, index, state), function_.ops[id].span);
      }
      const bool whole_block = barrier->level == ir::Level::kBlock || one_warp_;
      return whole_block ? State{} : state;
    }
    return merge(std::move(state), own_accesses(function_.ops[id], false));
  }

  // A wait at the head of a body is for the products of the trip before: it moves to the end, so
  // that registers of products in flight do not cross the loop's edge (ptxas would serialise them).
  // True when there was one.
  bool wait_at_the_end(ir::RegionId body) {
    std::vector<ir::OpId>& ops = function_.regions[body].ops;
    const auto first = std::find_if(ops.begin(), ops.end(), [&](ir::OpId id) {
      const ir::OpKind kind = function_.ops[id].kind();
      return kind != ir::OpKind::kSubview && kind != ir::OpKind::kIndex &&
             kind != ir::OpKind::kAlloc;
    });
    if (first == ops.end()) return false;
    const auto* wait = std::get_if<ir::MmaWait>(&function_.ops[*first].data);
    if (wait == nullptr || wait->stated) return false;
    std::rotate(first, first + 1, ops.end());
    return true;
  }

  // Accesses of the last trip belong to no current entry of a `parallel` inside the loop.
  State leave(State state) const {
    for (Access& access : state) {
      if (access.nest > nest_) access.nest = -access.nest;
    }
    return state;
  }

  // What an asynchronous product reads in shared memory, and its registers.
  State product_accesses(const ir::Mma& mma) const {
    State out;
    for (const ir::ValueId frag : {mma.a, mma.b, mma.c, mma.metadata}) {
      if (!frag.valid()) continue;
      const auto tile = tile_of_.find(frag);
      const ir::ValueId root = tile == tile_of_.end() ? frag : tile->second;
      out.push_back({.root = root,
                     .writes = frag == mma.c,
                     .collective = true,
                     .product = true,
                     .nest = nest_});
    }
    return out;
  }

  State own_accesses(const ir::Op& op, bool elected) const {
    State out;
    const auto touch = [&](ir::ValueId view, bool writes, bool collective, bool async) {
      const ir::ValueId root = ir::storage_of(function_, ir::resolve_view(function_, view).root);
      if (function_.view_type(root).space != ir::Space::kShared) return;
      out.push_back({.root = root,
                     .writes = writes,
                     .collective = collective || elected,
                     .in_flight = async,
                     .nest = nest_});
    };
    if (is_asynchronous(op)) return product_accesses(std::get<ir::Mma>(op.data));
    if (const auto* copy = std::get_if<ir::Copy>(&op.data)) {
      touch(copy->src, false, true, false);
      touch(copy->dst, true, true, copy->engine == ir::CopyEngine::kCpAsync);
    } else if (const auto* load = std::get_if<ir::Load>(&op.data)) {
      if (!load->in_shared) touch(load->view, false, true, false);
    } else if (const auto* store = std::get_if<ir::Store>(&op.data)) {
      touch(store->view, true, true, false);
    } else if (const auto* scale = std::get_if<ir::Scale>(&op.data)) {
      touch(scale->factors, false, true, false);
    } else if (const auto* read = std::get_if<ir::Read>(&op.data)) {
      touch(read->view, false, false, false);
    } else if (const auto* write = std::get_if<ir::Write>(&op.data)) {
      touch(write->view, true, false, false);
    } else if (const auto* splat = std::get_if<ir::Splat>(&op.data)) {
      touch(splat->view, true, true, false);
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

  bool needs_barrier(const State& before, const State& now) const {
    for (const Access& a : before) {
      for (const Access& b : now) {
        const bool conflict = !is_fragment(a.root) && a.root == b.root && (a.writes || b.writes);
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

  // What a barrier needs in front of it: products done with what they read, copies landed, and what
  // threads wrote visible to products.
  std::vector<ir::OpData> before_barrier(const State& state) const {
    std::vector<ir::OpData> ops;
    const bool products = std::any_of(state.begin(), state.end(),
                                      [](const Access& access) { return access.product; });
    if (products && !program_waits_) ops.emplace_back(ir::MmaWait{});
    if (in_flight(state)) ops.emplace_back(ir::CopyWait{});
    const bool unproxied = std::any_of(state.begin(), state.end(), [&](const Access& access) {
      return access.writes && read_in_place_.contains(access.root);
    });
    if (unproxied) ops.emplace_back(ir::ProxyFence{});
    return ops;
  }

  // Of that, what does not stand in front of the program's own barrier yet: a loop's body is gone
  // through twice.
  std::vector<ir::OpData> missing_before(ir::RegionId region, std::size_t index,
                                         const State& state) const {
    std::vector<ir::OpData> ops = before_barrier(state);
    const std::vector<ir::OpId>& around = function_.regions[region].ops;
    constexpr std::size_t kMost = 3;
    for (std::size_t i = index; i > 0 && index - i < kMost; --i) {
      const ir::OpKind kind = function_.ops[around[i - 1]].kind();
      std::erase_if(ops, [&](const ir::OpData& data) {
        return static_cast<ir::OpKind>(data.index()) == kind;
      });
    }
    return ops;
  }

  std::size_t insert_ops(ir::RegionId region, std::size_t index, const std::vector<ir::OpData>& ops,
                         Span span) {
    for (std::size_t i = 0; i < ops.size(); ++i) insert_op(region, index + i, ops[i], span);
    return ops.size();
  }

  std::size_t insert_barrier(ir::RegionId region, std::size_t index, const State& state,
                             Span span) {
    const ir::Level level = one_warp_ ? ir::Level::kGroup : ir::Level::kBlock;
    std::vector<ir::OpData> ops = before_barrier(state);
    ops.emplace_back(ir::Barrier{level, true});
    return insert_ops(region, index, ops, span);
  }

  void append_wait(ir::RegionId region) {
    const Span span = function_.ops[function_.regions[region].ops.back()].span;
    insert_op(region, function_.regions[region].ops.size(), ir::CopyWait{}, span);
  }

  bool some_threads_yield(ir::OpId id) const {
    bool yields = false;
    for (const ir::RegionId region : ir::regions_of(function_.ops[id])) {
      ir::walk(function_, region, [&](ir::OpId inner) {
        yields = yields || function_.ops[inner].kind() == ir::OpKind::kYield;
      });
    }
    return yields && ir::control_varies_in(function_, id, ir::Level::kBlock);
  }

  bool is_divergent(ir::ValueId value) const {
    return ir::value_varies_in(function_, value, ir::Level::kBlock);
  }

  ir::Function& function_;
  bool one_warp_;
  bool program_waits_ = false;                  // for products, by itself
  std::map<ir::ValueId, ir::ValueId> tile_of_;  // fragment read in place -> its buffer
  std::set<ir::ValueId> read_in_place_;         // buffers
  int nest_ = 0;
  int nests_ = 0;
};

// --- groups of asynchronous products

// Puts a fence before and a commit behind each run of asynchronous products, where nothing else
// stands between them.
class Grouper {
 public:
  explicit Grouper(ir::Function& function) : function_(function) {}

  void run(ir::RegionId region) {
    const std::vector<ir::OpId> ops = function_.regions[region].ops;
    std::vector<ir::OpId> out;
    std::size_t end_of_run = 0;  // in `out`: behind the last product of an open run
    const auto close = [&] {
      if (end_of_run != 0 && !program_commits_) insert(out, end_of_run, ir::MmaCommit{});
      end_of_run = 0;
    };
    for (const ir::OpId id : ops) {
      const Kind kind = kind_of(id);
      if (kind == Kind::kOther) close();
      if (kind == Kind::kProducts && end_of_run == 0) insert(out, out.size(), ir::MmaFence{}, id);
      out.push_back(id);
      if (kind == Kind::kProducts) end_of_run = out.size();
      if (kind != Kind::kOther) continue;
      for (const ir::RegionId inner : ir::regions_of(function_.ops[id])) run(inner);
    }
    close();
    function_.regions[region].ops = std::move(out);
  }

  void look(ir::RegionId body) {
    ir::walk(function_, body, [&](ir::OpId id) {
      const auto* commit = std::get_if<ir::MmaCommit>(&function_.ops[id].data);
      program_commits_ = program_commits_ || commit != nullptr;
    });
  }

 private:
  enum class Kind : std::uint8_t { kProducts, kNeutral, kOther };

  Kind kind_of(ir::OpId id) const {
    const ir::Op& op = function_.ops[id];
    if (is_asynchronous(op)) return Kind::kProducts;
    if (const auto* load = std::get_if<ir::Load>(&op.data)) {
      return load->in_shared ? Kind::kNeutral : Kind::kOther;
    }
    const bool nested = op.kind() == ir::OpKind::kFor || op.kind() == ir::OpKind::kParallel;
    if (!nested) return is_neutral(op) ? Kind::kNeutral : Kind::kOther;
    bool products = false;
    for (const ir::RegionId region : ir::regions_of(op)) {
      for (const ir::OpId inner : function_.regions[region].ops) {
        const Kind kind = kind_of(inner);
        if (kind == Kind::kOther) return Kind::kOther;
        products = products || kind == Kind::kProducts;
      }
    }
    return products ? Kind::kProducts : Kind::kNeutral;
  }

  // Computes indices, or declares what costs nothing.
  bool is_neutral(const ir::Op& op) const {
    switch (op.kind()) {
      case ir::OpKind::kSubview:
      case ir::OpKind::kAlias:
      case ir::OpKind::kConst:
      case ir::OpKind::kIndex:
      case ir::OpKind::kBind:
      case ir::OpKind::kUnary:
      case ir::OpKind::kBinary:
      case ir::OpKind::kCast:
      case ir::OpKind::kChoose: return true;
      case ir::OpKind::kAlloc:
        return std::holds_alternative<ir::FragType>(function_.type(op.result));
      case ir::OpKind::kParallel:
      case ir::OpKind::kFor:
      case ir::OpKind::kIf:
      case ir::OpKind::kOnce:
      case ir::OpKind::kReturn:
      case ir::OpKind::kLoop:
      case ir::OpKind::kBreak:
      case ir::OpKind::kContinue:
      case ir::OpKind::kYield:
      case ir::OpKind::kInthreads:
      case ir::OpKind::kSplat:
      case ir::OpKind::kTrigger:
      case ir::OpKind::kEventWait:
      case ir::OpKind::kFutureWait:
      case ir::OpKind::kExchange:
      case ir::OpKind::kBulkWait:
      case ir::OpKind::kRegisters:
      case ir::OpKind::kEvent:
      case ir::OpKind::kFuture:
      case ir::OpKind::kCopy:
      case ir::OpKind::kCopyWait:
      case ir::OpKind::kBarrier:
      case ir::OpKind::kRead:
      case ir::OpKind::kWrite:
      case ir::OpKind::kFill:
      case ir::OpKind::kLoad:
      case ir::OpKind::kMma:
      case ir::OpKind::kStore:
      case ir::OpKind::kScale:
      case ir::OpKind::kMmaFence:
      case ir::OpKind::kMmaCommit:
      case ir::OpKind::kMmaWait:
      case ir::OpKind::kProxyFence:
      case ir::OpKind::kGet:
      case ir::OpKind::kSet:
      case ir::OpKind::kAssert: return false;
    }
    return false;
  }

  void insert(std::vector<ir::OpId>& ops, std::size_t at, ir::OpData data, ir::OpId beside = {}) {
    const ir::OpId neighbour = beside.valid() ? beside : ops[at - 1];
    const Span span = function_.ops[neighbour].span;
    const ir::OpId id = function_.ops.push({span, std::move(data), {}});
    ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(at), id);
  }

  ir::Function& function_;
  bool program_commits_ = false;
};

// `mma.commit` alone promises that all operands have been read; only `mma.wait` says otherwise.
void spell_out_commits(ir::Function& function, ir::RegionId body) {
  bool stated_waits = false;
  std::vector<ir::OpId> commits;
  ir::walk(function, body, [&](ir::OpId id) {
    const auto* wait = std::get_if<ir::MmaWait>(&function.ops[id].data);
    stated_waits = stated_waits || (wait != nullptr && wait->stated);
    if (function.ops[id].kind() == ir::OpKind::kMmaCommit) commits.push_back(id);
  });
  if (stated_waits) return;
  for (const ir::OpId id : commits) function.ops[id].data = ir::MmaWait{};
}

}  // namespace

Checked<bool> place_barriers(ir::Module& module, Diagnostics&) {
  for (ir::Function& function : module.functions) {
    for (ir::OpId launch : ir::launches(function)) {
      const auto& parallel = std::get<ir::Parallel>(function.ops[launch].data);
      const auto threads = parallel.threads.constant();
      const bool one_warp = threads && *threads <= module.arch->warp_size;
      const ir::RegionId body = parallel.body;
      spell_out_commits(function, body);
      Placer(function, one_warp).run(body);
      Grouper grouper(function);
      grouper.look(body);
      grouper.run(body);
    }
  }
  return true;
}

}  // namespace kiln::passes
