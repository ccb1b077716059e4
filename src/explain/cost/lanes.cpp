#include "explain/cost/lanes.h"

#include <algorithm>
#include <map>

#include "support/check.h"
#include "support/format.h"

namespace kiln::explain {

namespace {

using sim::BlockTrace;
using sim::TraceEntry;
using sim::TraceKind;

SliceKind kind_of(TraceKind kind) {
  switch (kind) {
    case TraceKind::kMma:
    case TraceKind::kProduct: return SliceKind::kProduct;
    case TraceKind::kProductWait:
    case TraceKind::kCopyWait:
    case TraceKind::kBulkWait:
    case TraceKind::kEventWait: return SliceKind::kWait;
    case TraceKind::kBarrier: return SliceKind::kBarrier;
    case TraceKind::kTrigger: return SliceKind::kTrigger;
    case TraceKind::kLoad:
    case TraceKind::kElement:
    case TraceKind::kCopy: return SliceKind::kMove;
    case TraceKind::kAsyncCopy:
    case TraceKind::kBulkLoad: return SliceKind::kIssue;
    case TraceKind::kStore:
    case TraceKind::kBulkStore: break;
  }
  return SliceKind::kStore;
}

// "full[1], generation 2": the phase counts from 0.
std::string generation_text(const BlockTrace& trace, std::uint32_t slot, std::int64_t phase) {
  const sim::TraceSlot& at = trace.slots[slot];
  const std::string event = at.event.empty() ? "the copy's own event" : at.event;
  const std::string number = at.slots == 1 ? "" : format("[{}]", at.number);
  return format("{}{}, generation {}", event, number, phase + (at.ready ? 1 : 0));
}

std::string waits_text(const BlockTrace& trace, const TraceEntry& entry) {
  switch (entry.kind) {
    case TraceKind::kProductWait: return "its products";
    case TraceKind::kCopyWait: return "its copies";
    case TraceKind::kBulkWait: return "its bulk stores";
    case TraceKind::kBarrier: return "a barrier";
    case TraceKind::kEventWait: break;
    case TraceKind::kMma:
    case TraceKind::kProduct:
    case TraceKind::kLoad:
    case TraceKind::kStore:
    case TraceKind::kElement:
    case TraceKind::kCopy:
    case TraceKind::kAsyncCopy:
    case TraceKind::kBulkLoad:
    case TraceKind::kBulkStore:
    case TraceKind::kTrigger: KILN_UNREACHABLE("entry {} is no wait", entry.op.index);
  }
  const std::string& event = trace.slots[entry.slot].event;
  return event.empty() ? "the copy's own event" : event;
}

constexpr std::string_view kItsLoads = "its loads";

bool same_work(const TraceEntry& a, const TraceEntry& b) {
  return a.kind == b.kind && a.op == b.op && a.slot == b.slot && a.phase == b.phase;
}

// Warps with one lane: their entries, of the first block.
struct Fold {
  std::uint32_t first = 0;
  std::vector<std::vector<std::uint32_t>> warps;
};

class Viewer {
 public:
  Viewer(const ir::Function& function, const BlockTrace& trace, const Timeline& timeline)
      : function_(function), trace_(trace), timeline_(timeline) {}

  BlockView view() {
    BlockView out;
    out.block = trace_.block;
    out.cycles = timeline_.cycles;
    out.cut = trace_.cut;
    for (const Fold& fold : folds(out)) out.tracks.push_back(track(fold));
    add_stages(out);
    for (const Track& track : out.tracks) add_copy_depths(track, out);
    return out;
  }

 private:
  // Neighbours that do the same, but not across groups of four warps if those multiply together.
  std::vector<Fold> folds(BlockView& out) const {
    std::vector<std::vector<std::uint32_t>> entries(trace_.warps);
    bool grouped = false;
    for (std::uint32_t i = 0; i < trace_.entries.size(); ++i) {
      const TraceEntry& entry = trace_.entries[i];
      if (entry.warp < trace_.warps) entries[entry.warp].push_back(i);
      grouped = grouped || entry.kind == TraceKind::kProduct;
    }
    std::vector<Fold> folds;
    for (std::uint32_t w = 0; w < trace_.warps; ++w) {
      if (entries[w].empty()) {
        ++out.idle_warps;
        continue;
      }
      const bool neighbour = !folds.empty() && folds.back().first + folds.back().warps.size() == w;
      const bool starts_group = grouped && w % kWarpgroupWarps == 0;
      if (!neighbour || starts_group || !alike(folds.back().warps[0], entries[w])) {
        folds.push_back({w, {}});
      }
      folds.back().warps.push_back(std::move(entries[w]));
    }
    return folds;
  }

  bool alike(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) const {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](auto i, auto j) {
      return same_work(trace_.entries[i], trace_.entries[j]);
    });
  }

  Track track(const Fold& fold) const {
    Track out;
    const std::size_t last = fold.first + fold.warps.size() - 1;
    out.name = fold.warps.size() == 1 ? format("warp {}", fold.first)
                                      : format("warps {} to {}", fold.first, last);
    for (std::size_t i = 0; i < fold.warps[0].size(); ++i) add_entry(fold, i, out);
    out.role = role_of(out);
    return out;
  }

  // The i-th entry of the fold's warps: from the first that comes to it to the last that leaves.
  void add_entry(const Fold& fold, std::size_t i, Track& out) const {
    const std::uint32_t number = fold.warps[0][i];
    const TraceEntry& entry = trace_.entries[number];
    Timed timed = timeline_.entries[number];
    std::int64_t bytes = 0;
    for (const auto& warp : fold.warps) {
      const Timed& other = timeline_.entries[warp[i]];
      timed.begin = std::min(timed.begin, other.begin);
      timed.ready = std::min(timed.ready, other.ready);
      timed.end = std::max(timed.end, other.end);
      timed.started = std::min(timed.started, other.started);
      timed.done = std::max(timed.done, other.done);
      bytes += trace_.entries[warp[i]].bytes_read + trace_.entries[warp[i]].bytes_written;
    }
    const bool waits =
        kind_of(entry.kind) == SliceKind::kWait || kind_of(entry.kind) == SliceKind::kBarrier;
    if (!waits && timed.ready > timed.begin) {
      add_wait_for_loads(entry, timed, out);
      timed.begin = timed.ready;
      timed.released_by = TraceEntry::kNone;
    }
    Slice slice{.kind = kind_of(entry.kind),
                .begin = timed.begin,
                .end = timed.end,
                .ops = {entry.op},
                .what = what(entry),
                .bytes = bytes,
                .count = std::max<std::int64_t>(entry.issues, 1)};
    if (timed.released_by != TraceEntry::kNone)
      slice.released_by = trace_.entries[timed.released_by].op;
    if (slice.kind == SliceKind::kWait || slice.kind == SliceKind::kBarrier) {
      const Timed& own = timeline_.entries[number];
      add_share(out.waits, waits_text(trace_, entry), own.begin, own.end);
    }
    append(out.slices, slice);
    add_running(entry, timed, slice, out);
  }

  // The values of earlier loads, which the entry needs.
  void add_wait_for_loads(const TraceEntry& entry, const Timed& timed, Track& out) const {
    Slice slice{.kind = SliceKind::kWait,
                .begin = timed.begin,
                .end = timed.ready,
                .ops = {entry.op},
                .what = std::string(kItsLoads)};
    if (timed.released_by != TraceEntry::kNone) {
      slice.released_by = trace_.entries[timed.released_by].op;
    }
    out.slices.push_back(slice);
    add_share(out.waits, slice.what, timed.begin, timed.ready);
  }

  static void add_share(std::vector<Share>& shares, const std::string& what, std::int64_t begin,
                        std::int64_t end) {
    const auto same = [&](const Share& share) { return share.what == what; };
    auto found = std::find_if(shares.begin(), shares.end(), same);
    if (found == shares.end()) found = shares.insert(shares.end(), {what, 0});
    found->cycles += end - begin;
  }

  static void add_running(const TraceEntry& entry, const Timed& timed, Slice slice, Track& out) {
    const bool product = slice.kind == SliceKind::kProduct;
    slice.begin = timed.started;
    slice.end = timed.done;
    if (product) out.products += slice.cycles();
    if (entry.loads && slice.cycles() > 0) {
      add_flight(slice, out);
      return;
    }
    if (entry.kind == TraceKind::kAsyncCopy) slice.kind = SliceKind::kFlight;
    if (entry.kind == TraceKind::kProduct || entry.kind == TraceKind::kAsyncCopy ||
        entry.kind == TraceKind::kBulkStore) {
      append(out.running, slice);
    }
  }

  // Loads into registers by one statement that are on their way at the same time: one slice.
  static void add_flight(Slice slice, Track& out) {
    slice.kind = SliceKind::kFlight;
    Slice* last = out.running.empty() ? nullptr : &out.running.back();
    const bool same = last != nullptr && last->kind == slice.kind && last->ops == slice.ops;
    if (!same || slice.begin > last->end) {
      out.running.push_back(slice);
      return;
    }
    last->end = std::max(last->end, slice.end);
    last->count += slice.count;
    last->bytes += slice.bytes;
  }

  // One behind the other with nothing between them, by the same statement: one slice.
  static void append(std::vector<Slice>& slices, const Slice& slice) {
    const bool single = slice.kind == SliceKind::kWait || slice.kind == SliceKind::kBarrier ||
                        slice.kind == SliceKind::kTrigger;
    if (!single && !slices.empty()) {
      Slice& last = slices.back();
      if (last.kind == slice.kind && last.ops == slice.ops && last.end == slice.begin) {
        last.end = slice.end;
        last.count += slice.count;
        last.bytes += slice.bytes;
        return;
      }
    }
    slices.push_back(slice);
  }

  std::string what(const TraceEntry& entry) const {
    if (entry.atom != nullptr) return std::string(entry.atom->name);
    if (entry.kind == TraceKind::kEventWait) {
      // It waits for so many phases; the last of them is one less.
      const std::int64_t last = entry.phase - 1;
      return generation_text(trace_, entry.slot, last);
    }
    if (entry.slot != TraceEntry::kNone) return generation_text(trace_, entry.slot, entry.phase);
    const SliceKind kind = kind_of(entry.kind);
    const bool waits = kind == SliceKind::kWait || kind == SliceKind::kBarrier;
    return waits ? waits_text(trace_, entry) : "";
  }

  static std::string role_of(const Track& track) {
    constexpr std::pair<SliceKind, std::string_view> kRoles[] = {
        {SliceKind::kIssue, "loads"},
        {SliceKind::kProduct, "multiplies"},
        {SliceKind::kStore, "stores"},
        {SliceKind::kMove, "moves"}};
    std::vector<std::string_view> roles;
    for (const auto& [kind, role] : kRoles) {
      const auto is = [&, kind = kind](const Slice& slice) { return slice.kind == kind; };
      const bool has = std::any_of(track.slices.begin(), track.slices.end(), is);
      if (has && (kind != SliceKind::kMove || roles.empty())) roles.push_back(role);
    }
    return roles.empty() ? "waits" : join(roles, ", ", [](std::string_view role) { return role; });
  }

  // The bulk loads of each slot, by phase: a stage is on its way from its first load's start to its
  // last one's landing.
  void add_stages(BlockView& out) const {
    std::map<std::pair<std::uint32_t, std::int64_t>, Slice> stages;
    std::map<std::uint32_t, std::uint32_t> counted;  // entries have an arrival for each box
    for (const sim::TraceArrival& arrival : trace_.arrivals) {
      if (arrival.block != 0 || arrival.entry >= trace_.entries.size()) continue;
      const TraceEntry& entry = trace_.entries[arrival.entry];
      if (entry.kind != TraceKind::kBulkLoad || counted[arrival.entry]++ > 0) continue;
      const Timed& timed = timeline_.entries[arrival.entry];
      const auto [at, fresh] = stages.try_emplace({arrival.slot, arrival.phase});
      Slice& slice = at->second;
      if (fresh) {
        slice = {.kind = SliceKind::kFlight,
                 .begin = timed.started,
                 .end = timed.done,
                 .ops = {},
                 .what = generation_text(trace_, arrival.slot, arrival.phase),
                 .count = 0};
      }
      slice.begin = std::min(slice.begin, timed.started);
      slice.end = std::max(slice.end, timed.done);
      slice.bytes += entry.bytes_read;
      ++slice.count;
      if (std::find(slice.ops.begin(), slice.ops.end(), entry.op) == slice.ops.end()) {
        slice.ops.push_back(entry.op);
      }
    }
    std::uint32_t last = TraceEntry::kNone;
    for (const auto& [key, slice] : stages) {
      if (key.first != last) out.stages.push_back(stage_track(key.first));
      last = key.first;
      out.stages.back().slices.push_back(slice);
    }
    add_event_depths(stages, out);
  }

  Track stage_track(std::uint32_t slot) const {
    const sim::TraceSlot& at = trace_.slots[slot];
    Track track;
    const std::string event = at.event.empty() ? format("event {}", slot) : at.event;
    track.name = at.slots == 1 ? event : format("{}[{}]", event, at.number);
    track.role = "on their way";
    return track;
  }

  void add_event_depths(const std::map<std::pair<std::uint32_t, std::int64_t>, Slice>& stages,
                        BlockView& out) const {
    std::map<std::uint32_t, std::vector<Slice>> by_event;  // by the event's first slot
    for (const auto& [key, slice] : stages) {
      by_event[key.first - trace_.slots[key.first].number].push_back(slice);
    }
    for (const auto& [slot, slices] : by_event) {
      const sim::TraceSlot& event = trace_.slots[slot];
      const std::string name = event.event.empty() ? format("event {}", slot) : event.event;
      out.depths.push_back(depth_of(name, static_cast<int>(event.slots), slices));
    }
  }

  // Asynchronous copies by threads to one buffer: executions of statements that are on their way.
  void add_copy_depths(const Track& track, BlockView& out) const {
    std::map<std::string, std::vector<Slice>> by_buffer;
    for (const Slice& slice : track.running) {
      if (slice.kind != SliceKind::kFlight) continue;
      const auto* copy = std::get_if<ir::Copy>(&function_.ops[slice.ops[0]].data);
      if (copy != nullptr) by_buffer[buffer_name(copy->dst)].push_back(slice);  // else a load
    }
    for (const auto& [buffer, slices] : by_buffer) {
      out.depths.push_back(depth_of(format("copies to {} by {}", buffer, track.name), 0, slices));
    }
  }

  std::string buffer_name(ir::ValueId view) const {
    const ir::ValueId root = ir::root_of(function_, view);
    const auto* alloc = function_.def_as<ir::Alloc>(root);
    return alloc != nullptr && !alloc->name.empty() ? alloc->name : function_.values[root].name;
  }

  static Depth depth_of(const std::string& name, int slots, const std::vector<Slice>& slices) {
    std::map<std::int64_t, int> changes;
    for (const Slice& slice : slices) {
      ++changes[slice.begin];
      --changes[slice.end];
    }
    Depth out{.name = name, .slots = slots, .steps = {}};
    std::int64_t area = 0;
    int depth = 0;
    std::int64_t since = changes.begin()->first;
    const std::int64_t begin = since;
    for (const auto& [at, change] : changes) {
      area += depth * (at - since);
      since = at;
      if (change == 0) continue;
      depth += change;
      out.most = std::max(out.most, depth);
      out.steps.push_back({at, depth});
    }
    if (since > begin) out.mean = static_cast<double>(area) / static_cast<double>(since - begin);
    return out;
  }

  const ir::Function& function_;
  const BlockTrace& trace_;
  const Timeline& timeline_;
};

}  // namespace

std::string_view name(SliceKind kind) {
  switch (kind) {
    case SliceKind::kIssue: return "issue";
    case SliceKind::kFlight: return "flight";
    case SliceKind::kProduct: return "product";
    case SliceKind::kWait: return "wait";
    case SliceKind::kBarrier: return "barrier";
    case SliceKind::kTrigger: return "trigger";
    case SliceKind::kMove: return "move";
    case SliceKind::kStore: break;
  }
  return "store";
}

std::string_view description(SliceKind kind) {
  switch (kind) {
    case SliceKind::kIssue: return "starts copies";
    case SliceKind::kFlight: return "loads on their way";
    case SliceKind::kProduct: return "products";
    case SliceKind::kWait: return "waits for an event, products or copies";
    case SliceKind::kBarrier: return "waits at a barrier";
    case SliceKind::kTrigger: return "triggers an event";
    case SliceKind::kMove: return "loads and copies through registers";
    case SliceKind::kStore: break;
  }
  return "stores";
}

std::int64_t Track::waiting() const {
  std::int64_t out = 0;
  for (const Share& share : waits) out += share.cycles;
  return out;
}

BlockView view_block(const ir::Function& function, const target::Arch& arch,
                     const BlockTrace& trace, double dram_share) {
  const Timeline timeline = time_block(arch, trace, dram_share);
  return Viewer(function, trace, timeline).view();
}

}  // namespace kiln::explain
