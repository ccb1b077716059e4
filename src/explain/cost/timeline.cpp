#include "explain/cost/timeline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "support/check.h"

namespace kiln::explain {

namespace {

using sim::TraceEntry;
using sim::TraceKind;

constexpr std::size_t kCores = 4;

// Serves one after the other.
struct Server {
  std::int64_t free = 0;

  std::int64_t take(std::int64_t from, std::int64_t cycles) {
    free = std::max(free, from) + cycles;
    return free;
  }
};

struct Sm {
  std::array<Server, kCores> cores;
  Server memory;  // global
  Server shared;  // a wavefront a cycle
};

// The last of what a warp waits for.
struct Release {
  std::int64_t at = 0;
  std::uint32_t by = TraceEntry::kNone;

  void include(std::int64_t time, std::uint32_t entry) {
    if (time < at || (time == at && by != TraceEntry::kNone)) return;
    at = time;
    by = entry;
  }
};

struct WarpQueue {
  std::vector<std::uint32_t> entries;
  std::size_t next = 0;
  std::int64_t free = 0;
  std::vector<std::uint32_t> products;  // entries so far
  std::vector<std::uint32_t> copies;
  std::vector<std::uint32_t> stores;
};

// A tensor core job of four warps: issued by the first of them, the same for all.
struct Job {
  std::int64_t started = 0;
  std::int64_t done = 0;
};

// Executes the entries of all warps, always the earliest that can be.
class Clockwork {
 public:
  Clockwork(const target::Arch& arch, const sim::BlockTrace& trace, double dram_share)
      : arch_(arch), trace_(trace), per_byte_(cycles_per_byte(arch, dram_share)) {
    out_.entries.resize(trace.entries.size());
    timed_.resize(trace.entries.size());
    warps_.resize(std::size_t{trace.blocks} * trace.warps);
    jobs_.resize(warps_.size());
    sms_.resize(trace.blocks);
    for (std::uint32_t i = 0; i < trace.entries.size(); ++i) {
      const TraceEntry& entry = trace.entries[i];
      warps_[entry.warp].entries.push_back(i);
      if (entry.meeting != TraceEntry::kNone) members_[entry.meeting].push_back(i);
    }
    for (const sim::TraceArrival& a : trace.arrivals) {
      if (a.entry < trace.entries.size()) arrivals_[{a.block, a.slot, a.phase}].push_back(a.entry);
    }
  }

  Timeline run() {
    for (std::size_t left = trace_.entries.size(); left > 0; --left) {
      const std::size_t warp = earliest();
      KILN_CHECK(warp < warps_.size(), "{} of {} entries wait for each other", left,
                 trace_.entries.size());
      execute(warps_[warp]);
    }
    for (const Timed& timed : out_.entries) {
      out_.cycles = std::max({out_.cycles, timed.end, timed.done});
    }
    return std::move(out_);
  }

 private:
  // The warp whose next entry can end first, or warps_.size().
  std::size_t earliest() const {
    std::size_t best = warps_.size();
    std::int64_t best_at = 0;
    for (std::size_t w = 0; w < warps_.size(); ++w) {
      const WarpQueue& warp = warps_[w];
      if (warp.next == warp.entries.size()) continue;
      const auto release = release_of(warp, warp.entries[warp.next]);
      if (!release) continue;
      const TraceEntry& next = trace_.entries[warp.entries[warp.next]];
      const std::int64_t at = std::max({warp.free, release->at, loaded(next).at});
      if (best != warps_.size() && at >= best_at) continue;
      best = w;
      best_at = at;
    }
    return best;
  }

  // When what the entry waits for is done; nothing while that is not known.
  std::optional<Release> release_of(const WarpQueue& warp, std::uint32_t number) const {
    const TraceEntry& entry = trace_.entries[number];
    switch (entry.kind) {
      case TraceKind::kEventWait: return phase_complete(entry);
      case TraceKind::kBarrier: return all_there(entry);
      case TraceKind::kProductWait: return done_below(warp.products, entry.group);
      case TraceKind::kCopyWait: return done_below(warp.copies, entry.group);
      case TraceKind::kBulkWait: return done_below(warp.stores, entry.group);
      case TraceKind::kMma:
      case TraceKind::kProduct:
      case TraceKind::kLoad:
      case TraceKind::kStore:
      case TraceKind::kElement:
      case TraceKind::kCopy:
      case TraceKind::kAsyncCopy:
      case TraceKind::kBulkLoad:
      case TraceKind::kBulkStore:
      case TraceKind::kTrigger: break;
    }
    return Release{};
  }

  // When the loads have landed whose values the entry needs: earlier ones of its warp.
  Release loaded(const TraceEntry& entry) const {
    Release out;
    for (const std::uint32_t load : entry.needs) {
      if (load != TraceEntry::kNone) out.include(out_.entries[load].done, load);
    }
    return out;
  }

  std::optional<Release> phase_complete(const TraceEntry& entry) const {
    Release out;
    const auto found = arrivals_.find({entry.warp / trace_.warps, entry.slot, entry.phase - 1});
    if (found == arrivals_.end()) return out;
    for (const std::uint32_t other : found->second) {
      if (!timed_[other]) return std::nullopt;
      out.include(std::max(out_.entries[other].end, out_.entries[other].done), other);
    }
    return out;
  }

  std::optional<Release> all_there(const TraceEntry& entry) const {
    Release out;
    if (entry.meeting == TraceEntry::kNone) return out;
    for (const std::uint32_t other : members_.at(entry.meeting)) {
      const WarpQueue& warp = warps_[trace_.entries[other].warp];
      if (timed_[other]) {  // the meeting has been: whoever is timed left it at its end
        out.include(out_.entries[other].begin, other);
        continue;
      }
      if (warp.next == warp.entries.size() || warp.entries[warp.next] != other) {
        return std::nullopt;
      }
      out.include(warp.free, other);
    }
    return out;
  }

  std::optional<Release> done_below(const std::vector<std::uint32_t>& started,
                                    std::int64_t group) const {
    Release out;
    for (auto it = started.rbegin(); it != started.rend(); ++it) {
      if (trace_.entries[*it].group >= group) continue;
      out.include(out_.entries[*it].done, *it);
      break;  // they are done in order
    }
    return out;
  }

  void execute(WarpQueue& warp) {
    const std::uint32_t number = warp.entries[warp.next];
    const TraceEntry& entry = trace_.entries[number];
    const Release release = *release_of(warp, number);
    Timed& timed = out_.entries[number];
    const Release values = loaded(entry);
    timed.begin = warp.free;
    timed.ready = std::max(warp.free, values.at);
    timed.released_by =
        release.by != TraceEntry::kNone || values.at <= warp.free ? release.by : values.by;
    act(warp, number, std::max(timed.ready, release.at), timed);
    if (timed.done == 0) timed.started = timed.done = timed.end;
    warp.free = timed.end;
    timed_[number] = true;
    ++warp.next;
    remember(warp, number, entry.kind);
  }

  static void remember(WarpQueue& warp, std::uint32_t number, TraceKind kind) {
    if (kind == TraceKind::kProduct) warp.products.push_back(number);
    if (kind == TraceKind::kAsyncCopy) warp.copies.push_back(number);
    if (kind == TraceKind::kBulkStore) warp.stores.push_back(number);
  }

  // From `at` on nothing is missing. Fills in everything behind `begin`.
  void act(const WarpQueue& warp, std::uint32_t number, std::int64_t at, Timed& timed) {
    const TraceEntry& entry = trace_.entries[number];
    switch (entry.kind) {
      case TraceKind::kMma: multiply(entry, at, timed); return;
      case TraceKind::kProduct: start_product(warp, entry, at, timed); return;
      case TraceKind::kLoad:
      case TraceKind::kStore:
      case TraceKind::kElement:
      case TraceKind::kCopy: touch(entry, at, timed); return;
      case TraceKind::kAsyncCopy:
      case TraceKind::kBulkLoad:
      case TraceKind::kBulkStore: start_transfer(entry, at, timed); return;
      case TraceKind::kTrigger:
      case TraceKind::kEventWait:
      case TraceKind::kBarrier: timed.end = at + kCosts.shared_latency; return;
      case TraceKind::kProductWait:
      case TraceKind::kCopyWait:
      case TraceKind::kBulkWait: timed.end = at + kCosts.issue; return;
    }
  }

  Sm& sm_of(const TraceEntry& entry) { return sms_[entry.warp / trace_.warps]; }

  std::int64_t busy_cycles(const TraceEntry& entry) const {
    return entry.issues * target::issue_cycles(*entry.atom, arch_);
  }

  // A warp's instructions run on the tensor core of its quarter of the SM.
  void multiply(const TraceEntry& entry, std::int64_t at, Timed& timed) {
    Server& core = sm_of(entry).cores[entry.warp % trace_.warps % kCores];
    timed.end = timed.done = core.take(at, busy_cycles(entry));
    timed.started = timed.end - busy_cycles(entry);
  }

  // The four warps of a group issue the same instruction; it takes all tensor cores.
  void start_product(const WarpQueue& warp, const TraceEntry& entry, std::int64_t at,
                     Timed& timed) {
    timed.end = at + kCosts.issue * entry.issues;
    std::vector<Job>& jobs = jobs_[entry.warp / kWarpgroupWarps];
    const std::size_t number = warp.products.size();
    if (number == jobs.size()) {
      std::int64_t done = 0;
      for (Server& core : sm_of(entry).cores) done = std::max(done, core.free);
      done = std::max(done, at) + busy_cycles(entry);
      for (Server& core : sm_of(entry).cores) core.free = done;
      jobs.push_back({done - busy_cycles(entry), done});
    }
    timed.started = jobs[number].started;
    timed.done = jobs[number].done;
  }

  std::int64_t transfer_cycles(std::int64_t bytes) const {
    return static_cast<std::int64_t>(std::ceil(static_cast<double>(bytes) * per_byte_));
  }

  // A load goes on without the warp, until something needs its values: see TraceEntry::needs. What
  // goes through registers holds it up. Writes to global memory leave without it.
  void touch(const TraceEntry& entry, std::int64_t at, Timed& timed) {
    Sm& sm = sm_of(entry);
    timed.end = at + kCosts.issue * std::max<std::int64_t>(entry.requests, 1);
    if (entry.wavefronts > 0) {
      timed.end = std::max(timed.end, sm.shared.take(at, entry.wavefronts) + kCosts.shared_latency);
    }
    if (entry.bytes_read > 0) {
      const std::int64_t landed = sm.memory.take(at, transfer_cycles(entry.bytes_read));
      timed.end = std::max(timed.end, landed + kCosts.global_latency);
    }
    if (entry.bytes_written > 0) {
      timed.started = timed.end;
      timed.done = std::max(timed.end, sm.memory.take(at, transfer_cycles(entry.bytes_written)));
    }
    if (entry.loads) {
      timed.started = at;
      timed.done = timed.end;
      timed.end = at + kCosts.issue * std::max<std::int64_t>(entry.requests, 1);
    }
  }

  void start_transfer(const TraceEntry& entry, std::int64_t at, Timed& timed) {
    timed.end = at + kCosts.issue * std::max<std::int64_t>(entry.requests, 1);
    timed.started = at;
    Server& memory = sm_of(entry).memory;
    timed.done = memory.take(at, transfer_cycles(entry.bytes_read + entry.bytes_written));
    if (entry.kind != TraceKind::kBulkStore) timed.done += kCosts.global_latency;
    timed.done = std::max(timed.done, timed.end);
  }

  const target::Arch& arch_;
  const sim::BlockTrace& trace_;
  double per_byte_;
  Timeline out_;
  std::vector<bool> timed_;
  std::vector<WarpQueue> warps_;
  std::vector<std::vector<Job>> jobs_;  // by group of four warps
  std::vector<Sm> sms_;                 // by block of the cluster
  std::map<std::uint32_t, std::vector<std::uint32_t>> members_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>, std::vector<std::uint32_t>>
      arrivals_;
};

}  // namespace

double cycles_per_byte(const target::Arch& arch, double dram_share) {
  const double cycles_per_second = arch.clock_ghz * 1e9;
  const double dram = arch.dram_gb_per_s * 1e9 / arch.sms / cycles_per_second;
  return std::max(1 / kCosts.l2_bytes_per_cycle, dram_share / dram);
}

Timeline time_block(const target::Arch& arch, const sim::BlockTrace& trace, double dram_share) {
  return Clockwork(arch, trace, dram_share).run();
}

}  // namespace kiln::explain
