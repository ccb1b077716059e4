#include "passes/plan_events.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "ir/effects.h"
#include "ir/prove.h"
#include "ir/reflect.h"
#include "ir/vary.h"
#include "passes/bulk_box.h"
#include "passes/single_thread.h"
#include "passes/track_copies.h"
#include "target/arch.h"

namespace kiln::passes {

namespace {
constexpr std::int64_t kWarpgroup = target::kWarpgroupLanes;
constexpr std::int64_t kEventBytesMax = (1 << 20) - 1;

// How control comes to an operation.
struct Way {
  ThreadSet threads;
  ir::OpId region = {};      // the `inthreads` around it, if there is one
  bool inside = false;       // a `parallel` below the launch
  bool divides = false;      // through an `if` that some of the threads may not take
  bool loses_step = false;   // in a loop that some may leave, or go round, before others
  bool by_block = false;     // through an `if` that some of the blocks may not take
  bool parts_warps = false;  // either of them, with threads of one warp
};

// An operation in the list of its region.
struct Standing {
  ir::OpId op;
  ir::RegionId region;
  std::size_t position = 0;
  Way way;
};

// All that is done to one event.
struct Meeting {
  std::vector<Standing> triggers;
  std::vector<Standing> copies;  // bulk ones
  bool stated = false;           // the program says how many arrivals there are
};

// The smallest unit that the threads are all in.
ir::Level unit_of(const ThreadSet& set) {
  const auto in_one = [&](std::int64_t unit) {
    return set.threads > 0 && set.first / unit == (set.first + set.threads - 1) / unit;
  };
  if (in_one(target::kWarpLanes)) return ir::Level::kGroup;
  return in_one(kWarpgroup) ? ir::Level::kGroup4 : ir::Level::kBlock;
}

bool differs(ir::Varying& varying, ir::ValueId value, const ThreadSet& set) {
  return set.threads != 1 && varying.value(value, unit_of(set));
}

bool expr_differs(ir::Varying& varying, const ir::Expr& expr, const ThreadSet& set) {
  std::vector<ir::VarId> vars;
  expr.collect_vars(vars);
  return set.threads != 1 && std::any_of(vars.begin(), vars.end(), [&](ir::VarId var) {
           return varying.var(var, unit_of(set));
         });
}

bool changes_flow(const ir::Function& function, ir::OpId branch) {
  bool found = false;
  for (const ir::RegionId part : ir::regions_of(function.ops[branch])) {
    ir::walk(function, part, [&](ir::OpId id) {
      const ir::OpKind kind = function.ops[id].kind();
      found = found || kind == ir::OpKind::kBreak || kind == ir::OpKind::kContinue ||
              kind == ir::OpKind::kYield;
    });
  }
  return found;
}

bool may_yield(const ir::Function& function, ir::OpId op) {
  bool found = false;
  for (const ir::RegionId part : ir::regions_of(function.ops[op])) {
    ir::walk(function, part,
             [&](ir::OpId id) { found = found || function.ops[id].kind() == ir::OpKind::kYield; });
  }
  return found;
}

// Whether threads of the set may leave the loop's body, or end its trip, at different times.
bool body_loses_step(const ir::Function& function, ir::Varying& varying, ir::RegionId body,
                     const ThreadSet& set) {
  bool found = false;
  ir::walk(function, body, [&](ir::OpId id) {
    const auto* branch = std::get_if<ir::If>(&function.ops[id].data);
    if (branch == nullptr || found) return;
    found = differs(varying, branch->condition, set) && changes_flow(function, id);
  });
  return found;
}

// What is not the same in all blocks of a launch, as far as is known.
class BlockVarying {
 public:
  explicit BlockVarying(const ir::Function& function) : function_(function) {}

  [[nodiscard]] bool value(ir::ValueId value) const {
    const ir::OpId def = function_.values[value].def;
    if (!def.valid()) return false;  // an argument of the launch
    const ir::Op& op = function_.ops[def];
    if (op.kind() == ir::OpKind::kConst) return false;
    if (const auto* index = std::get_if<ir::Index>(&op.data)) return expr(index->expr);
    if (!ir::is_pure(op.kind())) return true;
    bool varies = false;
    ir::for_each_operand(op, [&](std::string_view, ir::ValueId operand) {
      varies = varies || (operand.valid() && this->value(operand));
    });
    return varies;
  }

  [[nodiscard]] bool expr(const ir::Expr& expr) const {
    std::vector<ir::VarId> vars;
    expr.collect_vars(vars);
    return std::ranges::any_of(vars, [&](ir::VarId each) { return var(each); });
  }

 private:
  [[nodiscard]] bool var(ir::VarId var) const {
    return std::ranges::any_of(function_.ops, [&](const ir::Op& op) {
      if (const auto* launch = std::get_if<ir::Parallel>(&op.data)) {
        return launch->level == ir::Level::kBlock &&
               (std::ranges::find(launch->vars, var) != launch->vars.end() ||
                std::ranges::find(launch->cluster, var) != launch->cluster.end());
      }
      if (const auto* loop = std::get_if<ir::For>(&op.data)) {
        return loop->var == var && (expr(loop->lower) || expr(loop->upper));
      }
      const auto* bind = std::get_if<ir::Bind>(&op.data);
      return bind != nullptr && bind->var == var && value(bind->value);
    });
  }

  const ir::Function& function_;
};

// How threads of the set may come into the operation's regions without each other.
struct Parting {
  bool divides = false;     // some do not
  bool loses_step = false;  // some in other trips of a loop
};

Parting parting_of(const ir::Function& function, ir::Varying& varying, ir::OpId id,
                   const ThreadSet& set) {
  const ir::OpData& data = function.ops[id].data;
  if (const auto* branch = std::get_if<ir::If>(&data)) {
    return {.divides = differs(varying, branch->condition, set)};
  }
  if (const auto* loop = std::get_if<ir::For>(&data)) {
    return {.loses_step = expr_differs(varying, loop->lower, set) ||
                          expr_differs(varying, loop->upper, set) ||
                          body_loses_step(function, varying, loop->body, set)};
  }
  const auto* loop = std::get_if<ir::Loop>(&data);
  if (loop == nullptr) return {};
  return {.loses_step = body_loses_step(function, varying, loop->body, set)};
}

// Whether threads of one warp may.
bool parts_warps(const ir::Function& function, ir::Varying& varying, ir::OpId id) {
  constexpr ThreadSet kAnyWarp{0, target::kWarpLanes};
  const Parting parting = parting_of(function, varying, id, kAnyWarp);
  return parting.divides || parting.loses_step;
}

// Whether some lanes of a warp may go on where others have left, or go by text in CUDA, which may begin a branch.
bool lanes_may_part(const ir::Function& function, ir::Varying& varying, ir::RegionId body) {
  bool out = false;
  ir::walk(function, body, [&](ir::OpId id) {
    const ir::Op& op = function.ops[id];
    out = out || op.kind() == ir::OpKind::kCuda ||
          (may_yield(function, id) && parts_warps(function, varying, id));
  });
  return out;
}

Way way_into(const ir::Function& function, ir::Varying& varying, ir::OpId id, Way way) {
  const ir::OpData& data = function.ops[id].data;
  const Parting parting = parting_of(function, varying, id, way.threads);
  way.divides = way.divides || parting.divides;
  way.loses_step = way.loses_step || parting.loses_step;
  way.parts_warps = way.parts_warps || parts_warps(function, varying, id);
  if (const auto* branch = std::get_if<ir::If>(&data)) {
    way.by_block = way.by_block || BlockVarying(function).value(branch->condition);
  }
  if (const auto* some = std::get_if<ir::Inthreads>(&data)) {
    way.threads = {some->first, some->threads};
    way.region = id;
  }
  return way;
}

// Decides the events of one launch.
class EventPlanner {
 public:
  EventPlanner(ir::Function& function, ir::OpId launch, Diagnostics& diags)
      : function_(function), varying_(function), diags_(diags), launch_(launch) {
    const auto& parallel = std::get<ir::Parallel>(function.ops[launch].data);
    for (const ir::VarId var : parallel.cluster) {
      blocks_ *= function.vars[var].extent.constant().value_or(1);
    }
    lanes_may_part_ = lanes_may_part(function, varying_, parallel.body);
    collect(parallel.body, {.threads = {0, parallel.threads.constant().value_or(0)}});
  }

  // False after an error.
  bool run() {
    for (const ir::OpId event : events_) plan(event);
    announce_rest();
    track_copies(function_, launch_);
    plan_single_regions(function_, launch_);
    return !failed_;
  }

 private:
  template <class T>
  T& as(ir::OpId id) {
    return std::get<T>(function_.ops[id].data);
  }

  void collect(ir::RegionId region, const Way& way) {
    const std::vector<ir::OpId>& ops = function_.regions[region].ops;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const ir::Op& op = function_.ops[ops[i]];
      const Standing here{ops[i], region, i, way};
      if (const auto* event = std::get_if<ir::Event>(&op.data)) {
        events_.push_back(ops[i]);
        meetings_[op.result].stated = event->stated != 0;
      }
      if (const auto* trigger = std::get_if<ir::Trigger>(&op.data)) {
        meetings_[trigger->event].triggers.push_back(here);
      }
      const auto* copy = std::get_if<ir::Copy>(&op.data);
      if (copy != nullptr && copy->bulk && copy->event.valid()) {
        meetings_[copy->event].copies.push_back(here);
      }
      Way inside = way_into(function_, varying_, ops[i], way);
      if (const auto* units = std::get_if<ir::Parallel>(&op.data)) {
        if (!way.inside && units->vars.size() == 1) threads_of_[units->vars[0]] = units->unit;
        inside.inside = true;
      }
      for (const ir::RegionId inner : ir::regions_of(op)) collect(inner, inside);
    }
  }

  // What one set of threads contributes to a generation.
  struct Share {
    ir::Arrival arrival = ir::Arrival::kThread;
    std::int64_t unit = 0;
    std::int64_t arrivals = 0;
    std::int64_t threads = 0;  // that arrive, or for which one arrives
    bool known = true;
  };

  // The unit that the set's bulk copies have in common.
  std::optional<std::int64_t> elected_unit(const Meeting& meeting, const ThreadSet& set) {
    std::optional<std::int64_t> unit;
    for (const Standing& copy : meeting.copies) {
      if (copy.way.threads != set) continue;
      std::int64_t its = as<ir::Copy>(copy.op).unit;
      if (its >= set.threads && set.threads > 0) its = 0;
      unit = !unit || *unit == its ? its : 0;
    }
    return unit;
  }

  // How many threads of the block trigger the same slot, when each unit of a `parallel` has a slot
  // of its own; 0 otherwise.
  std::int64_t threads_of_slot(const ir::Expr& slot) {
    std::vector<ir::VarId> vars;
    slot.collect_vars(vars);
    std::erase_if(vars, [&](ir::VarId var) { return !varying_.var(var, ir::Level::kBlock); });
    if (vars.size() != 1 || !threads_of_.contains(vars[0])) return 0;
    const ir::Expr next = slot.substitute([&](ir::VarId var) -> std::optional<ir::Expr> {
      if (var == vars[0]) return ir::Expr::var(var) + 1;
      return std::nullopt;
    });
    const auto step = (next - slot).constant();
    return step && *step != 0 ? threads_of_[vars[0]] : 0;
  }

  // The same when units take turns, as those that trigger slot (4 * turn + p) % 8 do: how many threads
  // each of them has, if it has slots of its own among all that the set's units trigger.
  std::int64_t threads_by_turns(const ir::Expr& slot, const ThreadSet& set) const {
    const auto& terms = slot.terms();
    if (terms.size() != 1 || terms[0].coefficient != 1 || terms[0].atoms.size() != 1) return 0;
    const ir::Atom& remainder = terms[0].atoms[0];
    if (remainder.kind != ir::AtomKind::kMod || !remainder.right->constant()) return 0;
    std::int64_t place = 0;  // what a unit's number is multiplied by
    std::int64_t threads = 0;
    std::int64_t period =
        *remainder.right->constant();  // the rest is a multiple of it, but a constant
    for (const ir::Term& term : remainder.left->terms()) {
      const bool is_var = term.atoms.size() == 1 && term.atoms[0].kind == ir::AtomKind::kVar;
      const auto unit = is_var ? threads_of_.find(term.atoms[0].var) : threads_of_.end();
      if (unit == threads_of_.end()) {
        if (!term.atoms.empty()) period = std::gcd(period, term.coefficient);
        continue;
      }
      if (threads != 0) return 0;
      threads = unit->second;
      place = term.coefficient;
    }
    if (threads == 0 || std::gcd(place, period) != 1) return 0;
    return (set.threads + threads - 1) / threads <= period ? threads : 0;
  }

  // The threads of the set that trigger one slot: all, unless its units have slots of their own.
  std::int64_t threads_of_slot(const Meeting& meeting, const ThreadSet& set) {
    std::optional<std::int64_t> common;
    for (const Standing& trigger : meeting.triggers) {
      if (trigger.way.threads != set) continue;
      const ir::Expr& slot = as<ir::Trigger>(trigger.op).slot;
      const std::int64_t own = threads_of_slot(slot);
      const std::int64_t its = own != 0 ? own : threads_by_turns(slot, set);
      common = !common || *common == its ? its : 0;
    }
    const std::int64_t unit = common.value_or(0);
    return unit > 0 && set.first % unit == 0 && set.threads % unit == 0 ? unit : set.threads;
  }

  // Whether all that triggers the event in this set stands in regions that only move data. A
  // program that states a number of arrivals counts the threads.
  bool only_moves(const Meeting& meeting, const ThreadSet& set) {
    return !meeting.stated && std::ranges::all_of(meeting.triggers, [&](const Standing& trigger) {
      return trigger.way.threads != set ||
             (trigger.way.region.valid() &&
              only_moves_data(function_, as<ir::Inthreads>(trigger.way.region)));
    });
  }

  Share share_of(const Meeting& meeting, const ThreadSet& set) {
    Share share;
    const std::int64_t threads = threads_of_slot(meeting, set);
    bool divides = false;
    bool loses_step = set.first % target::kWarpLanes != 0 || set.threads % target::kWarpLanes != 0;
    bool cluster = false;
    for (const Standing& trigger : meeting.triggers) {
      if (trigger.way.threads != set) continue;
      divides = divides || trigger.way.divides;
      loses_step = loses_step || trigger.way.loses_step;
      cluster = cluster || as<ir::Trigger>(trigger.op).cluster;
    }
    if (const auto unit = elected_unit(meeting, set)) {
      share.arrival = ir::Arrival::kElected;
      share.unit = *unit;
      share.arrivals = *unit == 0 ? 1 : set.threads / *unit;
      share.threads = share.arrivals;
    } else if (only_moves(meeting, set)) {
      share.arrival = ir::Arrival::kElected;
      share.arrivals = share.threads = 1;
    } else {
      share.known = !divides && set.threads > 0;
      const bool by_warp = !divides && !loses_step;
      share.arrival = by_warp ? ir::Arrival::kWarp : ir::Arrival::kThread;
      share.arrivals = by_warp ? threads / target::kWarpLanes : threads;
      share.threads = threads;
    }
    share.arrivals *= cluster ? blocks_ : 1;
    share.threads *= cluster ? blocks_ : 1;
    return share;
  }

  void plan(ir::OpId id) {
    const ir::ValueId value = function_.ops[id].result;
    const Meeting& meeting = meetings_[value];
    std::map<ThreadSet, Share> shares;
    Share sum{.arrivals = 0, .threads = 0};
    for (const Standing& trigger : meeting.triggers) {
      const auto [at, added] = shares.try_emplace(trigger.way.threads);
      if (!added) continue;
      at->second = share_of(meeting, trigger.way.threads);
      sum.arrivals += at->second.arrivals;
      sum.threads += at->second.threads;
      sum.known = sum.known && at->second.known;
    }
    sum.known = sum.known && !(as<ir::Event>(id).grid && differs_by_block(meeting));
    const bool stated = use_stated(id, meeting, sum);
    const bool by_warps = stated && state_warps(id, meeting);
    for (const Standing& at : meeting.triggers) {
      auto& trigger = as<ir::Trigger>(at.op);
      const Share& share = shares[at.way.threads];
      trigger.arrival = share.arrival;
      trigger.unit = share.unit;
      if (stated && share.arrival != ir::Arrival::kElected) {
        trigger.arrival = by_warps ? ir::Arrival::kWarp : ir::Arrival::kThread;
      }
      if (share.arrival == ir::Arrival::kElected && !trigger.cluster) announce(at, trigger);
    }
  }

  // Whether some blocks may not trigger what others do.
  bool differs_by_block(const Meeting& meeting) {
    return std::ranges::any_of(meeting.triggers, [&](const Standing& at) {
      return at.way.by_block || BlockVarying(function_).expr(as<ir::Trigger>(at.op).slot);
    });
  }

  // Sets the event's arrivals. True when the program's number stands against what was inferred.
  bool use_stated(ir::OpId id, const Meeting& meeting, const Share& sum) {
    auto& event = as<ir::Event>(id);
    const ir::Op& op = function_.ops[id];
    const std::string& name = event.name.empty() ? function_.values[op.result].name : event.name;
    event.arrivals = std::max<std::int64_t>(sum.arrivals, 1);
    if (event.grid && event.stated != 0) {
      event.arrivals = event.stated;
      return true;
    }
    if (!sum.known && event.stated == 0) {
      report_unknown(op, name, meeting);
      return false;
    }
    const bool agrees = event.stated == sum.threads || event.stated == sum.arrivals;
    if (event.stated == 0 || (sum.known && agrees)) return false;
    event.arrivals = event.stated;
    if (sum.known && !meeting.triggers.empty()) {
      static_cast<void>(
          diags_.report<diag::EventArrivalsStated>(op.span, name, event.stated, sum.threads)
              .label(function_.ops[meeting.triggers[0].op].span, "a trigger")
              .help("leave out `<{}>`, or write `event<{}>`", event.stated, sum.threads)
              .emit());
    }
    return true;
  }

  // Where whole warps come to all triggers of an event whose threads the program has counted, their warps are
  // counted instead.
  bool state_warps(ir::OpId id, const Meeting& meeting) {
    auto& event = as<ir::Event>(id);
    const bool whole = std::ranges::all_of(meeting.triggers, [&](const Standing& at) {
      const ThreadSet& set = at.way.threads;
      return set.threads > 0 && set.first % target::kWarpLanes == 0 &&
             set.threads % target::kWarpLanes == 0 && !at.way.parts_warps &&
             !varies_in_warp(as<ir::Trigger>(at.op).slot) && !elected_unit(meeting, set);
    });
    if (!whole || lanes_may_part_ || event.grid || event.arrivals % target::kWarpLanes != 0)
      return false;
    event.arrivals /= target::kWarpLanes;
    return true;
  }

  bool varies_in_warp(const ir::Expr& expr) {
    return expr_differs(varying_, expr, {0, target::kWarpLanes});
  }

  void report_unknown(const ir::Op& event, const std::string& name, const Meeting& meeting) {
    failed_ = true;
    for (const Standing& at : meeting.triggers) {
      const bool grid = std::get<ir::Event>(event.data).grid;
      if (!at.way.divides && !grid && at.way.threads.threads > 0) continue;
      static_cast<void>(
          diags_.report<diag::EventArrivalsUnknown>(function_.ops[at.op].span, name)
              .label(event.span, "the event")
              .help("say how many {}trigger each generation: `event<n> {}`, or move the trigger "
                    "out of the condition",
                    grid ? "threads of all blocks " : "", name)
              .emit());
      return;
    }
  }

  // The copies in front of the trigger, back to the last one on the same slot.
  void announce(const Standing& at, ir::Trigger& trigger) {
    const std::vector<ir::OpId>& ops = function_.regions[at.region].ops;
    for (std::size_t i = at.position; i-- > 0;) {
      const auto* other = std::get_if<ir::Trigger>(&function_.ops[ops[i]].data);
      if (other != nullptr && other->event == trigger.event && other->slot == trigger.slot) break;
      const auto* copy = std::get_if<ir::Copy>(&function_.ops[ops[i]].data);
      const bool counts = copy != nullptr && copy->bulk && copy->event == trigger.event &&
                          copy->slot == trigger.slot && announced_.insert(ops[i]).second;
      if (counts) trigger.bytes += bytes_of(*copy);
    }
    if (trigger.bytes <= kEventBytesMax) return;
    failed_ = true;
    static_cast<void>(diags_
                          .report<diag::EventBytesLimit>(function_.ops[at.op].span, trigger.bytes,
                                                         function_.values[trigger.event].name,
                                                         kEventBytesMax)
                          .help("trigger in between, or spread the copies over several events")
                          .emit());
  }

  std::int64_t bytes_of(const ir::Copy& copy) {
    const ir::ViewType& tile = function_.view_type(shared_side(function_, copy));
    std::int64_t bytes = size_bytes(tile.dtype);
    for (const ir::Expr& extent : tile.shape) bytes *= extent.constant().value_or(0);
    return bytes;
  }

  void announce_rest() {
    for (auto& [event, meeting] : meetings_) {
      for (const Standing& copy : meeting.copies) {
        as<ir::Copy>(copy.op).announces = !announced_.contains(copy.op);
      }
    }
  }

  ir::Function& function_;
  ir::Varying varying_;
  Diagnostics& diags_;
  ir::OpId launch_;
  std::int64_t blocks_ = 1;  // of a cluster
  std::vector<ir::OpId> events_;
  std::map<ir::ValueId, Meeting> meetings_;
  std::map<ir::VarId, std::int64_t> threads_of_;  // units of the launch, by their number
  std::set<ir::OpId> announced_;                  // copies whose bytes a trigger announces
  bool lanes_may_part_ = false;
  bool failed_ = false;
};

}  // namespace

Checked<bool> plan_events(ir::Module& module, Diagnostics& diags) {
  bool failed = false;
  for (ir::Function& function : module.functions) {
    for (const ir::OpId launch : ir::launches(function)) {
      failed = !EventPlanner(function, launch, diags).run() || failed;
    }
  }
  if (failed) return diags.failed();
  return true;
}

}  // namespace kiln::passes
