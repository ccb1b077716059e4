// Programs of a few steps whose time is worked out by hand.
#include <gtest/gtest.h>

#include "explain/time/predict.h"

namespace kiln::explain {

namespace {

using sim::TraceKind;

// Everything that is not asked about is free.
target::Timing quick() {
  target::Timing out = target::timing_of(*target::find_arch("sm_90a"));
  out.clock_max_ghz = 1;
  out.power_watts = 1e9;
  out.l2_bytes_per_cycle = 64;
  out.l2_all_bytes_per_cycle = 1e9;
  out.store_bytes_per_cycle = 64;
  out.dram_efficiency = 1;
  out.l2_latency = out.dram_latency = 500;
  out.async_latency = out.bulk_latency = out.shared_latency = out.fence_latency = 0;
  out.issue_gap = 1;
  out.mma_latency = out.product_latency = out.barrier_latency = out.event_latency = 0;
  out.block_cycles = 0;
  out.launch_seconds = 0;
  return out;
}

class Program {
 public:
  explicit Program(std::uint32_t warps) {
    steps_.warps_each = warps;
    steps_.warps.resize(warps);
  }
  Step& add(std::uint32_t warp, TraceKind kind) {
    Step step{.kind = kind, .op = {}, .before = {}};
    step.number = steps_.count++;
    steps_.warps[warp].push_back(step);
    return steps_.warps[warp].back();
  }
  std::uint32_t event(std::uint32_t arrivals) {
    steps_.generations.push_back(arrivals);
    return static_cast<std::uint32_t>(steps_.generations.size() - 1);
  }
  void arrive(Step& step, std::uint32_t generation) {
    step.arrives_begin = static_cast<std::uint32_t>(steps_.arrivals.size());
    steps_.arrivals.push_back(generation);
    step.arrives_end = step.arrives_begin + 1;
  }
  [[nodiscard]] const BlockSteps& steps() const { return steps_; }

 private:
  BlockSteps steps_;
};

SmShare share_of(const target::Timing& timing, std::int64_t resident, std::int64_t blocks) {
  SmShare out;
  out.timing = timing;
  out.resident = resident;
  out.blocks = blocks;
  out.read_bytes_per_cycle = 64;
  out.dram_bytes_per_cycle = 1e9;
  return out;
}

constexpr int kSteps = 10;
constexpr float kTile = 6400;  // 100 cycles of the cache's path

// Load a tile, wait for it, multiply.
Program synchronous(float multiplied) {
  Program out(1);
  for (std::uint32_t i = 0; i < kSteps; ++i) {
    Step& load = out.add(0, TraceKind::kBulkLoad);
    load.read = kTile;
    out.arrive(load, out.event(1));
    out.add(0, TraceKind::kEventWait).waits_for = i;
    out.add(0, TraceKind::kMma).tensor = multiplied;
  }
  return out;
}

TEST(RunSm, ProductsKeepTheTensorCoreBusy) {
  Program program(1);
  for (int i = 0; i < kSteps; ++i) program.add(0, TraceKind::kMma).tensor = 32;
  const SmRun run = run_sm(program.steps(), share_of(quick(), 1, 1));
  EXPECT_DOUBLE_EQ(run.cycles, 320);
  EXPECT_DOUBLE_EQ(run.busy.tensor, 80) << "one core of four";
}

TEST(RunSm, WarpsOfFourQuartersMultiplyAtTheSameTime) {
  Program program(4);
  for (std::uint32_t w = 0; w < 4; ++w) program.add(w, TraceKind::kMma).tensor = 32;
  EXPECT_DOUBLE_EQ(run_sm(program.steps(), share_of(quick(), 1, 1)).cycles, 32);
  EXPECT_DOUBLE_EQ(run_sm(program.steps(), share_of(quick(), 2, 2)).cycles, 64);
}

TEST(RunSm, ASynchronousLoopWaitsTheWholeWayEachTime) {
  const Program program = synchronous(50);
  const SmRun run = run_sm(program.steps(), share_of(quick(), 1, 1));
  // The next load starts while the product is made.
  EXPECT_DOUBLE_EQ(run.cycles, kSteps * 600 + 50);
  EXPECT_GT(run.waiting.copies, 0.8 * run.warps);
}

TEST(RunSm, OtherBlocksFillTheWaits) {
  const Program program = synchronous(50);
  const double alone = run_sm(program.steps(), share_of(quick(), 1, 4)).cycles;
  const double together = run_sm(program.steps(), share_of(quick(), 4, 4)).cycles;
  EXPECT_DOUBLE_EQ(alone, 4 * (kSteps * 600 + 50));
  EXPECT_LT(together, alone / 3);
}

TEST(RunSm, ARingHidesTheWay) {
  constexpr int kStages = 6;
  Program program(2);  // warp 0 loads, warp 1 multiplies
  std::vector<std::uint32_t> full;
  std::vector<std::uint32_t> empty;
  for (int i = 0; i < 20; ++i) {
    full.push_back(program.event(1));
    empty.push_back(program.event(1));
  }
  for (int i = 0; i < 20; ++i) {
    if (i >= kStages) program.add(0, TraceKind::kEventWait).waits_for = empty[i - kStages];
    Step& load = program.add(0, TraceKind::kBulkLoad);
    load.read = kTile;
    program.arrive(load, full[i]);
    program.add(1, TraceKind::kEventWait).waits_for = full[i];
    program.add(1, TraceKind::kMma).tensor = 100;
    program.arrive(program.add(1, TraceKind::kTrigger), empty[i]);
  }
  const SmRun run = run_sm(program.steps(), share_of(quick(), 1, 1));
  EXPECT_NEAR(run.cycles, 600 + 20 * 100, 110) << "the first load's way, then a product each 100";
}

TEST(RunSm, WarpsMeetWhenTheLastOneComes) {
  Program program(2);
  program.add(0, TraceKind::kMma).tensor = 300;
  program.add(0, TraceKind::kStore);
  for (std::uint32_t w = 0; w < 2; ++w) {
    program.add(w, TraceKind::kBarrier).meeting = 0;
  }
  BlockSteps steps = program.steps();
  steps.meetings = {2};
  const SmRun run = run_sm(steps, share_of(quick(), 1, 1));
  EXPECT_DOUBLE_EQ(run.cycles, 300);
  EXPECT_DOUBLE_EQ(run.waiting.barriers, 300);
}

TEST(RunSm, AWaitForAPhaseThatNobodyCompletesWaitsForItsLoadsOnly) {
  Program program(1);
  Step& load = program.add(0, TraceKind::kLoad);
  load.read = kTile;
  load.loads = true;
  program.add(0, TraceKind::kEventWait).needs = {0, Step::kNone};
  const SmRun run = run_sm(program.steps(), share_of(quick(), 1, 1));
  EXPECT_DOUBLE_EQ(run.cycles, 600);
  EXPECT_DOUBLE_EQ(run.waiting.loads, 600);
  EXPECT_DOUBLE_EQ(run.waiting.events + run.waiting.copies, 0);
}

TEST(RunSm, BlocksWithoutWarpsThatDoAnythingEnd) {
  const Program program(1);
  EXPECT_EQ(run_sm(program.steps(), share_of(quick(), 2, 5)).ends.size(), 5U);
}

LaunchFacts facts_of(std::int64_t blocks, double bytes_each) {
  const double bytes = static_cast<double>(blocks) * bytes_each;
  return {.blocks = blocks, .bytes_read = bytes, .bytes_read_once = bytes};
}

TEST(Predict, ACopyIsBoundByDram) {
  // 1 MB by each of 1320 blocks at 4800 GB/s: 275 us. One at a time on each SM, but in many pieces at once.
  Program program(1);
  for (int i = 0; i < 100; ++i) program.add(0, TraceKind::kAsyncCopy).read = 10000;
  program.add(0, TraceKind::kCopyWait).group = 1;
  const target::Arch& arch = *target::find_arch("sm_90a");
  const Prediction p = predict(arch, quick(), program.steps(), facts_of(1320, 1e6));
  EXPECT_NEAR(p.seconds, 1.32e9 / 4800e9, 0.03 * p.seconds);
  EXPECT_EQ(p.bound, Limit::kDram);
}

TEST(Predict, ProductsAreBoundByTheTensorCores) {
  Program program(4);
  for (std::uint32_t w = 0; w < 4; ++w) {
    for (int i = 0; i < kSteps; ++i) program.add(w, TraceKind::kMma).tensor = 1000;
  }
  const target::Arch& arch = *target::find_arch("sm_90a");
  const Prediction p = predict(arch, quick(), program.steps(), facts_of(264, 0));
  EXPECT_NEAR(p.cycles, 2 * kSteps * 1000, 1);
  EXPECT_EQ(p.bound, Limit::kTensor);
}

TEST(Predict, ASynchronousLoopIsBoundByLatency) {
  const Program program = synchronous(50);
  const target::Arch& arch = *target::find_arch("sm_90a");
  LaunchFacts facts = facts_of(132, kSteps * kTile);
  facts.bytes_read_once = 1;
  const Prediction p = predict(arch, quick(), program.steps(), facts);
  EXPECT_EQ(p.bound, Limit::kLatency);
  EXPECT_NEAR(p.seconds, (kSteps * 600 + 50) * 1e-9, 1e-9);
}

TEST(Predict, BlocksThatAreNotRunTakeAsLongAsTheLastOnes) {
  const Program program = synchronous(50);
  const target::Arch& arch = *target::find_arch("sm_90a");
  LaunchFacts facts = facts_of(std::int64_t{132} * 100000, kSteps * kTile);
  facts.bytes_read_once = 1;
  const Prediction p = predict(arch, quick(), program.steps(), facts, false);
  EXPECT_NEAR(p.cycles, 1e5 * (kSteps * 600 + 50), 1e3);
}

TEST(Predict, PowerLowersTheClock) {
  Program program(4);
  for (std::uint32_t w = 0; w < 4; ++w) program.add(w, TraceKind::kMma).tensor = 10000;
  target::Timing timing = quick();
  timing.power_watts = 500;
  timing.idle_watts = 100;
  timing.tensor_watts = 1600;
  timing.clock_exponent = 0.5;
  const target::Arch& arch = *target::find_arch("sm_90a");
  const Prediction p = predict(arch, timing, program.steps(), facts_of(132, 0), false);
  EXPECT_TRUE(p.power_limited);
  EXPECT_NEAR(p.clock_ghz, 0.5, 1e-9) << "a quarter of the watts, the square root of that";
}

TEST(Predict, AFasterCacheTakesAsMuchPowerForItsBytes) {
  Program program(4);
  for (std::uint32_t w = 0; w < 4; ++w) {
    for (int i = 0; i < 100; ++i) {
      program.add(w, TraceKind::kBulkLoad).read =
          kTile / 8;  // half of the time, beside the products
      program.add(w, TraceKind::kMma).tensor = 100;
    }
  }
  target::Timing timing = quick();
  timing.power_watts = 500;
  timing.idle_watts = 100;
  timing.tensor_watts = timing.cache_watts = 1600;
  const target::Arch& arch = *target::find_arch("sm_90a");
  LaunchFacts facts = facts_of(132, 400.0 * kTile / 8);
  facts.bytes_read_once = 1;
  const Prediction p = predict(arch, timing, program.steps(), facts);
  EXPECT_TRUE(p.power_limited);
  const auto cache = std::ranges::find(p.gains, Limit::kCache, &std::pair<Limit, double>::first);
  EXPECT_NEAR(cache->second, 0, 0.02);
}

}  // namespace

}  // namespace kiln::explain
