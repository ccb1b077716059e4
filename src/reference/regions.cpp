#include "reference/regions.h"

#include <algorithm>
#include <utility>

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
  waited_.clear();
  met_.clear();
  members_.clear();
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

std::vector<Part> Regions::parts(Team team, std::int64_t unit) {
  const bool divides = unit > 0 && unit < team.second && team.second % unit == 0;
  const bool parted = divides && std::ranges::any_of(triggerers_, [&](const auto& entry) {
                        const std::int64_t stated = arrivals_stated(function_, entry.first);
                        return entry.second.contains(team) && stated > 0 && stated < team.second;
                      });
  if (!parted) return {Part{team}};
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
  members_[flow] = {team, 0};
  body();
  members_[flow] = outer;
}

void Regions::join() {
  turns_.join();
  std::erase_if(members_, [](const auto& entry) { return entry.first != 0; });
}

bool Regions::must_join() const { return turns_.has_others() && current().first == kBlock; }

bool Regions::is_block() const { return !turns_.has_others() && current().first == kBlock; }

bool Regions::counts_threads(ir::ValueId event) const {
  const auto who = triggerers_.find(event);
  return who != triggerers_.end() && who->second.size() == 1 &&
         part_count(*who->second.begin()) > 1 && arrivals_stated(function_, event) > 0;
}

std::int64_t Regions::completed(ir::ValueId event, std::int64_t slot) const {
  const auto* made = function_.def_as<ir::Event>(event);
  const std::int64_t at_first = made != nullptr && made->ready ? 1 : 0;
  const auto who = triggerers_.find(event);
  if (who == triggerers_.end()) return at_first;
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
  if (counts_threads(slot.first)) return all / arrivals_stated(function_, slot.first);
  const auto sharers = sharers_.find({slot, team});
  return sharers == sharers_.end() ? least : all / sharers->second;
}

// A part that arrives whole where less than it is asked for does so by one of its threads.
void Regions::trigger(ir::ValueId event, std::int64_t slot, const Arrivals& arrivals) {
  const Member member = current();
  const Team team = member.first;
  std::int64_t& times = triggered_[{{event, slot}, member}];
  const std::int64_t parts = part_count(team);
  const std::int64_t threads = team.second / parts;  // of a part
  if (counts_threads(event)) {
    const bool by_one =
        arrivals.threads == threads && arrivals_stated(function_, event) % threads != 0;
    times += by_one ? 1 : arrivals.threads;
    return;
  }
  ++times;
  if (parts == 1) return;
  const std::int64_t sharers = std::max<std::int64_t>(arrivals.named / threads, 1);
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
