#include "reference/regions.h"

#include <algorithm>
#include <utility>

#include "target/arch.h"

namespace kiln::reference {

namespace {

constexpr Team kBlock{0, 0};

// The arrivals that the program says the event has; 0: it says nothing.
std::int64_t arrivals_stated(const ir::Function& function, ir::ValueId event) {
  const auto* made = function.def_as<ir::Event>(event);
  return made == nullptr ? 0 : std::max<std::int64_t>(made->stated, 0);
}

}  // namespace

void Regions::begin_block(ir::RegionId body, std::int64_t threads) {
  block_threads_ = threads;
  triggerers_.clear();
  parts_.clear();
  triggered_.clear();
  sharers_.clear();
  arrived_.clear();
  units_.clear();
  filled_.clear();
  waited_.clear();
  met_.clear();
  members_.clear();
  look(body, kBlock, threads);
  turns_.on_stuck = [this] { note_stuck(); };
}

void Regions::look(ir::RegionId region, Team team, std::int64_t unit) {
  for (const ir::OpId id : function_.regions[region].ops) {
    const ir::Op& op = function_.ops[id];
    const auto* trigger = std::get_if<ir::Trigger>(&op.data);
    if (trigger != nullptr) triggerers_[trigger->event].insert(team);
    const auto* copy = std::get_if<ir::Copy>(&op.data);
    if (copy != nullptr && copy->bulk && copy->event.valid()) filled_.insert({copy->event, team});
    const auto* some = std::get_if<ir::Inthreads>(&op.data);
    const Team inner = some == nullptr ? team : Team{some->first, some->threads};
    if (some != nullptr && some->async) units_[inner].insert(unit);
    const auto* units = std::get_if<ir::Parallel>(&op.data);
    const bool makes_units = units != nullptr && units->level != ir::Level::kThread;
    for (const ir::RegionId part : ir::regions_of(op)) {
      look(part, inner, makes_units ? units->unit : unit);
    }
  }
}

std::vector<Part> Regions::parts(Team team, std::int64_t unit) {
  const bool is_unit = unit > 0 && unit < team.second && team.second % unit == 0;
  const bool divides = is_unit && units_[team].size() == 1;
  const bool parted = divides && std::ranges::any_of(triggerers_, [&](const auto& entry) {
                        const std::int64_t stated = arrivals_stated(function_, entry.first);
                        return entry.second.contains(team) && stated > 0 && stated < team.second;
                      });
  has_parts_ = has_parts_ || parted;
  if (!parted || !in_parts_) return {Part{team}};
  const std::int64_t count = parts_[team] = team.second / unit;
  std::vector<Part> out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back({team, i, count});
  return out;
}

bool Regions::is_of_another_part(std::int64_t thread) const {
  const auto [team, part] = current();
  const std::int64_t parts = part_count(team);
  if (parts == 1 || thread < team.first || thread >= team.first + team.second) return false;
  return (thread - team.first) / (team.second / parts) != part;
}

std::int64_t Regions::part_count(Team team) const {
  const auto found = parts_.find(team);
  return found == parts_.end() ? 1 : found->second;
}

Regions::Member Regions::current() const {
  const auto found = members_.find(turns_.current());
  return found == members_.end() ? Member{kBlock, 0} : found->second;
}

void Regions::start(const Part& part, std::function<void()> body) {
  const Member member{part.team, part.number};
  std::vector<std::size_t> before;
  for (const auto& [flow, of] : members_) {
    if (of == member && !turns_.is_done(flow)) before.push_back(flow);
  }
  const std::size_t flow = turns_.start([this, before, body = std::move(body)] {
    const bool mine = turns_.wait([this, before] {
      return std::all_of(before.begin(), before.end(),
                         [this](std::size_t other) { return turns_.is_done(other); });
    });
    if (mine) body();
  });
  members_[flow] = member;
}

void Regions::run_as(Team team, const std::function<void()>& body) {
  const std::size_t flow = turns_.current();
  const Member outer = current();
  std::int64_t number = 0;
  if (const std::int64_t parts = part_count(outer.first); parts > 1) {
    const std::int64_t threads = outer.first.second / parts;
    const std::int64_t first = (team.first - outer.first.first) / threads;
    const std::int64_t last = (team.first + team.second - 1 - outer.first.first) / threads;
    if (outer.second < first || outer.second > last) return;
    if (last > first) parts_[team] = last - first + 1;
    number = outer.second - first;
  }
  members_[flow] = {team, number};
  body();
  members_[flow] = outer;
}

void Regions::join() {
  turns_.join();
  std::erase_if(members_, [](const auto& entry) { return entry.first != 0; });
}

bool Regions::must_join() const { return turns_.has_others() && current().first == kBlock; }

bool Regions::is_block() const { return !turns_.has_others() && current().first == kBlock; }

bool Regions::counts_arrivals(ir::ValueId event) const {
  const auto who = triggerers_.find(event);
  return who != triggerers_.end() && arrivals_stated(function_, event) > 0 &&
         std::ranges::any_of(who->second, [&](Team team) { return part_count(team) > 1; });
}

std::int64_t Regions::completed(ir::ValueId event, std::int64_t slot) const {
  const auto* made = function_.def_as<ir::Event>(event);
  const std::int64_t at_first = made != nullptr && made->ready ? 1 : 0;
  const auto who = triggerers_.find(event);
  if (who == triggerers_.end()) return at_first;
  if (counts_arrivals(event)) {
    const auto arrived = arrived_.find({event, slot});
    const std::int64_t all = arrived == arrived_.end() ? 0 : arrived->second;
    return at_first + all / arrivals_stated(function_, event);
  }
  std::int64_t least = INT64_MAX;
  for (const Team& team : who->second) least = std::min(least, times({event, slot}, team));
  return at_first + least;
}

// How many generations the team has triggered.
std::int64_t Regions::times(const Slot& slot, Team team) const {
  std::int64_t least = INT64_MAX;
  std::int64_t all = 0;
  for (std::int64_t part = 0; part < part_count(team); ++part) {
    const auto count = triggered_.find({slot, {team, part}});
    const std::int64_t its = count == triggered_.end() ? 0 : count->second;
    least = std::min(least, its);
    all += its;
  }
  const auto sharers = sharers_.find({slot, team});
  return sharers == sharers_.end() ? least : all / sharers->second;
}

// How many of the arrivals that an event states these are: those of threads, or of warps where so many come; or one's, for
// all, where it is bulk copies that complete the event.
std::int64_t Regions::counted(ir::ValueId event, const Arrivals& arrivals) const {
  constexpr std::int64_t kWarp = target::kWarpLanes;
  if (filled_.contains({event, current().first})) return 1;
  const bool are_warps =
      arrivals.named == kWarp * arrivals_stated(function_, event) && arrivals.threads % kWarp == 0;
  return are_warps ? arrivals.threads / kWarp : arrivals.threads;
}

void Regions::trigger(ir::ValueId event, std::int64_t slot, const Arrivals& arrivals) {
  const Member member = current();
  const Team team = member.first;
  ++triggered_[{{event, slot}, member}];
  arrived_[{event, slot}] += counted(event, arrivals);
  const std::int64_t parts = part_count(team);
  if (parts == 1) return;
  const std::int64_t sharers = std::max<std::int64_t>(arrivals.named * parts / team.second, 1);
  if (sharers < parts) sharers_[{{event, slot}, team}] = sharers;
}

bool Regions::wait_at(ir::OpId op, Turns::Condition condition) {
  waits_[turns_.current()] = op;
  const bool done = turns_.wait(std::move(condition));
  waits_.erase(turns_.current());
  return done;
}

bool Regions::wait(ir::OpId op, ir::ValueId event, std::int64_t slot, std::int64_t generation) {
  if (generation < 0) generation = waited_[{{event, slot}, current()}]++;
  return wait_at(op,
                 [this, event, slot, generation] { return completed(event, slot) > generation; });
}

bool Regions::meet(ir::OpId op) {
  const Member member = current();
  const Team team = member.first;
  const std::int64_t parts = part_count(team);
  if (parts == 1) return true;
  const std::int64_t times = ++met_[member];
  return wait_at(op, [this, team, parts, times] {
    for (std::int64_t part = 0; part < parts; ++part) {
      const auto count = met_.find({team, part});
      if (count == met_.end() || count->second < times) return false;
    }
    return true;
  });
}

void Regions::note_stuck() {
  for (const auto& [flow, op] : waits_) {
    if (!turns_.is_done(flow)) stuck_at_.push_back(op);
  }
}

}  // namespace kiln::reference
