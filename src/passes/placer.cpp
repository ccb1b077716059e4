#include "passes/placer.h"

#include <algorithm>

#include "ir/effects.h"
#include "ir/prove.h"
#include "ir/reflect.h"
#include "target/arch.h"

namespace kiln::passes {

namespace {

constexpr int kPassesMax = 8;  // a loop's state only grows, and has few accesses to grow by

bool contains(const ir::Function& function, const ir::Op& op, ir::OpKind kind) {
  bool found = false;
  for (const ir::RegionId region : ir::regions_of(op)) {
    ir::walk(function, region,
             [&](ir::OpId id) { found = found || function.ops[id].kind() == kind; });
  }
  return found;
}

// Stands between regions without keeping them apart.
bool is_quiet(const ir::Op& op) {
  return ir::regions_of(op).empty() && op.kind() != ir::OpKind::kBarrier &&
         op.kind() != ir::OpKind::kTrigger && op.kind() != ir::OpKind::kEventWait;
}

bool always_runs(const ir::Function& function, const ir::For& loop) {
  const auto trips = ir::minimum(function, loop.upper - loop.lower);
  return trips && *trips >= 1;
}

bool runs_again(const ir::Function& function, const ir::For& loop) {
  const auto negated = ir::minimum(function, loop.lower - loop.upper);
  return !negated || *negated < -1;
}

// Where an event is triggered and waited for.
struct EventUses {
  struct Place {
    ir::RegionId region;
    std::size_t index = 0;
  };
  std::vector<Place> triggers = {};
  std::vector<Place> waits = {};
  std::set<int> teams = {};  // who trigger it
};

void collect_uses(const ir::Function& function, const KernelFacts& facts,
                  std::pair<ir::RegionId, int> of_team, std::map<ir::ValueId, EventUses>& out) {
  const auto [region, team] = of_team;
  const std::vector<ir::OpId>& ops = function.regions[region].ops;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const ir::Op& op = function.ops[ops[i]];
    if (const auto* trigger = std::get_if<ir::Trigger>(&op.data)) {
      out[trigger->event].triggers.push_back({region, i});
      out[trigger->event].teams.insert(team);
    }
    if (const auto* wait = std::get_if<ir::EventWait>(&op.data)) {
      out[wait->event].waits.push_back({region, i});
    }
    const auto* some = std::get_if<ir::Inthreads>(&op.data);
    const int inner = some != nullptr && team == kBlockTeam ? facts.team_of(*some) : team;
    for (const ir::RegionId each : ir::regions_of(op)) {
      collect_uses(function, facts, {each, inner}, out);
    }
  }
}

// Whether each thread that triggers a generation of the event waits for the same one next.
bool waits_for_its_own(const ir::Function& function, const EventUses& uses) {
  if (uses.triggers.size() != 1 || uses.waits.size() != 1) return false;
  const auto& [region, from] = uses.triggers[0];
  const auto& [other, to] = uses.waits[0];
  if (region != other || to < from) return false;
  const std::vector<ir::OpId>& ops = function.regions[region].ops;
  const auto leaves = [&](ir::OpId id) {
    const ir::Op& op = function.ops[id];
    return ir::leaves_early(op.kind()) ||
           std::ranges::any_of(ir::regions_of(op),
                               [&](ir::RegionId inner) { return ir::may_leave(function, inner); });
  };
  const auto& trigger = std::get<ir::Trigger>(function.ops[ops[from]].data);
  const auto& wait = std::get<ir::EventWait>(function.ops[ops[to]].data);
  return trigger.slot == wait.slot && wait.tracked &&
         std::none_of(ops.begin() + static_cast<std::ptrdiff_t>(from),
                      ops.begin() + static_cast<std::ptrdiff_t>(to), leaves);
}

}  // namespace

bool Placer::State::copies_in_flight() const {
  return std::any_of(accesses.begin(), accesses.end(),
                     [](const Access& a) { return a.in_flight && !a.label.valid(); });
}

bool Placer::State::has_products() const {
  return std::any_of(accesses.begin(), accesses.end(), [](const Access& a) { return a.product; });
}

Placer::Placer(ir::Function& function, ir::RegionId body, bool one_warp)
    : function_(function),
      body_(body),
      one_warp_(one_warp),
      facts_(function, body),
      varying_(function) {
  ir::walk(function, body, [&](ir::OpId id) {
    const auto* copy = std::get_if<ir::Copy>(&function.ops[id].data);
    if (copy == nullptr || !copy->multicast || !is_hidden(copy->event)) return;
    multicast_.insert(copy->event);
    multicast_.insert(ir::root_of(function, copy->dst));
  });
  std::map<ir::ValueId, EventUses> uses;
  collect_uses(function, facts_, {body, kBlockTeam}, uses);
  for (const auto& [event, of] : uses) {
    triggered_by_[event] = of.teams;
    const auto* made = function.def_as<ir::Event>(event);
    const bool begins = made != nullptr && !made->ready;
    if (begins && waits_for_its_own(function, of)) in_two_halves_.insert(event);
  }
}

void Placer::run() {
  const State state = place(body_, {});
  if (state.copies_in_flight()) append(body_, ir::CopyWait{});
}

Placer::State Placer::place(ir::RegionId region, State state) {
  for (std::size_t i = 0; i < function_.regions[region].ops.size() && state.reachable; ++i) {
    const ir::OpId id = function_.regions[region].ops[i];
    if (touches_products(id, state)) {
      if (can_wait_inside(region, i, state)) {
        std::get<ir::Scale>(function_.ops[id].data).waits = true;
      } else {
        i += insert(region, i, {ir::MmaWait{}});
      }
      state = waited(std::move(state));
    }
    // Behind regions, what they waited for has come.
    const bool behind =
        state.unjoined && team_ == kBlockTeam && function_.ops[id].kind() != ir::OpKind::kInthreads;
    if (behind) {
      await(
          state.accesses, [&](ir::ValueId event) { return awaited_.contains(event); }, true);
    }
    const Meeting meeting = possible(region, i, state);
    if (impossible_.contains(id)) state = behind_barrier(std::move(state), true);  // said once
    if (meeting != Meeting::kNone) {
      std::vector<ir::OpData> ops = waits(state);
      if (!team().is_alone()) ops.emplace_back(barrier(meeting));
      i += insert(region, i, ops);
      state = fenced(landed(waited(std::move(state)), {}));
      state.unmet = state.unmet && meeting != Meeting::kCluster;
      state = meeting == Meeting::kWarpgroup
                  ? behind_meeting(std::move(state))
                  : behind_barrier(std::move(state), meeting == Meeting::kCluster);
    }
    const bool leaves = contains(function_, function_.ops[id], ir::OpKind::kYield) &&
                        varying_.control(id, ir::Level::kBlock);
    state = enter(id, region, i, std::move(state));
    state.some_left = state.some_left || leaves;
  }
  return state;
}

// --- what an operation needs

// Whether the operation, or any inside a loop, branch or region, uses registers that a product in
// flight uses too. The wait then stands in front of the whole: with a wait on one path only, ptxas
// runs all products of the kernel one after the other. A `parallel` is entered by all, and gets the
// wait inside.
bool Placer::touches_products(ir::OpId id, const State& state) const {
  if (facts_.program_waits() || !state.has_products()) return false;
  const ir::Op& op = function_.ops[id];
  const bool enters = op.kind() == ir::OpKind::kParallel;
  if (enters || ir::regions_of(op).empty()) return uses_products(op, state);
  bool inside = op.kind() == ir::OpKind::kIf && contains(function_, op, ir::OpKind::kTrigger);
  for (const ir::RegionId region : ir::regions_of(op)) {
    ir::walk(function_, region, [&](ir::OpId inner) {
      inside = inside || uses_products(function_.ops[inner], state);
    });
  }
  return inside;
}

// Further products on the same accumulator follow each other in order.
bool Placer::uses_products(const ir::Op& op, const State& state) const {
  const auto* load = std::get_if<ir::Load>(&op.data);
  const bool in_place = load != nullptr && load->in_shared;
  if (in_place || op.kind() == ir::OpKind::kMma) return false;
  bool found = false;
  ir::for_each_operand(op, [&](std::string_view, ir::ValueId value) {
    found = found || (value.valid() && facts_.is_fragment(value) &&
                      std::any_of(state.accesses.begin(), state.accesses.end(),
                                  [&](const Access& a) { return a.product && a.root == value; }));
  });
  return found;
}

// Whether the operation scales sums of products of its own straight line of code, by factors that
// may be read before the products are done.
bool Placer::can_wait_inside(ir::RegionId region, std::size_t index, const State& state) const {
  const std::vector<ir::OpId>& ops = function_.regions[region].ops;
  if (function_.ops[ops[index]].kind() != ir::OpKind::kScale) return false;
  const bool multiplies =
      std::any_of(ops.begin(), ops.begin() + static_cast<std::ptrdiff_t>(index), [&](ir::OpId id) {
        const ir::Op& op = function_.ops[id];
        return op.kind() == ir::OpKind::kMma || contains(function_, op, ir::OpKind::kMma);
      });
  return multiplies && (diverged_ || needed(region, index, waited(state)) == Meeting::kNone);
}

// The accesses that must be ordered before the operation starts. A divergent `if` is one operation,
// and so is an `apply`: no barrier may stand inside it. A loop waits once in front of it for what
// came before, not again in every trip.
Accesses Placer::wanted(const ir::Op& op) const {
  const auto* branch = std::get_if<ir::If>(&op.data);
  const bool as_one =
      op.kind() == ir::OpKind::kFor || op.kind() == ir::OpKind::kLoop ||
      op.kind() == ir::OpKind::kOnce || op.kind() == ir::OpKind::kApply ||
      (branch != nullptr && (is_divergent(branch->condition) || reaches_blocks(op)));
  return stamped(as_one ? facts_.all(op) : facts_.own(op));
}

// What the `inthreads` regions from here on touch: one barrier in front of the first serves all.
Accesses Placer::of_regions(ir::RegionId region, std::size_t index) const {
  const std::vector<ir::OpId>& ops = function_.regions[region].ops;
  Accesses out;
  for (std::size_t i = index; i < ops.size(); ++i) {
    const ir::Op& op = function_.ops[ops[i]];
    if (op.kind() != ir::OpKind::kInthreads && !is_quiet(op)) break;
    if (op.kind() != ir::OpKind::kInthreads && !facts_.own(op).empty()) break;
    if (op.kind() == ir::OpKind::kInthreads) unite(out, facts_.all(op));
  }
  for (Access& access : out) access.nest = nests_ + 1;  // none that there was
  return out;
}

// Whether the operation reads memory of other blocks, or writes what they read, and some block might
// not come into it.
bool Placer::reaches_blocks(const ir::Op& op) const {
  return facts_.reads_other_blocks() && std::ranges::any_of(facts_.all(op), [&](const Access& a) {
           return a.of_any_block || (a.writes && facts_.is_read_by_blocks(a.root));
         });
}

// Each warpgroup has a part of its own of what both touch: then it alone waits, once; and it does not where it
// touches other elements than before.
Placer::Meeting Placer::between(const Access& before, const Access& now) const {
  if (facts_.is_fragment(before.root) || !conflict(before, now)) return Meeting::kNone;
  // Of a copy on its way no barrier knows when it comes.
  if (before.unawaited) return Meeting::kNone;
  if (before.of_any_block || now.of_any_block) return Meeting::kCluster;
  if (before.met_in_block) return Meeting::kNone;
  const auto apart = [&](bool itself) {
    return before.team == team_ &&
           ir::are_apart(before.parts, now.parts, team().first, team().threads, itself);
  };
  const bool one_unit = team().threads != 0 && team().threads == before.unit;
  const bool by_same_threads = before.bulk && now.bulk && before.unit == now.unit;
  if (by_same_threads && before.team == team_ && (one_unit || apart(false))) return Meeting::kNone;
  if (!apart(false)) return Meeting::kTeam;
  if (apart(true)) return Meeting::kNone;
  return before.met ? Meeting::kNone : Meeting::kWarpgroup;
}

// A copy's own event has one generation after the other, and a thread that waits can tell two of
// them apart, no more: all must have passed the last wait before one thread starts the next copy.
// A multicast starts for other blocks as well.
Placer::Meeting Placer::needed_by_own_event(const ir::Op& op, const State& state) const {
  const auto* copy = std::get_if<ir::Copy>(&op.data);
  if (copy == nullptr || !copy->bulk || !is_hidden(copy->event)) return Meeting::kNone;
  if (copy->multicast && state.unmet && team_ == kBlockTeam) return Meeting::kCluster;
  const bool again = state.own.contains(copy->event) && !team().is_alone();
  return again ? Meeting::kTeam : Meeting::kNone;
}

Placer::Meeting Placer::needed(ir::RegionId region, std::size_t index, const State& state) const {
  const ir::Op& op = function_.ops[function_.regions[region].ops[index]];
  const bool regions = op.kind() == ir::OpKind::kInthreads;
  // Code that follows regions: all threads of the block do it together.
  const bool together = ir::written_together(function_, op).valid();
  const bool joins = state.unjoined && team_ == kBlockTeam && together;
  // Behind it not all threads are there to wait for each other.
  const bool some_yield = contains(function_, op, ir::OpKind::kYield) &&
                          varying_.control(function_.regions[region].ops[index], ir::Level::kBlock);
  const bool before_yield = some_yield && std::ranges::any_of(state.accesses, [](const Access& a) {
                              return !a.met_in_block;
                            });
  const Accesses now = regions ? of_regions(region, index) : wanted(op);
  Meeting most = std::max(needed_by_own_event(op, state),
                          joins || before_yield ? Meeting::kTeam : Meeting::kNone);
  for (const Access& a : state.accesses) {
    if (regions && a.team != team_) continue;  // events order regions
    for (const Access& b : now) most = std::max(most, between(a, b));
  }
  return most;
}

// Of the meetings that an operation needs the one that the threads here can have: where not all of them come by, none. That a
// cluster cannot meet is remembered.
Placer::Meeting Placer::possible(ir::RegionId region, std::size_t index, const State& state) {
  if (diverged_ && !facts_.reads_other_blocks()) return Meeting::kNone;
  const ir::OpId id = function_.regions[region].ops[index];
  const Meeting meeting = needed(region, index, state);
  if (meeting == Meeting::kCluster && facts_.reads_other_blocks() &&
      (diverged_ || apart_ || state.some_left)) {
    impossible_.insert(id);
    return Meeting::kNone;
  }
  return diverged_ ? Meeting::kNone : meeting;
}

bool Placer::is_unfenced(const Access& access, bool global) const {
  return access.writes && !access.bulk && !access.fenced && !access.is_awaited_by_program() &&
         facts_.is_read_asynchronously(access.root) && facts_.is_global(access.root) == global;
}

bool Placer::is_divergent(ir::ValueId value) const {
  ir::Level unit = ir::Level::kBlock;
  if (team().is_in_one(kWarpgroup)) unit = ir::Level::kGroup4;
  if (team().is_in_one(target::kWarpLanes)) unit = ir::Level::kGroup;
  return varying_.value(value, unit);
}

bool Placer::is_whole_team(const ir::Barrier& barrier) const {
  if (barrier.level == ir::Level::kBlock) return true;
  const bool in_warpgroup = team().is_in_one(kWarpgroup);
  if (barrier.level == ir::Level::kGroup4 && in_warpgroup) return true;
  return one_warp_ || team().is_in_one(target::kWarpLanes);
}

bool Placer::uses_multicast(const ir::Op& op) const {
  if (multicast_.empty()) return false;
  const auto* wait = std::get_if<ir::EventWait>(&op.data);
  if (wait != nullptr) return multicast_.contains(wait->event);
  return std::ranges::any_of(facts_.own(op),
                             [&](const Access& a) { return multicast_.contains(a.root); });
}

// Whether a generation of the event takes every thread of the team, and no others do.
bool Placer::takes_whole_team(ir::ValueId event) const {
  const auto* made = function_.def_as<ir::Event>(event);
  const auto by = triggered_by_.find(event);
  return made != nullptr && !made->grid && team().threads != 0 && made->stated == team().threads &&
         by != triggered_by_.end() && by->second == std::set<int>{team_};
}

// Whether each slot of the event speaks of a part of the buffer of its own. Else what is known of another slot's
// part says nothing of all of it.
bool Placer::has_as_many(ir::ValueId root, ir::ValueId event) const {
  const std::int64_t slots = std::get<ir::EventType>(function_.type(event)).slots;
  const auto* view = std::get_if<ir::ViewType>(&function_.type(root));
  return slots == 1 ||
         (view != nullptr && !view->shape.empty() && view->shape.front().constant() == slots);
}

// Whether who has waited for the event knows that all of the team had triggered it before: a barrier
// in two halves.
bool Placer::meets(ir::ValueId event) const {
  return takes_whole_team(event) && in_two_halves_.contains(event);
}

// An event that sema made for a bulk copy of its own means nothing but that copy.
bool Placer::is_hidden(ir::ValueId event) const {
  if (!event.valid()) return false;
  const auto* made = function_.def_as<ir::Event>(event);
  return made != nullptr && made->name.empty();
}

// --- what is put in front of it

// What a barrier needs in front of it: products done with what they read, copies landed, and what
// threads wrote visible to products and bulk copies.
std::vector<ir::OpData> Placer::waits(const State& state) const {
  std::vector<ir::OpData> ops;
  if (state.has_products() && !facts_.program_waits()) ops.emplace_back(ir::MmaWait{});
  if (state.copies_in_flight()) ops.emplace_back(ir::CopyWait{});
  for (const bool global : {false, true}) {
    const bool unfenced = std::any_of(state.accesses.begin(), state.accesses.end(),
                                      [&](const Access& a) { return is_unfenced(a, global); });
    if (unfenced) ops.emplace_back(ir::ProxyFence{global});
  }
  return ops;
}

// As in front of a barrier; the copies that count for the event have come too. One thread that
// arrives for all must know that the others are done, also with waiting: an event must not go on
// while one of them still waits for its last generation.
std::vector<ir::OpData> Placer::before_trigger(const ir::Trigger& trigger,
                                               const State& state) const {
  if (is_hidden(trigger.event)) return {};
  std::vector<ir::OpData> ops;
  const bool counted =
      std::any_of(state.accesses.begin(), state.accesses.end(),
                  [&](const Access& a) { return a.in_flight && a.label == trigger.event; });
  const State after = counted ? landed(state, trigger.event) : state;
  if (counted && !trigger.tracks) ops.emplace_back(ir::FutureWait{trigger.event});
  for (ir::OpData& data : waits(after)) ops.push_back(std::move(data));
  const bool others = std::any_of(
      after.accesses.begin(), after.accesses.end(),
      [](const Access& a) { return !a.bulk && !a.handed && !a.is_awaited_by_program(); });
  const bool meets = trigger.arrival == ir::Arrival::kElected && (others || after.waited) &&
                     !team().is_alone() && !diverged_;
  if (meets) ops.emplace_back(barrier(Meeting::kTeam));
  return ops;
}

ir::Barrier Placer::barrier(Meeting meeting) const {
  if (meeting == Meeting::kCluster) {
    return {.level = ir::Level::kBlock, .inferred = true, .cluster = true};
  }
  const bool warp = one_warp_ && team_ == kBlockTeam;
  if (meeting == Meeting::kWarpgroup && !team().is_in_one(kWarpgroup)) {
    return {ir::Level::kGroup4, true};
  }
  return {warp ? ir::Level::kGroup : ir::Level::kBlock, true};
}

std::size_t Placer::insert(ir::RegionId region, std::size_t index,
                           const std::vector<ir::OpData>& ops) {
  std::vector<ir::OpId>& there = function_.regions[region].ops;
  const Span span = function_.ops[there[index]].span;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const ir::OpId id = function_.ops.push({span, ops[i], {}});
    there.insert(there.begin() + static_cast<std::ptrdiff_t>(index + i), id);
  }
  return ops.size();
}

void Placer::append(ir::RegionId region, ir::OpData data) {
  std::vector<ir::OpId>& ops = function_.regions[region].ops;
  const Span span = function_.ops[ops.back()].span;
  ops.push_back(function_.ops.push({span, std::move(data), {}}));
}

// A wait at the head of a body is for the products of the trip before: it moves to the end, so that
// registers of products in flight do not cross the loop's edge (ptxas would serialise them). True
// when there was one.
bool Placer::wait_at_the_end(ir::RegionId body) {
  std::vector<ir::OpId>& ops = function_.regions[body].ops;
  const auto first = std::find_if(ops.begin(), ops.end(), [&](ir::OpId id) {
    const ir::OpKind kind = function_.ops[id].kind();
    return kind != ir::OpKind::kSubview && kind != ir::OpKind::kIndex && kind != ir::OpKind::kAlloc;
  });
  if (first == ops.end()) return false;
  const auto* wait = std::get_if<ir::MmaWait>(&function_.ops[*first].data);
  if (wait == nullptr || wait->stated) return false;
  std::rotate(first, first + 1, ops.end());
  return true;
}

// Whether the next trip uses accumulators of products that this one leaves in flight. They are
// waited for at the end, for the same reason.
bool Placer::is_used_next_trip(ir::RegionId body, const State& state) const {
  State sums = state;
  std::erase_if(sums.accesses, [&](const Access& a) {
    return !a.product || !facts_.is_fragment(a.root) ||
           function_.frag_type(a.root).role != ir::Role::kC;
  });
  return std::ranges::any_of(function_.regions[body].ops,
                             [&](ir::OpId id) { return touches_products(id, sums); });
}

bool Placer::jumps(ir::RegionId body) const {
  bool found = false;
  ir::walk(function_, body, [&](ir::OpId id) {
    const ir::OpKind kind = function_.ops[id].kind();
    found = found || kind == ir::OpKind::kContinue || kind == ir::OpKind::kBreak;
  });
  return found;
}

// --- going through

Placer::State Placer::enter(ir::OpId id, ir::RegionId region, std::size_t& index, State state) {
  // A copy of the fields: inserting operations moves the arrays.
  const ir::Op op = function_.ops[id];
  const bool outer_apart = apart_;
  if (const auto* loop = std::get_if<ir::For>(&op.data)) {
    const Trips trips = {.leaves_at_end = true, .again = runs_again(function_, *loop)};
    apart_ = apart_ || varying_.control(id, ir::Level::kBlock);
    State after = enter_loop(loop->body, state, trips);
    apart_ = outer_apart;
    return always_runs(function_, *loop) ? after : merge(std::move(state), after);
  }
  if (const auto* loop = std::get_if<ir::Loop>(&op.data)) {
    apart_ = apart_ || varying_.control(id, ir::Level::kBlock);
    State after = enter_loop(loop->body, state, {.leaves_at_end = false, .again = true});
    apart_ = outer_apart;
    return after;
  }
  if (const auto* parallel = std::get_if<ir::Parallel>(&op.data)) {
    const int outer = nest_;
    nest_ = ++nests_;
    State after = place(parallel->body, std::move(state));
    nest_ = outer;
    return after;
  }
  if (const auto* some = std::get_if<ir::Inthreads>(&op.data)) {
    return enter_inthreads(*some, std::move(state));
  }
  if (const auto* branch = std::get_if<ir::If>(&op.data)) {
    return enter_if(*branch, state);
  }
  if (op.kind() == ir::OpKind::kOnce || op.kind() == ir::OpKind::kApply) {
    state.unmet = state.unmet || !multicast_.empty();
    return with(std::move(state), facts_.all(op));
  }
  if (const auto* trigger = std::get_if<ir::Trigger>(&op.data)) {
    const std::vector<ir::OpData> ops = before_trigger(*trigger, state);
    index += insert(region, index, ops);
    for (const ir::OpData& data : ops) state = enter_meeting({op.span, data, {}}, std::move(state));
    if (trigger->tracks) state = landed(std::move(state), trigger->event);
  }
  const auto* barrier = std::get_if<ir::Barrier>(&op.data);
  if (barrier != nullptr && !barrier->inferred) {
    const std::vector<ir::OpData> ops = waits(state);
    index += insert(region, index, ops);
    for (const ir::OpData& data : ops) state = enter_meeting({op.span, data, {}}, std::move(state));
  }
  return enter_meeting(op, std::move(state));
}

// Waits, fences and barriers; everything else is what it touches.
Placer::State Placer::enter_meeting(const ir::Op& op, State state) {
  if (const auto* wait = std::get_if<ir::MmaWait>(&op.data)) {
    return wait->pending == 0 ? waited(std::move(state)) : state;
  }
  if (op.kind() == ir::OpKind::kCopyWait) return landed(std::move(state), {});
  if (const auto* fence = std::get_if<ir::ProxyFence>(&op.data)) {
    return fenced(std::move(state), fence->global);
  }
  if (const auto* wait = std::get_if<ir::FutureWait>(&op.data)) {
    return landed(std::move(state), wait->future);
  }
  if (const auto* barrier = std::get_if<ir::Barrier>(&op.data)) {
    state.unmet = state.unmet && !barrier->cluster;
    if (is_whole_team(*barrier)) {
      return behind_barrier(std::move(state), barrier->cluster || barrier->grid);
    }
    const bool meet = barrier->level == ir::Level::kGroup4;
    return meet ? behind_meeting(std::move(state)) : state;
  }
  if (const auto* names = std::get_if<ir::Exchange>(&op.data)) {
    for (Access& access : state.accesses) {
      if (access.label == names->first) {
        access.label = names->second;
      } else if (access.label == names->second) {
        access.label = names->first;
      }
    }
  }
  if (const auto* trigger = std::get_if<ir::Trigger>(&op.data)) {
    if (is_hidden(trigger->event)) return state;
    for (Access& access : state.accesses) access.released = !access.is_awaited_by_program();
    if (takes_whole_team(trigger->event)) {
      for (Access& access : state.accesses) {
        if (access.team == team_) access.told.insert(trigger->event);
      }
    }
  }
  state.waited = state.waited || op.kind() == ir::OpKind::kEventWait;
  state.unmet = state.unmet || uses_multicast(op);
  if (const auto* wait = std::get_if<ir::EventWait>(&op.data)) {
    await(
        state.accesses, [&](ir::ValueId event) { return event == wait->event; }, false);
    if (team_ != kBlockTeam) awaited_.insert(wait->event);
    if (is_hidden(wait->event)) state.own.insert(wait->event);
    if (is_hidden(wait->event) || team_ == kBlockTeam) return state;
    for (Access& access : state.accesses) {
      const bool within_team = !access.bulk && access.told.contains(wait->event) &&
                               has_as_many(access.root, wait->event);
      access.handed = access.released && (within_team || facts_.is_handed_over(access.root));
    }
    if (meets(wait->event)) state = behind_event(std::move(state), wait->event);
  }
  const bool leaves = op.kind() == ir::OpKind::kBreak || op.kind() == ir::OpKind::kContinue;
  if (leaves && !exits_.empty()) {
    State& exit = op.kind() == ir::OpKind::kBreak ? exits_.back().breaks : exits_.back().continues;
    exit = merge(exit, state);
  }
  if (leaves || op.kind() == ir::OpKind::kYield) state.reachable = false;
  return with(std::move(state), facts_.own(op));
}

// A loop inside of others is entered as often as they go round, mostly alike: then it leaves what
// it left before, and everything stands in it already.
Placer::State Placer::enter_loop(ir::RegionId body, const State& state, const Trips& trips) {
  for (const Round& round : rounds_[body]) {
    const bool alike = round.team == team_ && round.nest == nest_ && round.diverged == diverged_;
    if (alike && round.before == state) return round.after;
  }
  State after = go_round(body, state, trips);
  rounds_[body].push_back({state, team_, nest_, diverged_, after});
  return after;
}

// What the end of the body leaves behind meets its beginning, until that brings nothing new.
Placer::State Placer::go_round(ir::RegionId body, const State& state, const Trips& trips) {
  State in = state;
  State out;
  State breaks;
  const bool jumps_out = jumps(body);
  for (int pass = 0; pass < kPassesMax; ++pass) {
    exits_.emplace_back();
    out = place(body, in);
    out = merge(std::move(out), exits_.back().continues);
    breaks = exits_.back().breaks;
    exits_.pop_back();
    if (!trips.again) break;
    if (!jumps_out && is_used_next_trip(body, out)) {
      append(body, ir::MmaWait{});
      out = waited(std::move(out));
    }
    const State next = merge(in, left(out));
    const bool grew = next.accesses.size() > in.accesses.size() || next.unjoined != in.unjoined ||
                      next.waited != in.waited || next.own.size() > in.own.size() ||
                      next.unmet != in.unmet || next.some_left != in.some_left;
    if (!grew && pass > 0) break;
    in = next;
  }
  const bool leaves = breaks.reachable || jumps_out;
  if (trips.again && !leaves && wait_at_the_end(body)) out = waited(std::move(out));
  if (!trips.leaves_at_end && breaks.reachable) return breaks;
  return merge(std::move(out), breaks);
}

// The region starts with what its own threads left behind; a barrier in front of it has ordered the
// block's accesses.
Placer::State Placer::enter_inthreads(const ir::Inthreads& op, State state) {
  const int outer_team = team_;
  const int outer_nest = nest_;
  team_ = facts_.team_of(op);
  nest_ = ++nests_;
  State inner;
  inner.own = state.own;
  inner.unmet = state.unmet;
  for (const Access& access : state.accesses) {
    if (access.team == team_) inner.accesses.push_back(access);
  }
  std::erase_if(state.accesses, [&](const Access& a) { return a.team == team_; });
  inner = place(op.body, std::move(inner));
  const bool empty = function_.regions[op.body].ops.empty();
  if (!empty && inner.has_products() && !facts_.program_waits()) {
    append(op.body, ir::MmaWait{});
    inner = waited(std::move(inner));
  }
  if (!empty && inner.copies_in_flight()) {
    append(op.body, ir::CopyWait{});
    inner = landed(std::move(inner), {});
  }
  if (!empty) await_tracked(op.body);
  team_ = outer_team;
  nest_ = outer_nest;
  if (inner.reachable) unite(state.accesses, inner.accesses);
  state.own.insert(inner.own.begin(), inner.own.end());
  state.unmet = state.unmet || inner.unmet;
  state.unjoined = state.unjoined || op.async;
  return state;
}

// Copies that the region's triggers have left to their events have landed when the region ends: what comes behind it may
// reuse the memory, and a thread must not end before.
void Placer::await_tracked(ir::RegionId body) {
  std::set<ir::ValueId> events;
  ir::walk(function_, body, [&](ir::OpId id) {
    const auto* trigger = std::get_if<ir::Trigger>(&function_.ops[id].data);
    if (trigger != nullptr && trigger->tracks) events.insert(trigger->event);
  });
  for (const ir::OpId id : function_.regions[body].ops) {
    const auto* wait = std::get_if<ir::FutureWait>(&function_.ops[id].data);
    if (wait != nullptr) events.erase(wait->future);
  }
  for (const ir::ValueId event : events) append(body, ir::FutureWait{event});
}

// Where not all threads go the same way no barrier may stand, but waits for the branch's own
// products and copies may.
Placer::State Placer::enter_if(const ir::If& op, const State& state) {
  const bool outer = diverged_;
  diverged_ = outer || is_divergent(op.condition);
  State taken = place(op.then_body, state);
  const State other = op.else_body.valid() ? place(op.else_body, state) : state;
  diverged_ = outer;
  return merge(std::move(taken), other);
}

}  // namespace kiln::passes
