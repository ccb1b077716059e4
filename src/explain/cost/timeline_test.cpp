// The model of time on traces made by hand, and rows made of them.
#include "explain/cost/timeline.h"

#include <gtest/gtest.h>

#include <cmath>

#include "explain/cost/lanes.h"

namespace kiln::explain {

namespace {

using sim::BlockTrace;
using sim::TraceEntry;
using sim::TraceKind;

const target::Arch& hopper() { return *target::find_arch("sm_90a"); }

constexpr std::int64_t kBytes = 16384;
constexpr std::uint32_t kFull = 0;  // slots 0 and 1 of a fresh event
constexpr std::uint32_t kEmpty = 2;

// A producer in warp 0 and a consumer in warps 4 to 7, two slots, `steps` steps.
class Pipeline {
 public:
  explicit Pipeline(int steps) {
    trace_.warps = 8;
    trace_.slots = {{.event = "full", .number = 0, .slots = 2, .ready = false},
                    {.event = "full", .number = 1, .slots = 2, .ready = false},
                    {.event = "empty", .number = 0, .slots = 2, .ready = true},
                    {.event = "empty", .number = 1, .slots = 2, .ready = true}};
    for (int k = 0; k < steps; ++k) {
      load(static_cast<std::uint32_t>(k % 2), k / 2);
      for (std::uint32_t warp = 4; warp < 8; ++warp) {
        multiply(warp, static_cast<std::uint32_t>(k % 2), k / 2);
      }
    }
  }

  [[nodiscard]] const BlockTrace& trace() const { return trace_; }
  // The entries of one kind and warp.
  [[nodiscard]] std::vector<std::uint32_t> of(TraceKind kind, std::uint32_t warp) const {
    std::vector<std::uint32_t> out;
    for (std::uint32_t i = 0; i < trace_.entries.size(); ++i) {
      const TraceEntry& entry = trace_.entries[i];
      if (entry.kind == kind && entry.warp == warp) out.push_back(i);
    }
    return out;
  }

 private:
  std::uint32_t add(TraceEntry entry) {
    entry.op = ir::OpId{static_cast<std::uint32_t>(entry.kind)};
    trace_.entries.push_back(entry);
    return static_cast<std::uint32_t>(trace_.entries.size() - 1);
  }

  void load(std::uint32_t slot, int generation) {
    add({.kind = TraceKind::kEventWait, .op = {}, .slot = kEmpty + slot, .phase = generation});
    const auto copy = add({.kind = TraceKind::kBulkLoad,
                           .op = {},
                           .bytes_read = kBytes,
                           .requests = 1,
                           .slot = kFull + slot,
                           .phase = generation});
    const auto trigger =
        add({.kind = TraceKind::kTrigger, .op = {}, .slot = kFull + slot, .phase = generation});
    for (const auto entry : {copy, trigger}) {
      trace_.arrivals.push_back({entry, 0, kFull + slot, generation});
    }
  }

  void multiply(std::uint32_t warp, std::uint32_t slot, int generation) {
    add({.kind = TraceKind::kEventWait,
         .op = {},
         .warp = warp,
         .slot = kFull + slot,
         .phase = generation + 1});
    const std::int64_t group = groups_[warp]++;
    add({.kind = TraceKind::kProduct,
         .op = {},
         .warp = warp,
         .atom = target::find_mma("m64n256k16.f32.bf16"),
         .issues = 4,
         .group = group});
    add({.kind = TraceKind::kProductWait, .op = {}, .warp = warp, .group = group + 1});
    const auto trigger = add({.kind = TraceKind::kTrigger,
                              .op = {},
                              .warp = warp,
                              .slot = kEmpty + slot,
                              .phase = generation});
    trace_.arrivals.push_back({trigger, 0, kEmpty + slot, generation});
  }

  BlockTrace trace_;
  std::int64_t groups_[8] = {};
};

// Eight loads of one warp, and a store that needs the last of them.
BlockTrace loads_and_a_store(bool each_needs_the_last) {
  BlockTrace trace;
  for (std::uint32_t i = 0; i < 8; ++i) {
    TraceEntry load{.kind = TraceKind::kElement, .op = ir::OpId{0}};
    load.bytes_read = 128;
    load.requests = 1;
    load.loads = true;
    if (each_needs_the_last && i > 0) load.needs[0] = i - 1;
    trace.entries.push_back(load);
  }
  TraceEntry store{.kind = TraceKind::kStore, .op = ir::OpId{1}};
  store.bytes_written = 128;
  store.requests = 1;
  store.needs[0] = 7;
  trace.entries.push_back(store);
  return trace;
}

TEST(Timelines, IndependentLoadsOfAWarpOverlap) {
  const Timeline timeline = time_block(hopper(), loads_and_a_store(false), 0);
  const Timed& store = timeline.entries.back();
  EXPECT_EQ(store.begin, 8 * kCosts.issue) << "the loads are issued one after the other";
  EXPECT_EQ(store.released_by, 7U);
  EXPECT_GE(store.ready, kCosts.global_latency);
  EXPECT_LT(store.ready, kCosts.global_latency + 8 * (kCosts.issue + 128));
}

TEST(Timelines, LoadsThatNeedEachOtherDoNot) {
  const Timeline timeline = time_block(hopper(), loads_and_a_store(true), 0);
  EXPECT_GE(timeline.entries.back().ready, 8 * kCosts.global_latency);
}

TEST(Timelines, LoadsTakeLatencyAndBandwidth) {
  const Pipeline pipeline(1);
  const Timeline timeline = time_block(hopper(), pipeline.trace(), 0);
  const Timed& load = timeline.entries[pipeline.of(TraceKind::kBulkLoad, 0)[0]];
  const double bytes = static_cast<double>(kBytes);
  EXPECT_EQ(load.started, kCosts.shared_latency);  // behind a wait that need not wait
  EXPECT_EQ(load.done - load.started,
            static_cast<std::int64_t>(std::ceil(bytes / kCosts.l2_bytes_per_cycle)) +
                kCosts.global_latency);
  EXPECT_EQ(load.end - load.begin, kCosts.issue);
  // From DRAM alone: the SM's share of the part's bandwidth.
  const double share = 4800e9 / 132 / 1.83e9;
  EXPECT_DOUBLE_EQ(cycles_per_byte(hopper(), 1), 1 / share);
}

TEST(Timelines, WaitsEndWhenTheLastArrivalIsThere) {
  const Pipeline pipeline(1);
  const Timeline timeline = time_block(hopper(), pipeline.trace(), 1);
  const std::uint32_t load = pipeline.of(TraceKind::kBulkLoad, 0)[0];
  for (std::uint32_t warp = 4; warp < 8; ++warp) {
    const Timed& wait = timeline.entries[pipeline.of(TraceKind::kEventWait, warp)[0]];
    EXPECT_EQ(wait.begin, 0);
    EXPECT_EQ(wait.end, timeline.entries[load].done + kCosts.shared_latency);
    EXPECT_EQ(wait.released_by, load);
  }
}

TEST(Timelines, ProductsAreTheGroupsOnAllTensorCores) {
  const Pipeline pipeline(1);
  const Timeline timeline = time_block(hopper(), pipeline.trace(), 1);
  const Timed& product = timeline.entries[pipeline.of(TraceKind::kProduct, 4)[0]];
  EXPECT_EQ(product.done - product.started, 4 * 128);  // 64 x 256 x 16 by 2048 a cycle
  for (std::uint32_t warp = 5; warp < 8; ++warp) {
    const Timed& same = timeline.entries[pipeline.of(TraceKind::kProduct, warp)[0]];
    EXPECT_EQ(same.started, product.started);
    EXPECT_EQ(same.done, product.done);
  }
  const Timed& wait = timeline.entries[pipeline.of(TraceKind::kProductWait, 4)[0]];
  EXPECT_EQ(wait.end, product.done + kCosts.issue);
}

TEST(Timelines, ASlotIsLoadedAgainOnlyOnceItIsReleased) {
  const Pipeline pipeline(6);
  const Timeline timeline = time_block(hopper(), pipeline.trace(), 0.25);
  const auto loads = pipeline.of(TraceKind::kBulkLoad, 0);
  const auto products = pipeline.of(TraceKind::kProduct, 4);
  for (std::size_t k = 2; k < loads.size(); ++k) {
    EXPECT_GE(timeline.entries[loads[k]].started, timeline.entries[products[k - 2]].done);
  }
  // The next slot is on its way while the products of this one run.
  EXPECT_LT(timeline.entries[loads[1]].started, timeline.entries[products[0]].started);
}

TEST(Timelines, BarriersEndForAllWhenTheLastComes) {
  BlockTrace trace;
  trace.warps = 2;
  trace.entries = {
      {.kind = TraceKind::kElement, .op = {}, .warp = 0, .bytes_read = 128, .requests = 1},
      {.kind = TraceKind::kBarrier, .op = {}, .warp = 0, .meeting = 0},
      {.kind = TraceKind::kBarrier, .op = {}, .warp = 1, .meeting = 0}};
  const Timeline timeline = time_block(hopper(), trace, 1);
  EXPECT_GE(timeline.entries[0].end, kCosts.global_latency);
  EXPECT_EQ(timeline.entries[1].end, timeline.entries[0].end + kCosts.shared_latency);
  EXPECT_EQ(timeline.entries[2].end, timeline.entries[1].end);
  EXPECT_EQ(timeline.entries[2].begin, 0);
  EXPECT_EQ(timeline.entries[2].released_by, 1U);
}

TEST(Timelines, AWarpsInstructionsTakeItsOwnTensorCore) {
  BlockTrace trace;
  trace.warps = 5;
  const target::Mma* atom = target::find_mma("m16n8k16.f32.f16");
  for (std::uint32_t warp = 0; warp < 5; ++warp) {
    trace.entries.push_back(
        {.kind = TraceKind::kMma, .op = {}, .warp = warp, .atom = atom, .issues = 10});
  }
  const Timeline timeline = time_block(hopper(), trace, 1);
  const std::int64_t busy = 10 * target::issue_cycles(*atom, hopper());
  for (std::size_t warp = 0; warp < 4; ++warp) EXPECT_EQ(timeline.entries[warp].end, busy);
  EXPECT_EQ(timeline.entries[4].end, 2 * busy);  // shares with warp 0
}

TEST(Lanes, FoldWarpsAndCountStages) {
  const Pipeline pipeline(6);
  const BlockView view = view_block({}, hopper(), pipeline.trace(), 0.25);
  ASSERT_EQ(view.tracks.size(), 2U);
  EXPECT_EQ(view.tracks[0].name, "warp 0");
  EXPECT_EQ(view.tracks[0].role, "loads");
  EXPECT_EQ(view.tracks[1].name, "warps 4 to 7");
  EXPECT_EQ(view.tracks[1].role, "multiplies");
  EXPECT_EQ(view.tracks[1].running.size(), 6U);
  EXPECT_EQ(view.tracks[1].products, 6 * 4 * 128);
  EXPECT_EQ(view.idle_warps, 3U);
  ASSERT_EQ(view.stages.size(), 2U);
  EXPECT_EQ(view.stages[1].name, "full[1]");
  ASSERT_EQ(view.stages[1].slices.size(), 3U);
  EXPECT_EQ(view.stages[1].slices[2].what, "full[1], generation 2");
  EXPECT_EQ(view.stages[1].slices[2].bytes, kBytes);
  ASSERT_EQ(view.depths.size(), 1U);
  EXPECT_EQ(view.depths[0].name, "full");
  EXPECT_EQ(view.depths[0].most, 2);
  EXPECT_GT(view.depths[0].mean, 0.5);
  EXPECT_LE(view.depths[0].mean, 2);
  // Waits of the producer from its third step on, and of the consumer for data and products.
  EXPECT_EQ(view.tracks[0].waits.size(), 1U);
  EXPECT_EQ(view.tracks[0].waits[0].what, "empty");
  ASSERT_EQ(view.tracks[1].waits.size(), 2U);
  EXPECT_EQ(view.tracks[1].waits[0].what, "full");
  EXPECT_EQ(view.tracks[1].waits[1].what, "its products");
  EXPECT_EQ(view.tracks[0].slices[0].what, "empty[0], generation 0");
}

}  // namespace

}  // namespace kiln::explain
