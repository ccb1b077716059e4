#include "reference/regions.h"

#include <algorithm>
#include <utility>

#include "ir/effects.h"
#include "ir/strides.h"

namespace kiln::reference {

namespace {

constexpr Team kBlock{0, 0};

}  // namespace

void Regions::begin_block(ir::RegionId body, std::int64_t threads) {
  block_threads_ = threads;
  triggerers_.clear();
  read_.clear();
  written_.clear();
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
    note_memory(op, team);
    const auto* some = std::get_if<ir::Inthreads>(&op.data);
    const Team inner = some == nullptr ? team : Team{some->first, some->threads};
    for (const ir::RegionId part : ir::regions_of(op)) look(part, inner);
  }
}

// Copies move tiles of their own on: what one of them takes is what its own threads have put there.
void Regions::note_memory(const ir::Op& op, Team team) {
  if (op.kind() == ir::OpKind::kCopy) return;
  ir::for_each_touch(op, [&](const ir::Touch& touch) {
    if (!touch.value.valid() || !std::holds_alternative<ir::ViewType>(function_.type(touch.value)))
      return;
    const ir::ValueId root = ir::storage_of(function_, ir::root_of(function_, touch.value));
    if (touch.reads()) read_[team].insert(root);
    if (touch.writes()) written_[team].insert(root);
  });
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

// Whether the event does nothing but make parts of the threads that wait, warpgroups of a region say, go one after the
// other: they alone trigger it, each time a part of them, and they hand each other nothing on in memory. They are one flow
// here, to which that means nothing.
bool Regions::only_takes_turns(ir::ValueId event) const {
  const auto* made = function_.def_as<ir::Event>(event);
  const auto who = triggerers_.find(event);
  const Team team = current_team();
  if (made == nullptr || made->stated <= 0 || made->stated >= team.second ||
      who == triggerers_.end() || who->second != std::set<Team>{team}) {
    return false;
  }
  const auto read = read_.find(team);
  const auto written = written_.find(team);
  return read == read_.end() || written == written_.end() ||
         std::ranges::none_of(written->second,
                              [&](ir::ValueId root) { return read->second.contains(root); });
}

bool Regions::wait(ir::OpId op, ir::ValueId event, std::int64_t slot, std::int64_t generation) {
  if (generation < 0) generation = waited_[{{event, slot}, current_team()}]++;
  if (only_takes_turns(event)) return true;
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
