#include "reference/regions.h"

#include <algorithm>
#include <utility>

namespace kiln::reference {

namespace {

constexpr Team kBlock{0, 0};

}  // namespace

void Regions::begin_block(ir::RegionId body, std::int64_t threads) {
  block_threads_ = threads;
  triggerers_.clear();
  triggered_.clear();
  waited_.clear();
  teams_.clear();
  look(body, kBlock);
  turns_.on_stuck = [this] { note_stuck(); };
}

void Regions::look(ir::RegionId region, Team team) {
  for (const ir::OpId id : function_.regions[region].ops) {
    const ir::Op& op = function_.ops[id];
    const auto* trigger = std::get_if<ir::Trigger>(&op.data);
    if (trigger != nullptr) triggerers_[trigger->event].insert(team);
    const auto* some = std::get_if<ir::Inthreads>(&op.data);
    const Team inner = some == nullptr ? team : Team{some->first, some->threads};
    for (const ir::RegionId part : ir::regions_of(op)) look(part, inner);
  }
}

Team Regions::current_team() const {
  const auto found = teams_.find(turns_.current());
  return found == teams_.end() ? kBlock : found->second;
}

void Regions::start(Team team, std::function<void()> body) {
  std::vector<std::size_t> before;
  for (const auto& [flow, of] : teams_) {
    if (of == team && !turns_.is_done(flow)) before.push_back(flow);
  }
  const std::size_t flow = turns_.start([this, before, body = std::move(body)] {
    const bool mine = turns_.wait([this, before] {
      return std::all_of(before.begin(), before.end(),
                         [this](std::size_t other) { return turns_.is_done(other); });
    });
    if (mine) body();
  });
  teams_[flow] = team;
}

void Regions::run_as(Team team, const std::function<void()>& body) {
  const std::size_t flow = turns_.current();
  const Team outer = current_team();
  teams_[flow] = team;
  body();
  teams_[flow] = outer;
}

void Regions::join() {
  turns_.join();
  std::erase_if(teams_, [](const auto& entry) { return entry.first != 0; });
}

bool Regions::must_join() const { return turns_.has_others() && current_team() == kBlock; }

bool Regions::is_block() const { return !turns_.has_others() && current_team() == kBlock; }

std::int64_t Regions::completed(ir::ValueId event, std::int64_t slot) const {
  const auto* made = function_.def_as<ir::Event>(event);
  const std::int64_t at_first = made != nullptr && made->ready ? 1 : 0;
  const auto who = triggerers_.find(event);
  if (who == triggerers_.end()) return at_first;
  std::int64_t least = INT64_MAX;
  for (const Team& team : who->second) {
    const auto count = triggered_.find({{event, slot}, team});
    least = std::min(least, count == triggered_.end() ? 0 : count->second);
  }
  return at_first + least;
}

void Regions::trigger(ir::ValueId event, std::int64_t slot) {
  ++triggered_[{{event, slot}, current_team()}];
}

// Whether nobody but a part of the threads that wait triggers it: warpgroups of a region take turns, say. Here they
// are one flow, in which the turns mean nothing.
bool Regions::is_within_team(ir::ValueId event) const {
  const auto* made = function_.def_as<ir::Event>(event);
  const auto who = triggerers_.find(event);
  const Team team = current_team();
  return made != nullptr && made->stated > 0 && made->stated < team.second &&
         who != triggerers_.end() && who->second == std::set<Team>{team};
}

bool Regions::wait(ir::OpId op, ir::ValueId event, std::int64_t slot, std::int64_t generation) {
  if (generation < 0) generation = waited_[{{event, slot}, current_team()}]++;
  if (is_within_team(event)) return true;
  waits_[turns_.current()] = op;
  const bool done =
      turns_.wait([this, event, slot, generation] { return completed(event, slot) > generation; });
  waits_.erase(turns_.current());
  return done;
}

void Regions::note_stuck() {
  for (const auto& [flow, op] : waits_) {
    if (!turns_.is_done(flow)) stuck_at_.push_back(op);
  }
}

}  // namespace kiln::reference
