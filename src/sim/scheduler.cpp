// The scheduler: picks who runs, releases barriers, and notices when nobody can run.
//
// Schedule 0 takes warps in turn, each to its next barrier. Other schedules pick at random and
// switch at every memory operation; the random numbers come from the seed alone, so a run can be
// repeated.
#include <algorithm>

#include "sim/access.h"

namespace kiln::sim {

namespace {

void reset_warp(const Program& program, const Warp& host, Warp& warp) {
  warp.pc = 0;
  warp.mask = warp.exists;
  warp.state = WarpState::kReady;
  warp.frames.clear();
  warp.trips = 0;
  warp.groups.clear();
  warp.vars.resize(program.vars * kLanes);
  warp.values.resize(program.values * kLanes);
  warp.cell_set.resize(program.values);
  for (std::size_t value = 0; value < program.values; ++value) {
    std::fill_n(warp.values.begin() + static_cast<std::ptrdiff_t>(value * kLanes), kLanes,
                host.values[value * kLanes]);
    warp.cell_set[value] = (host.cell_set[value] & 1U) != 0 ? ~0U : 0U;
  }
  warp.loop_upper.resize(program.loops.size() * kLanes);
  warp.registers.resize(program.fragment_doubles);
  warp.fragment_set.assign(program.fragments.size(), false);
  warp.unfenced.assign(program.fragments.size(), false);
  warp.descriptors.resize(program.fragments.size());
  warp.products.clear();
  warp.group = 0;
  warp.local.resize(static_cast<std::size_t>(program.local_bytes) * kLanes);
  warp.local_set.assign(warp.local.size(), false);
}

// The warps that a barrier of this level holds together with `index`.
std::pair<std::size_t, std::size_t> unit_of(const Machine& machine, std::size_t index,
                                            ir::Level level) {
  constexpr std::size_t kGroup4Warps = 4;
  if (level != ir::Level::kGroup4) return {0, machine.warps.size()};
  const std::size_t begin = index / kGroup4Warps * kGroup4Warps;
  return {begin, std::min(begin + kGroup4Warps, machine.warps.size())};
}

// Every warp of the unit has seen what every other has done.
void synchronise(Machine& machine, std::size_t begin, std::size_t end) {
  std::vector<Clock>& joined = machine.joined;
  const auto join = [&](Clock* Warp::*clocks, std::size_t count) {
    joined.assign(count, 0);
    for (std::size_t w = begin; w < end; ++w) {
      const Clock* mine = machine.warps[w].*clocks;
      for (std::size_t i = 0; i < count; ++i) joined[i] = std::max(joined[i], mine[i]);
    }
    for (std::size_t w = begin; w < end; ++w) {
      std::copy(joined.begin(), joined.end(), machine.warps[w].*clocks);
    }
  };
  for (std::size_t w = begin; w < end; ++w) {
    ++machine.warps[w].seen[w];
    machine.warps[w].state = WarpState::kReady;
  }
  join(&Warp::seen, machine.clocks_each());
  join(&Warp::fenced, machine.warps.size());
}

// Releases the barrier that `index` has reached, if all others of its unit are there.
void try_release(Machine& machine, std::size_t index) {
  const Warp& warp = machine.warps[index];
  if (warp.state != WarpState::kWaiting) return;
  const auto [begin, end] = unit_of(machine, index, warp.waits_for);
  for (std::size_t w = begin; w < end; ++w) {
    const Warp& other = machine.warps[w];
    if (other.state != WarpState::kWaiting || other.waits_for != warp.waits_for) return;
  }
  synchronise(machine, begin, end);
}

std::string_view level_text(ir::Level level) {
  return level == ir::Level::kGroup4 ? "group-4 barrier" : "block barrier";
}

void report_deadlock(Machine& machine) {
  const auto waiting = std::find_if(machine.warps.begin(), machine.warps.end(),
                                    [](const Warp& w) { return w.state == WarpState::kWaiting; });
  const std::size_t first = waiting->pc - 1;
  Report* report = machine.reporter.open(ReportKind::kDeadlock, machine.program.code[first].op);
  if (report == nullptr) return;
  std::size_t finished = 0;
  for (const Warp& warp : machine.warps) {
    if (warp.state == WarpState::kFinished) {
      ++finished;
      continue;
    }
    report->accesses.push_back(
        {machine.span(warp.pc - 1),
         format("warp {} waits at a {}", warp.index, level_text(warp.waits_for))});
  }
  const std::size_t stuck = machine.warps.size() - finished;
  report->message = format("deadlock: {} of {} {} at a barrier that {} never reach{}", stuck,
                           machine.warps.size(), stuck == 1 ? "warps waits" : "warps wait",
                           finished == 1 ? "the other" : "the others", finished == 1 ? "es" : "");
  report->missing = finished == 0 ? "the warps wait at barriers of different levels"
                                  : format("{} {} finished without it", finished,
                                           finished == 1 ? "warp has" : "warps have");
}

// The next warp to run, from `from` on; or none.
std::size_t pick(Machine& machine, std::size_t from) {
  const std::size_t warps = machine.warps.size();
  if (machine.random) from = machine.next_random() % warps;
  for (std::size_t i = 0; i < warps; ++i) {
    const std::size_t w = (from + i) % warps;
    if (machine.warps[w].state == WarpState::kReady) return w;
  }
  return warps;
}

}  // namespace

void start_block(Machine& machine, const Warp& host) {
  const Program& program = machine.program;
  const std::size_t warps = program.warps();
  Clock latest = machine.era->block_start;
  for (const Clock clock : machine.clocks) latest = std::max(latest, clock);
  machine.era->block_start = latest + 1;
  machine.block_starts.push_back({latest + 1, machine.block});
  machine.warps.resize(warps);
  machine.clocks.assign(warps * machine.clocks_each(), latest + 1);
  machine.fences.assign(warps * warps, latest + 1);
  for (std::size_t w = 0; w < warps; ++w) {
    Warp& warp = machine.warps[w];
    warp.index = static_cast<std::uint32_t>(w);
    const std::uint32_t lanes =
        std::min(kLanes, program.threads - static_cast<std::uint32_t>(w) * kLanes);
    warp.exists = lanes == kLanes ? ~0U : (1U << lanes) - 1;
    warp.seen = &machine.clocks[w * machine.clocks_each()];
    warp.fenced = &machine.fences[w * warps];
    warp.group_clock = latest + 1;
    reset_warp(program, host, warp);
  }
}

void run_block(Machine& machine) {
  std::size_t at = 0;
  while (true) {
    at = pick(machine, at);
    if (at == machine.warps.size()) break;
    run_warp(machine, machine.warps[at]);
    try_release(machine, at);
  }
  // The next block's clocks must be later than those of products nobody waited for.
  for (Warp& warp : machine.warps) {
    Clock& products = warp.seen[machine.warps.size() + warp.index];
    products = std::max(products, warp.group_clock);
  }
  const bool all_done = std::all_of(machine.warps.begin(), machine.warps.end(),
                                    [](const Warp& w) { return w.state == WarpState::kFinished; });
  if (!all_done) report_deadlock(machine);
}

}  // namespace kiln::sim
